// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// program: its own

// The memory orders of the lock-free parts, by Relacy (https://github.com/dvyukov/relacy): it runs
// each test in many interleavings, and a load gets the newest value or any older one that acquire,
// release and sequential consistency permit. So it finds what SPIN, for which memory is
// sequentially consistent (lock_free_models.cpp), cannot. It does not move a step before an earlier
// one of its thread. BriefMutex is the class of the header itself. The others are written again,
// with the steps and orders of the header that they name, because only variables of Relacy's own
// types show a race. Each has planted faults, which Relacy must find. The test is skipped without
// Relacy (Debian: apt-get install relacy-dev).

#include <atomic>
#include <chrono>
#include <ctime>
#include <limits>
#include <ostream>
#include <string>

#include <catch2/catch_test_macros.hpp>

// Its threads are fibers, of which the sanitizers know nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEDDLE_TEST_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEDDLE_TEST_SANITIZED
#endif
#endif
#if __has_include(<relacy/relacy.hpp>) && !defined(HEDDLE_TEST_SANITIZED)

// Its macros stand for words of other headers.
#include <relacy/relacy.hpp>
#undef assert
#undef delete
#undef errno
#undef free
#undef malloc
#undef calloc
#undef realloc
#undef memory_order_acq_rel
#undef memory_order_acquire
#undef memory_order_consume
#undef memory_order_relaxed
#undef memory_order_release
#undef memory_order_seq_cst
#undef new

namespace test_memory_orders {

/// std::atomic for Relacy. Where `polled` is true, a load lets another thread run, because a loop
/// waits for its value.
template <class T, bool polled = false>
class Atomic {
 public:
  explicit Atomic(T value = T()) { m_value.store(value, rl::mo_relaxed, RL_INFO); }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;
  [[nodiscard]] T load(std::memory_order order = std::memory_order_seq_cst) const {
    if (polled) rl::yield(1, RL_INFO);
    return m_value.load(of(order), RL_INFO);
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) {
    m_value.store(value, of(order), RL_INFO);
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) {
    return m_value(RL_INFO).exchange(value, of(order));
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order order,
                               std::memory_order failed) {
    return m_value(RL_INFO).compare_exchange_strong(expected, value, of(order), of(failed));
  }
  void fetch_add(T value, std::memory_order order) { m_value(RL_INFO).fetch_add(value, of(order)); }
  void fetch_sub(T value, std::memory_order order) { m_value(RL_INFO).fetch_sub(value, of(order)); }

 private:
  [[nodiscard]] static rl::memory_order of(std::memory_order order) {
    switch (order) {
      case std::memory_order_relaxed: return rl::mo_relaxed;
      case std::memory_order_consume: return rl::mo_consume;
      case std::memory_order_acquire: return rl::mo_acquire;
      case std::memory_order_release: return rl::mo_release;
      case std::memory_order_acq_rel: return rl::mo_acq_rel;
      default: return rl::mo_seq_cst;
    }
  }
  rl::atomic<T> m_value;
};

}  // namespace test_memory_orders

// What BriefMutex finds under the name of std::atomic.
namespace heddle::inline v0::memory::impl::std {
using namespace ::std;
template <class T>
using atomic = test_memory_orders::Atomic<T, true>;
}  // namespace heddle::inline v0::memory::impl::std
#include <heddle/memory/impl/brief_mutex.hpp>

namespace test_memory_orders {
namespace {

using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

/// A std::atomic<bool> in the place of the mutex, with an order of `lock` that is too weak (fault
/// 1), and with one of `unlock` that is too weak (fault 2).
template <int fault>
struct WeakMutex {
  void lock() {
    while (taken.exchange(true, fault == 1 ? memory_order_relaxed : memory_order_acquire))
      rl::yield(1, RL_INFO);
  }
  bool try_lock() { return !taken.exchange(true, memory_order_acquire); }
  void unlock() { taken.store(false, fault == 2 ? memory_order_relaxed : memory_order_release); }
  Atomic<bool> taken;
};

/// Two threads count under lock(), and one under try_lock().
template <class Mutex>
struct Counting : rl::test_suite<Counting<Mutex>, 3> {
  Mutex mutex;
  rl::var<int> count{0};

