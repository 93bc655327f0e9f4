// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a core group is made of: its grid, how a core's local memory is divided, how a kernel is
/// launched. Shared by the emulation and the machine's own implementation, so it keeps to C++17.

#include <cstddef>

namespace heddle {
inline namespace v0 {

/// The cores of a group: core 8 r + c stands in row r, column c.
struct CoreGrid {
  static constexpr int rows = 8;                ///< rows of cores
  static constexpr int columns = 8;             ///< columns of cores
  static constexpr int cores = rows * columns;  ///< cores of a group
};

/// The division of the local memory of every core, in bytes; each part is a multiple of 128. The
/// heap is the rest beside the cache and the stack; it also holds the kernel's own copy.
struct CoreGroupOptions {
  std::size_t local_memory = 256 * 1024;  ///< SW26010-Pro; the older SW26010 has 64 KB
  std::size_t cache = 0;                  ///< the part that serves as data cache, at most half
  std::size_t stack = 8 * 1024;           ///< kept free for the kernel's stack
  int host_threads = 0;  ///< threads that emulate the group; 0: all of the host, at most 64

  /// Bytes that are left for the kernel.
  [[nodiscard]] constexpr std::size_t heap() const noexcept { return local_memory - cache - stack; }
};

/// Whether the cores of a launch may wait for each other: barriers and transfers between cores
/// need it.
enum class Cooperative : bool { no, yes };

}  // namespace v0
}  // namespace heddle
