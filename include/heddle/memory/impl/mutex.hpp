// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Mutex: the mutex of a movable resource. Internal.

#include <mutex>

#include <heddle/memory/impl/fork_guard.hpp>

namespace heddle::inline v0::memory::impl {

/// A mutex that is unlocked in a child of fork(). Moving a resource constructs a new mutex. This is
/// correct because no other thread uses the resource then.
class Mutex : public std::mutex {
 public:
  Mutex() = default;
  Mutex(Mutex&&) noexcept {}

 private:
  ForkGuard m_guard{static_cast<std::mutex&>(*this)};
};

}  // namespace heddle::inline v0::memory::impl
