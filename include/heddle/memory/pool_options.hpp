// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PoolOptions: how a Pool grows, and how much memory it may use.

#include <cstddef>
#include <optional>

namespace heddle::inline v0::memory {

/// The options of a Pool: how it grows, and what its threads cache. All sizes are in bytes.
struct PoolOptions {
  std::size_t min_chunk = std::size_t{2} << 20;  ///< the least size of a chunk
  /// The most that is requested at once, unless one block needs more.
  std::size_t max_chunk_growth = std::size_t{1} << 30;
  std::size_t cached = std::size_t{512} << 10;  ///< free blocks that each thread may cache
  /// The limit on all live blocks together, with rounding and the blocks that threads cache. By
  /// default it is machine_memory() at the pool's construction if the upstream is_overcommitted.
  /// Otherwise there is no limit by default.
  std::optional<std::size_t> most = std::nullopt;
};

}  // namespace heddle::inline v0::memory
