// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Reply: the counter by which a transfer tells an emulated core that it is complete.

#include <cstdint>

namespace heddle::inline v0::emulated {

/// Counts the completed transfers that were started with it. It must be in the local memory of the
/// core that waits for it; Core::reply() returns one.
struct Reply {
  std::uint32_t count = 0;  ///< may be set to 0 if no transfer is in flight
};

}  // namespace heddle::inline v0::emulated
