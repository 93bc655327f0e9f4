// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SystemMemory: the size of the machine's memory.

#include <cstddef>
#include <limits>
#include <sys/sysinfo.h>

namespace heddle::inline v0::memory {

/// The memory that all processes of the machine share, in bytes.
struct SystemMemory {
  std::size_t physical;  ///< main memory
  std::size_t swap;      ///< swap space on disks
};

/// Returns the machine's memory, or unlimited memory if the system does not report it. Calls no
/// malloc().
[[nodiscard]] inline SystemMemory system_memory() noexcept {
  struct ::sysinfo info {};
  if (::sysinfo(&info) != 0) return {std::numeric_limits<std::size_t>::max(), 0};
  return {std::size_t{info.totalram} * info.mem_unit, std::size_t{info.totalswap} * info.mem_unit};
}

}  // namespace heddle::inline v0::memory
