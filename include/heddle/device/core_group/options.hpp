// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The options of a core group: its grid, the division of the local memory, and the kind of a
/// launch. The emulation and the implementation for the machine share this file, so it is limited
/// to C++17.

#include <cstddef>

namespace heddle {
inline namespace v0 {

/// The grid of a group's cores. Core 8 r + c is in row r and column c.
struct CoreGrid {
  static constexpr int rows = 8;                ///< rows of cores
  static constexpr int columns = 8;             ///< columns of cores
  static constexpr int cores = rows * columns;  ///< cores of a group
};

/// The division of the local memory of every core, in bytes. Each part must be a multiple of 128.
/// The rest beside the cache and the stack is the heap, which also holds the kernel's own copy.
struct CoreGroupOptions {
  std::size_t local_memory = 256 * 1024;  ///< SW26010-Pro; the older SW26010 has 64 KB
  std::size_t cache = 0;                  ///< the part that serves as data cache, at most half
  std::size_t stack = 8 * 1024;           ///< reserved for the stack of the kernel
  int host_threads = 0;  ///< threads that emulate the group; 0: all of the host, at most 64

  /// Returns the bytes of the heap.
  [[nodiscard]] constexpr std::size_t heap() const noexcept { return local_memory - cache - stack; }
};

/// Whether the cores of a launch may wait for each other. Barriers and transfers between cores need
/// a cooperative launch.
enum class Cooperative : bool { no, yes };

}  // namespace v0
}  // namespace heddle
