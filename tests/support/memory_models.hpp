// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Models in Promela of the lock-free parts of memory/: each statement is the step of the header
/// that its comment names. They read the number of a planted fault from the environment.

namespace heddle::test {

/// BriefMutex (memory/impl/brief_mutex.hpp) with two threads in lock() and one in try_lock().
/// Fault 1: a load and a store instead of an exchange.
inline constexpr const char* mutex_model = R"(
byte fault;
bool taken;
byte inside;

proctype user() {
  bool was;
  byte times = 0;
  do
  :: times < 2 ->
again:
       if
       :: fault == 1 -> was = taken; taken = true     /* a load and a store are no exchange */
       :: else -> atomic { was = taken; taken = true } /* m_taken.exchange(true, acquire) */
       fi;
       if
       :: was -> taken == false; goto again           /* while (m_taken.load(relaxed)) ... */
       :: else -> skip
       fi;
       inside++;
       assert(inside == 1);
       inside--;
       taken = false;                                 /* unlock(): m_taken.store(false, release) */
       times++
  :: else -> break
  od
}

proctype tries() {
  bool was;
  atomic { was = taken; taken = true };               /* try_lock(): !m_taken.exchange(true) */
  if
  :: was -> skip
  :: else -> inside++; assert(inside == 1); inside--; taken = false
  fi
}

init {
  atomic {
    c_code { now.fault = atoi(getenv("FAULT")); };
    run user();
    run user();
    run tries()
  }
}
)";

/// ~ThreadCaches() and CachedPool::end() (memory/impl/thread_caches.hpp): two threads end while the
/// pool does. Fault 1: a thread does not look again under the lock. Fault 2: the pool ends without
/// it.
inline constexpr const char* caches_model = R"(
byte fault;
bool ending;       /* CachedPool::Link::ending is locked */
bool link = true;  /* CachedPool::Link::pool is not null */
bool alive = true; /* the memory of the pool exists */
bool retiring;

proctype thread() {
  bool pool = link;                                  /* ~ThreadCaches(): link->pool == nullptr */
  if
  :: !pool -> goto over                              /* continue */
  :: else -> skip
  fi;
  atomic { !ending -> ending = true };               /* const std::scoped_lock lock(ending) */
  if
  :: fault == 1 -> skip                              /* what was read before the lock */
  :: else -> pool = link                             /* if (pool = entry.link->pool) */
  fi;
  if
  :: pool ->
       assert(alive && !retiring);                   /* pool->retire(entry.cache) */
       retiring = true;
       assert(alive);
       retiring = false
  :: else -> skip
  fi;
  ending = false;
over: skip
}

proctype owner() {
  if
  :: fault == 2 -> link = false
  :: else ->
       atomic { !ending -> ending = true };          /* end(): std::scoped_lock lock(ending) */
       link = false;                                 /* link->pool = nullptr */
       ending = false
  fi;
  assert(!retiring);
  alive = false
}

init {
  atomic {
    c_code { now.fault = atoi(getenv("FAULT")); };
    run thread();
    run thread();
    run owner()
  }
}
)";

/// ForkGuard (memory/impl/fork_guard.hpp): a fork while resources call each other under their
/// locks, in the usual order or the other one, and while one is constructed and destroyed under a
/// lock. A deadline may pass whenever a lock is held. Fault 1: no deadline. Fault 2: a guard is
/// left out.
inline constexpr const char* fork_model = R"(
#define GUARDS 3
#define LIST 3      /* the_list */
#define NOBODY 9
#define LOCK(l) atomic { !held[l] -> held[l] = true }
#define UNLOCK(l) held[l] = false

byte fault;
bool held[4];
bool registered[GUARDS]; /* guard 0 is the oldest */
bool taken[GUARDS];      /* ForkGuard::m_taken */
byte inside[GUARDS];

/* Two resources, of which the outer one calls the inner one under its own lock. */
proctype user(byte outer; byte inner) {
  LOCK(outer);
  inside[outer]++;
  LOCK(inner);
  inside[inner]++;
  inside[inner]--;
  UNLOCK(inner);
  inside[outer]--;
  UNLOCK(outer)
}

/* Constructs a resource, and destroys it, under the lock of another one. */
proctype builder(byte outer) {
  LOCK(outer);
  inside[outer]++;
  LOCK(LIST);                                    /* ForkGuard(): scoped_lock held(the_list) */
  registered[2] = true;                          /* newest = this */
  UNLOCK(LIST);
  LOCK(2);
  UNLOCK(2);
  LOCK(LIST);                                    /* ~ForkGuard() */
  registered[2] = false;
  UNLOCK(LIST);
  inside[outer]--;
  UNLOCK(outer)
}

proctype forking() {
  byte delays = NOBODY, late, guard;
  bool is_first;
again:
  LOCK(LIST);                                    /* before(): the_list.lock() */
  late = NOBODY;
  is_first = true;                               /* take_all(): for (is_first : {true, false}) */
  do
  :: true ->
       guard = GUARDS;
       do
       :: guard > 0 && late == NOBODY ->         /* for (guard = newest; guard; guard = m_older) */
            guard--;
            if
            :: !registered[guard] || is_first != (guard == delays) -> skip
            :: fault == 2 && guard == 0 -> skip
            :: else ->
                 if                              /* !guard->take(deadline) */
                 :: atomic { !held[guard] -> held[guard] = true; taken[guard] = true }
                 :: held[guard] && fault != 1 -> late = guard
                 fi
            fi
       :: else -> break
       od;
       if
       :: is_first && late == NOBODY -> is_first = false
       :: else -> break
       fi
  od;
  delays = late;
  if
  :: delays == NOBODY -> skip
  :: else ->
       guard = 0;
       do                                        /* release_all() */
       :: guard < GUARDS ->
            if
            :: registered[guard] && taken[guard] -> taken[guard] = false; UNLOCK(guard)
            :: else -> skip
            fi;
            guard++
       :: else -> break
       od;
       UNLOCK(LIST);                             /* the_list.unlock() */
       goto again                                /* after doze() */
  fi;
  guard = 0;                                     /* fork(): nobody is within a guarded lock */
  do
  :: guard < GUARDS ->
       assert(!registered[guard] || (taken[guard] && held[guard] && inside[guard] == 0));
       guard++
  :: else -> break
  od;
  guard = 0;
  do                                             /* after_in_parent(), in_child(): release_all() */
  :: guard < GUARDS ->
       if
       :: registered[guard] && taken[guard] -> taken[guard] = false; UNLOCK(guard)
       :: else -> skip
       fi;
       guard++
  :: else -> break
  od;
  UNLOCK(LIST)
}

init {
  atomic {
    c_code { now.fault = atoi(getenv("FAULT")); };
    registered[0] = true;
    registered[1] = true;
    if                                           /* the usual order, and the other one */
    :: run user(1, 0)
    :: run user(0, 1)
    fi;
    if
    :: run builder(0)
    :: run builder(1)
    fi;
    run forking()
  }
}
)";

}  // namespace heddle::test