  void thread(unsigned index) {
    if (index == 2) {
      if (!mutex.try_lock()) return;
    } else {
      mutex.lock();
    }
    count(RL_INFO) = count(RL_INFO) + 1;
    mutex.unlock();
  }
  void after() { RL_ASSERT(count(RL_INFO) == 2 || count(RL_INFO) == 3); }
};

/// ThreadTransport::push(), pull(), test() and cancel() (execute/thread_transport.ipp). Thread 0
/// sends, and uses the memory of its messages again when all have been received, or when it has
/// cancelled them at any time. Fault 1: the release of a message is missing. Fault 2: test() does
/// not acquire what was received. Fault 3: the end of the memory is only released and acquired.
/// Fault 4: the end of a copy is not released.
template <int fault>
struct Channel : rl::test_suite<Channel<fault>, 2> {
  static constexpr unsigned slots = 2, messages = 3;
  static constexpr auto dekker_store = fault == 3 ? memory_order_release : memory_order_seq_cst;
  static constexpr auto dekker_load = fault == 3 ? memory_order_acquire : memory_order_seq_cst;
  rl::var<unsigned> ring[slots];
  rl::var<unsigned> memory[messages];
  Atomic<unsigned> sent{0}, received{0};
  Atomic<bool> copying{false}, closed{false};

  void thread(unsigned index) {
    if (index == 0)
      send();
    else
      receive();
  }
  void send() {
    for (unsigned number = 0; number < messages; ++number) memory[number](RL_INFO) = number + 7;
    unsigned number = 0;
    unsigned cancelled_after = rl::rand(3);  // so many looks
    for (;;) {
      const unsigned taken =
          received.load(fault == 2 ? memory_order_relaxed : memory_order_acquire);
      if (taken == messages) break;  // test()
      if (cancelled_after-- == 0) {
        closed.store(true, dekker_store);
        while (copying.load(dekker_load)) rl::yield(1, RL_INFO);
        break;
      }
      while (number < messages && number - taken < slots) {
        ring[number % slots](RL_INFO) = number;
        ++number;
        sent.store(number, fault == 1 ? memory_order_relaxed : memory_order_release);
      }
      rl::yield(1, RL_INFO);
    }
    for (rl::var<unsigned>& message : memory) message(RL_INFO) = 0;
  }
  void receive() {
    for (unsigned number = 0; number < messages;) {
      if (closed.load(memory_order_seq_cst)) return;  // an abort is heard
      if (number >= sent.load(memory_order_acquire)) {
        rl::yield(1, RL_INFO);
        continue;
      }
      const unsigned message = ring[number % slots](RL_INFO);
      RL_ASSERT(message == number);
      copying.store(true, dekker_store);
      if (!closed.load(dekker_load)) {
        const unsigned read = memory[message](RL_INFO);
        RL_ASSERT(read == number + 7);
        copying.store(false, fault == 4 ? memory_order_relaxed : dekker_store);
        received.store(++number, memory_order_release);
      } else {
        copying.store(false, dekker_store);
        return;
      }
    }
  }
};

/// StreamCrew::find(), carry() and together() (execute/impl/stream_crew.hpp): two threads take the
/// batches of a source (serial), a parallel stage and a serial one, and one of them works on alone
/// when they are joined. What is parked is not always taken by the one that parked it. Fault 1: a
/// batch is parked without a release. Fault 2: a turn is given without one. Fault 3: the exchange
/// that holds a batch acquires nothing.
template <int fault>
struct Crew : rl::test_suite<Crew<fault>, 2> {
  static constexpr unsigned count = 3, slots = 2, batches = 2, held = 99;
  static constexpr bool serial[count] = {true, false, true};
  rl::var<unsigned> filled[slots], token[slots], made{0}, left{0};
  rl::var<bool> ended{false};
  Atomic<unsigned> turns[count], parked[slots], waiting{0};
  Atomic<bool> closed{false};

  void before() {
    for (unsigned slot = 0; slot < slots; ++slot) {
      parked[slot].store(slot * count, memory_order_relaxed);
      filled[slot](RL_INFO) = 0;
    }
  }
  void thread(unsigned) { work(); }
  void after() {  // on the rest: the last thread may have looked too early
    work();
    RL_ASSERT(made(RL_INFO) == batches && left(RL_INFO) == batches &&
              waiting.load(memory_order_relaxed) == 0);
  }

