// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BriefMutex: a lock that is held only briefly. lock_by(): locks any lock with a deadline.
/// Internal.

#include <atomic>
#include <chrono>
#include <ctime>

#include <heddle/core/relax.hpp>

namespace heddle::inline v0::memory::impl {

/// Suspends this thread, without the heavy <thread>.
inline void doze(std::chrono::microseconds time) noexcept {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const timespec sleep{static_cast<std::time_t>(whole.count()),
                       static_cast<long>((time - whole).count()) * 1000};
  static_cast<void>(::nanosleep(&sleep, nullptr));
}

/// A spin lock that is held for less time than it takes to put a thread to sleep and to wake it. A
/// waiting thread polls it some times, and then sleeps between polls. Unlocking wakes nobody, so it
/// is a plain store, which need not wait for earlier stores as a locked instruction does.
class BriefMutex {
 public:
  void lock() {
    for (int look = 0; m_taken.exchange(true, std::memory_order_acquire);) {
      while (m_taken.load(std::memory_order_relaxed))
        if (++look < 200)
          for (int i = 0; i < 16; ++i) heddle::impl::relax();
        else
          doze(std::chrono::microseconds(20));
    }
  }
  [[nodiscard]] bool try_lock() { return !m_taken.exchange(true, std::memory_order_acquire); }
  void unlock() { m_taken.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> m_taken{false};
};

/// The time at which lock_by() stops waiting.
using Deadline = std::chrono::steady_clock::time_point;

/// Locks `lock`, with its own lock_by() if it has one. Returns false if it could not lock before
/// `deadline`.
template <class Lock>
[[nodiscard]] bool lock_by(Lock& lock, Deadline deadline) {
  if constexpr (requires { lock.lock_by(deadline); }) {
    return lock.lock_by(deadline);
  } else {
    for (int look = 0; !lock.try_lock(); ++look) {
      if (look < 200) {
        heddle::impl::relax();
      } else {
        if (std::chrono::steady_clock::now() >= deadline) return false;
        doze(std::chrono::microseconds(20));
      }
    }
    return true;
  }
}

}  // namespace heddle::inline v0::memory::impl
