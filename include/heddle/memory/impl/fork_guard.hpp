// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ForkGuard: holds a lock while the process forks, so that resources work in the child. Internal.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <pthread.h>
#include <utility>

#include <heddle/memory/impl/brief_mutex.hpp>

namespace heddle::inline v0::memory::impl {

/// Registers a lock that fork() takes before it copies the process. So the data that the lock
/// protects are consistent in the child, and the lock is free there, although the thread that may
/// have held it does not exist.
///
/// Locks are taken from the newest to the oldest. This is the usual order, because a resource is
/// constructed after its upstream, which it calls under its own lock. The order may be different,
/// or a thread may construct or destroy a resource under a lock. If locking takes too long for such
/// a reason, all locks are released and taken again, the missing one first.
class ForkGuard {
 public:
  /// Registers `lock`, which must outlive the guard and must not move.
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

  /// Returns the number of forks between the first process and this one. Forks without any guard do
  /// not count.
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
      doze(patience / 4);  // let other threads proceed
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
  /// Takes `first`, if it still exists, and then all others. Returns the one that took too long, or
  /// null.
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

  /// Registers the handlers when the program starts, if it uses guards at all. Replacements of
  /// malloc() that also register handlers do so earlier, so their locks are taken after these.
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
  bool m_taken = false;  ///< set by before()
  ForkGuard* m_older = nullptr;
  ForkGuard* m_newer = nullptr;
};

}  // namespace heddle::inline v0::memory::impl
