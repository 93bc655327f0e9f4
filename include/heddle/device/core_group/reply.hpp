// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The word by which a transfer tells an emulated core that it is complete.

#include <cstdint>

namespace heddle::inline v0::emulated {

/// Counts the completed transfers that were begun with it. Lies in the local memory of the core
/// that waits for it: take it from Core::reply().
struct Reply {
  std::uint32_t count = 0;  ///< set it to 0 where no transfer is on its way
};

}  // namespace heddle::inline v0::emulated