  void work() {
    for (;;) {
      const bool was_closed = closed.load(memory_order_relaxed);
      unsigned batch = 0, stage = 0;
      if (find(was_closed, batch, stage))
        carry(batch, stage);
      else if (was_closed)
        return;
      else
        rl::yield(1, RL_INFO);
    }
  }
  bool find(bool was_closed, unsigned& batch, unsigned& stage) {
    stage = waiting.load(memory_order_relaxed) != 0 ? count : 1;
    while (stage-- > (was_closed ? 1 : 0)) {
      if (!serial[stage]) continue;
      batch = turns[stage].load(memory_order_acquire);
      unsigned here = batch * count + stage;
      if (parked[batch % slots].load(memory_order_relaxed) != here ||
          !parked[batch % slots].compare_exchange_strong(
              here, held, fault == 3 ? memory_order_relaxed : memory_order_acquire,
              memory_order_relaxed))
        continue;
      if (stage != 0) waiting.fetch_sub(1, memory_order_relaxed);
      return true;
    }
    return false;
  }
  void carry(unsigned batch, unsigned stage) {
    const unsigned slot = batch % slots;
    do {
      if (stage == 0) {
        const bool more = !ended(RL_INFO) && made(RL_INFO) < batches;
        filled[slot](RL_INFO) = more;
        if (more) {
          token[slot](RL_INFO) = made(RL_INFO);
          made(RL_INFO) = made(RL_INFO) + 1;
        } else {
          ended(RL_INFO) = true;
          closed.store(true);
        }
      } else if (filled[slot](RL_INFO) > 0) {
        if (stage == 1) token[slot](RL_INFO) = token[slot](RL_INFO) + 10;
        if (stage == 2) {
          RL_ASSERT(token[slot](RL_INFO) == left(RL_INFO) + 10);  // in order
          left(RL_INFO) = left(RL_INFO) + 1;
        }
      }
      if (serial[stage])
        turns[stage].store(batch + 1, fault == 2 ? memory_order_relaxed : memory_order_release);
      ++stage;
    } while (stage < count && (!serial[stage] || turns[stage].load(memory_order_acquire) == batch));
    if (stage == count) {
      batch += slots;
      stage = 0;
    } else {
      waiting.fetch_add(1, memory_order_relaxed);
    }
    parked[slot].store(batch * count + stage,
                       fault == 1 ? memory_order_relaxed : memory_order_release);
  }
};

/// ~ThreadCaches() and CachedPool::end() (memory/impl/thread_caches.hpp): two threads end while the
/// pool does. Fault 1: a thread does not look again under the lock. Fault 2: the pool ends without
/// it.
template <int fault>
struct Caches : rl::test_suite<Caches<fault>, 3> {
  rl::mutex ending;
  Atomic<bool> pool{true};   // CachedPool::Link::pool is not null
  rl::var<int> returned{0};  // in the memory of the pool

  void thread(unsigned index) {
    if (index == 2) {
      if (fault != 2) ending.lock(RL_INFO);
      pool.store(false);
      if (fault != 2) ending.unlock(RL_INFO);
      returned(RL_INFO) = -1;  // the memory has another owner
      return;
    }
    if (!pool.load()) return;
    ending.lock(RL_INFO);
    if (fault == 1 || pool.load()) returned(RL_INFO) = returned(RL_INFO) + 1;
    ending.unlock(RL_INFO);
  }
};

/// Returns what Relacy finds in a test: "" or the kind of fault. It runs all interleavings with at
/// most `switches` switches from a thread that could go on, and all values that a load may have.
template <class Test>
std::string found(unsigned switches) {
  rl::test_params parameters;
  std::ostream output(
      nullptr);  // Relacy replaces the heap of this program: a stream must not use it
  parameters.search_type = rl::fair_context_bound_scheduler_type;
  parameters.context_bound = switches;
  parameters.iteration_count = std::numeric_limits<rl::iteration_t>::max();
  parameters.output_stream = &output;
  parameters.progress_stream = &output;
  if (rl::simulate<Test>(parameters)) return {};
  return rl::test_result_str(parameters.test_result);
}

constexpr const char* race = "DATA RACE";

}  // namespace

TEST_CASE("what a brief mutex protects is seen by the next that holds it") {
  CHECK(found<Counting<heddle::memory::impl::BriefMutex>>(4) == "");
  CHECK(found<Counting<WeakMutex<0>>>(4) == "");
  CHECK(found<Counting<WeakMutex<1>>>(4) == race);
  CHECK(found<Counting<WeakMutex<2>>>(4) == race);
}

TEST_CASE("a message is seen whole, and its memory is free when its sender uses it again") {
  CHECK(found<Channel<0>>(4) == "");
  CHECK(found<Channel<1>>(4) == race);
  CHECK(found<Channel<2>>(4) == race);
  CHECK(found<Channel<3>>(4) == race);
  CHECK(found<Channel<4>>(4) == race);
}

TEST_CASE("what a stage has written is seen by the thread that takes the batch on") {
  CHECK(found<Crew<0>>(2) == "");
  CHECK(found<Crew<1>>(2) == race);
  CHECK(found<Crew<2>>(2) == race);
  CHECK(found<Crew<3>>(2) == race);
}

TEST_CASE("no cache is returned to memory that has another owner") {
  CHECK(found<Caches<0>>(4) == "");
  CHECK(found<Caches<1>>(4) == race);
  CHECK(found<Caches<2>>(4) == race);
}

}  // namespace test_memory_orders

#else

TEST_CASE("the memory orders of lock-free parts") {
  SKIP("there is no Relacy (Debian: apt-get install relacy-dev), or a sanitizer");
}

#endif
