// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Sending: how transfers meet their receiver.

#include <cstdint>

namespace heddle::inline v0 {

/// How transfers meet their receiver.
enum class Sending : std::uint8_t {
  eager,       ///< a message travels as soon as its value exists; the destination may be free later
  rendezvous,  ///< it starts only when the destination is free to take it
};

}  // namespace heddle::inline v0
