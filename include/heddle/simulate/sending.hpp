// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Sending: when transfers start relative to their receiver.

#include <cstdint>

namespace heddle::inline v0 {

/// When transfers start relative to their receiver.
enum class Sending : std::uint8_t {
  eager,       ///< a message starts when its value exists; its destination may be free later
  rendezvous,  ///< a message starts only when its destination is free
};

}  // namespace heddle::inline v0
