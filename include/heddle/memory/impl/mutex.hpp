// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Mutex: of a resource that can be moved. Internal.

#include <mutex>

namespace heddle::inline v0::memory::impl {

/// A new one wherever its resource is moved to, which nobody else uses at that time: a resource
/// becomes part of another before threads share it.
struct Mutex : std::mutex {
  Mutex() = default;
  Mutex(Mutex&&) noexcept {}
};

}  // namespace heddle::inline v0::memory::impl
