// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Mutex: of a resource that can be moved; BriefMutex: one that is held for moments. Internal.

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include <heddle/core/relax.hpp>

namespace heddle::inline v0::memory::impl {

/// A lock that is held for less time than it takes to put a thread to sleep and to wake it: who
/// finds it taken looks again some times, and then now and then. Giving it up wakes nobody, so that
/// it is a store, which need not wait for those before it as a locked instruction does.
class BriefMutex {
 public:
  void lock() {
    for (int look = 0; m_taken.exchange(true, std::memory_order_acquire);) {
      while (m_taken.load(std::memory_order_relaxed))
        if (++look < 200)
          for (int i = 0; i < 16; ++i) relax();
        else
          std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
  void unlock() { m_taken.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> m_taken{false};
};

/// A new one wherever its resource is moved to, which nobody else uses at that time: a resource
/// becomes part of another before threads share it.
struct Mutex : std::mutex {
  Mutex() = default;
  Mutex(Mutex&&) noexcept {}
};

}  // namespace heddle::inline v0::memory::impl
