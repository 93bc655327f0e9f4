// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ForkGuard: keeps a lock while the process forks, so that resources work in the child. Internal.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <utility>

#include <heddle/memory/impl/brief_mutex.hpp>

namespace heddle::inline v0::memory::impl {

/// A lock that fork() takes before it copies the process: what the lock guards is whole in the
/// child, and the lock is free there, although the thread that may have held it does not exist.
///
/// Locks are taken from the newest to the oldest, because a resource that locks is made after its
/// upstream, which it calls under its lock. If that is not so, or a thread makes or ends a resource
/// under a lock, all locks are released after a while and taken anew, the missing one first.
class ForkGuard {
 public:
  /// `lock` outlives the guard, and does not move.
  template <class Lock>
  explicit ForkGuard(Lock& lock)
      : m_lock(&lock),
        m_take([](void* of, Deadline deadline) {
          return impl::lock_by(*static_cast<Lock*>(of), deadline);
        }),
        m_release([](void* of) { static_cast<Lock*>(of)->unlock(); }) {
    static_cast<void>(&Handlers<>::registered);
    const std::scoped_lock held(the_list);
    m_older = std::exchange(newest, this);
    if (m_older != nullptr) m_older->m_newer = this;
  }
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard() {
    const std::scoped_lock held(the_list);
    (m_newer != nullptr ? m_newer->m_older : newest) = m_older;
    if (m_older != nullptr) m_older->m_newer = m_newer;
  }

  /// The number of forks between the first process and this one, as long as there were guards.
  [[nodiscard]] static std::uint32_t forks() noexcept {
    return the_forks.load(std::memory_order_relaxed);
  }

 private:
  static void before() {
    const ForkGuard* delays = nullptr;
    for (auto patience = std::chrono::milliseconds(4);; patience *= 2) {
      the_list.lock();
      delays = take_all(delays, std::chrono::steady_clock::now() + patience);
      if (delays == nullptr) return;
      release_all();
      the_list.unlock();
      std::this_thread::sleep_for(patience / 4);  // others go on
    }
  }
  static void after_in_parent() {
    release_all();
    the_list.unlock();
  }
  static void in_child() {
    the_forks.fetch_add(1, std::memory_order_relaxed);
    after_in_parent();
  }
  /// Takes `first`, if it is still there, and then all others. Returns the one that took too long.
  [[nodiscard]] static const ForkGuard* take_all(const ForkGuard* first, Deadline deadline) {
    for (const bool is_first : {true, false})
      for (ForkGuard* guard = newest; guard != nullptr; guard = guard->m_older)
        if (is_first == (guard == first) && !guard->take(deadline)) return guard;
    return nullptr;
  }
  static void release_all() {
    for (ForkGuard* guard = newest; guard != nullptr; guard = guard->m_older)
      if (std::exchange(guard->m_taken, false)) guard->m_release(guard->m_lock);
  }
  [[nodiscard]] bool take(Deadline deadline) { return m_taken = m_take(m_lock, deadline); }

  /// Registered when the program starts, if it has a guard at all; later than with malloc()s that
  /// do likewise, whose locks are therefore taken after ours.
  template <class = void>
  struct Handlers {
    inline static const bool registered = ::pthread_atfork(before, after_in_parent, in_child) == 0;
  };

  inline static constinit BriefMutex the_list;
  inline static constinit ForkGuard* newest = nullptr;
  inline static constinit std::atomic<std::uint32_t> the_forks{0};

  void* m_lock;
  bool (*m_take)(void*, Deadline);
  void (*m_release)(void*);
  bool m_taken = false;  ///< by before()
  ForkGuard* m_older = nullptr;
  ForkGuard* m_newer = nullptr;
};

}  // namespace heddle::inline v0::memory::impl
