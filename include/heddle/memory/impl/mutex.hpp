// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Mutex: of a resource that can be moved; BriefMutex: one that is held for moments. Internal.

#include <mutex>

#include <heddle/core/relax.hpp>

namespace heddle::inline v0::memory::impl {

/// A lock that is held for less time than it takes to put a thread to sleep and to wake it: who
/// finds it taken looks again some times before it sleeps.
class BriefMutex {
 public:
  void lock() {
    for (int look = 0; look < 200; ++look) {
      if (m_mutex.try_lock()) return;
      for (int i = 0; i < 16; ++i) relax();
    }
    m_mutex.lock();
  }
  void unlock() { m_mutex.unlock(); }

 private:
  std::mutex m_mutex;
};

/// A new one wherever its resource is moved to, which nobody else uses at that time: a resource
/// becomes part of another before threads share it.
struct Mutex : std::mutex {
  Mutex() = default;
  Mutex(Mutex&&) noexcept {}
};

}  // namespace heddle::inline v0::memory::impl
