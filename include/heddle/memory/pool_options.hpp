// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PoolOptions: how a Pool grows, and how far.

#include <cstddef>
#include <optional>

namespace heddle::inline v0::memory {

/// How a Pool grows, and what its threads keep. Bytes.
struct PoolOptions {
  std::size_t least_chunk = std::size_t{2} << 20;  ///< of what is asked of upstream at once
  std::size_t most_growth = std::size_t{1} << 30;  ///< likewise, but for larger blocks
  std::size_t cached = std::size_t{512} << 10;  ///< of free blocks: what a thread may have at hand
  /// All blocks at once, rounded up, with what threads have at hand. Not said: machine_memory()
  /// when the pool is made, if upstream is_overcommitted; no limit, if it is not.
  std::optional<std::size_t> most = std::nullopt;
};

}  // namespace heddle::inline v0::memory
