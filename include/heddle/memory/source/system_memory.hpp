// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SystemMemory: how much memory the machine has.

#include <cstddef>
#include <limits>
#include <sys/sysinfo.h>

namespace heddle::inline v0::memory {

/// What all processes of the machine have together. Bytes.
struct SystemMemory {
  std::size_t physical;  ///< of its memory
  std::size_t swap;      ///< of disks, for pages that do not fit into it
};

/// Asks the system; unlimited where it does not say. Calls no malloc().
[[nodiscard]] inline SystemMemory system_memory() noexcept {
  struct ::sysinfo info {};
  if (::sysinfo(&info) != 0) return {std::numeric_limits<std::size_t>::max(), 0};
  return {std::size_t{info.totalram} * info.mem_unit, std::size_t{info.totalswap} * info.mem_unit};
}

}  // namespace heddle::inline v0::memory
