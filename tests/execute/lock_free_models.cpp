// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// timeout: 600

// The lock-free parts as SPIN models: each statement of a model is the step of the header that its
// comment names. SPIN visits all interleavings of the steps, which are sequentially consistent
// here. Every model has planted faults, which SPIN must find. The test is skipped without spin
// (Debian: apt-get install spin) or a C compiler.

#include <string>

#include <catch2/catch_test_macros.hpp>

#include "support/memory_models.hpp"
#include "support/spin.hpp"

namespace test_lock_free_models {

using namespace heddle;

namespace {

/// ThreadTransport::push(), pull(), test() and cancel() (execute/thread_transport.ipp). The sender
/// fails at any time. Fault 1: the ring takes a message more than it has slots. Fault 2: the
/// receiver looks whether the memory is closed before it announces its copy.
constexpr const char* channel_model = R"(
#define SLOTS 2     /* ThreadChannel::slots, 256 there */
#define MESSAGES 5

byte fault;
byte sent, received, ring[SLOTS];
bool copying, closed;
bool memory = true; /* whether the memory of the messages exists */

proctype sender() {
  byte started = 0;                         /* messages of send() */
  do
  :: started < MESSAGES &&                  /* push(): sent - received < channel.slots */
     (sent - received < SLOTS || (fault == 1 && sent - received == SLOTS)) ->
       ring[sent % SLOTS] = started + 1;    /* channel.ring[sent % channel.slots] = ... */
       sent++;                              /* channel.sent.store(++sent, release) */
       started++
  :: received == MESSAGES ->                /* test(): all have been received */
       memory = false;
       goto over
  :: true ->                                /* an error of this rank, at any time */
       closed = true;                       /* cancel(): channel->closed.store(true) */
       copying == false;                    /* while (channel->copying.load()) yield() */
       memory = false;
       goto over
  od;
over: skip
}

proctype receiver() {
  bool was_closed;
  byte message;
  do
  :: received == MESSAGES -> break
  :: closed -> break                        /* an abort is heard */
  :: received < sent ->                     /* pull(): received < channel.sent.load(acquire) */
       message = ring[received % SLOTS];    /* channel.ring[received % channel.slots] */
       assert(message == received + 1);     /* in order, and no message is overwritten */
       if
       :: fault == 2 -> was_closed = closed; copying = true
       :: else ->
            copying = true;                 /* channel.copying.store(true) */
            was_closed = closed             /* channel.closed.load() */
       fi;
       if
       :: was_closed -> copying = false; break
       :: else -> skip
       fi;
       assert(memory);                      /* std::memcpy begins */
       assert(memory);                      /* std::memcpy ends */
       copying = false;                     /* channel.copying.store(false) */
       received++                           /* channel.received.store(++received, release) */
  od
}

init {
  atomic {
    c_code { now.fault = atoi(getenv("FAULT")); };
    run sender();
    run receiver()
  }
}
)";

/// StreamCrew::find(), carry() and together() (execute/impl/stream_crew.hpp): two threads, two
/// slots and three batches; the trial of one thread closes the source at any time. Fault 1: a load
/// and a store instead of the exchange that holds a slot. Fault 2: nobody looks again after the
/// join.
constexpr const char* crew_model = R"(
#define COUNT 3         /* stages: the source, a parallel one, a serial one */
#define SERIAL(s) ((s) != 1)
#define SLOTS 2
#define BATCHES 3       /* of the source */
#define HELD 255

byte fault;
byte turn[COUNT];       /* m_turns */
byte parked[SLOTS];     /* Slot::parked: batch * COUNT + stage, or HELD */
byte filled[SLOTS];     /* Slot::filled */
byte waiting;           /* m_parked */
bool closed, ended;     /* m_closed, m_ended */
byte made, left;        /* batches of the source, and those that have left the last stage */
byte busy[COUNT];       /* threads in a stage */
byte present;

/* work(): the batches of one thread. A relaxed load of m_parked may be late, unless the others have
   been joined. */
inline work(joined) {
  do
  :: was_closed = closed;                        /* m_closed.load(relaxed) */
     found = false;                              /* find() */
     if
     :: waiting != 0 || !joined -> stage = COUNT /* m_parked.load(relaxed) != 0 ? count : 1 */
     :: waiting == 0 || !joined -> stage = 1
     fi;
     do
     :: stage > (was_closed -> 1 : 0) ->         /* while (stage-- > (closed ? 1 : 0)) */
          stage--;
          if
          :: !SERIAL(stage) -> skip
          :: else ->
               batch = turn[stage];              /* m_turns[stage].batch.load(acquire) */
               if                                /* parked.compare_exchange_strong(here, held) */
               :: fault != 1 ->
                    atomic {
                      found = (parked[batch % SLOTS] == batch * COUNT + stage);
                      if :: found -> parked[batch % SLOTS] = HELD :: else -> skip fi
                    }
               :: else ->                        /* a load and a store are no exchange */
                    found = (parked[batch % SLOTS] == batch * COUNT + stage);
                    if :: found -> parked[batch % SLOTS] = HELD :: else -> skip fi
               fi;
               if
               :: found && stage != 0 ->
                    assert(waiting > 0);
                    waiting--;                   /* m_parked.fetch_sub(1) */
                    break
               :: found && stage == 0 -> break
               :: else -> skip
               fi
          fi
     :: else -> break
     od;
     if
     :: found ->                                 /* carry() */
          do
          :: true ->
               if
               :: SERIAL(stage) ->
                    busy[stage]++;
                    assert(busy[stage] == 1 && turn[stage] == batch)
               :: else -> skip
               fi;
               if
               :: stage == 0 && !ended && made < BATCHES ->
                    made++;                      /* m_stages.fill(tokens) */
                    filled[batch % SLOTS] = 1
               :: stage == 0 && (ended || made == BATCHES) ->
                    filled[batch % SLOTS] = 0;
                    ended = true;
                    closed = true                /* m_ended = true; m_closed = true */
               :: stage == COUNT - 1 ->          /* m_stages.apply(at.stage, tokens, slot.filled) */
                    left = left + filled[batch % SLOTS]
               :: else -> skip
               fi;
               if
               :: SERIAL(stage) ->
                    busy[stage]--;
                    turn[stage] = batch + 1      /* m_turns[at.stage].batch.store(at.batch + 1) */
               :: else -> skip
               fi;
               stage++;                          /* ++at.stage */
               if                                /* at.stage < count && may_enter(at) */
               :: stage == COUNT -> break
               :: stage < COUNT && SERIAL(stage) && turn[stage] != batch -> break
               :: stage < COUNT && (!SERIAL(stage) || turn[stage] == batch) -> skip
               fi
          od;
          index = batch % SLOTS;
          if
          :: stage == COUNT -> batch = batch + SLOTS; stage = 0
          :: else -> waiting++                   /* m_parked.fetch_add(1) */
          fi;
          parked[index] = batch * COUNT + stage  /* slot.parked.store(place(at), release) */
     :: !found && was_closed -> break
     :: else -> skip                             /* waiting() */
     fi;
     if
     :: closes -> closed = true                  /* then(): the Trial ends at any time */
     :: true -> skip
     fi
  od
}

proctype thread(bool closes) {
  byte stage, batch, index;
  bool found, was_closed;
  work(false);
  present--
}

init {
  byte stage, batch, index;
  bool found, was_closed, closes;
  atomic {
    c_code { now.fault = atoi(getenv("FAULT")); };
    parked[0] = 0;
    parked[1] = COUNT;                           /* place({batch, 0}) */
    present = 2;
    run thread(false);
    run thread(true)
  };
  present == 0;                                  /* together(): the threads are joined */
  closed = true;
  if
  :: fault == 2 -> skip
  :: else -> work(true)                          /* the last thread may have looked too early */
  fi;
  assert(left == made && waiting == 0);
  assert(parked[0] % COUNT == 0 && parked[1] % COUNT == 0)
}
)";

/// Expects that a model is right, and that each of its planted faults is found by its sign.
void check(const char* model, const char* first_sign, const char* second_sign = nullptr) {
  if (!test::SpinModel::possible()) SKIP(test::SpinModel::impossible);
  const test::SpinModel spin(model, "-O0");
  CHECK(spin.found() == "");
  CHECK(spin.found(1).find(first_sign) != std::string::npos);
  if (second_sign != nullptr) CHECK(spin.found(2).find(second_sign) != std::string::npos);
}

constexpr const char* wrong = "assertion violated";
constexpr const char* stuck = "invalid end state";

}  // namespace

TEST_CASE("a ring of messages keeps their order, and no copy outlives the sender's memory") {
  check(channel_model, wrong, wrong);
}
TEST_CASE("one thread at a time holds a brief mutex") { check(test::mutex_model, stuck); }
TEST_CASE("no thread returns its cache to a pool that has ended") {
  check(test::caches_model, wrong, wrong);
}
TEST_CASE("a fork finds every guarded lock free, and hangs in no order of locks") {
  check(test::fork_model, stuck, wrong);
}
TEST_CASE("a stream's stages see every batch once and in order, and none is left") {
  check(crew_model, wrong, wrong);
}

}  // namespace test_lock_free_models
