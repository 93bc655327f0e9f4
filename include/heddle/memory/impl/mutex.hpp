// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Mutex: that of a resource which can be moved. Internal.

#include <mutex>

#include <heddle/memory/impl/fork_guard.hpp>

namespace heddle::inline v0::memory::impl {

/// A mutex that a child of fork() finds free. It is a new one wherever its resource is moved to,
/// which nobody else uses at that time: a resource becomes part of another before threads share it.
class Mutex : public std::mutex {
 public:
  Mutex() = default;
  Mutex(Mutex&&) noexcept {}

 private:
  ForkGuard m_guard{static_cast<std::mutex&>(*this)};
};

}  // namespace heddle::inline v0::memory::impl
