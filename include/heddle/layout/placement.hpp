// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Placements: what becomes of a tensor along one axis of a mesh: Shard, Replicate or Partial.

#include <cstdint>
#include <iosfwd>
#include <variant>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/shard_order.hpp>

namespace heddle::inline v0 {

/// Dimension `dim` is dealt out to the ranks of the axis. Where several axes deal out one
/// dimension, each deals out what the axes before it have left to a rank.
struct Shard {
  int dim = 0;            ///< 0 is the outermost
  ShardOrder order = {};  ///< which indices go to which rank
  /// So many elements more at both ends of a rank's block, which hold copies of its neighbours'.
  std::int64_t halo = 0;
  friend bool operator==(const Shard&, const Shard&) = default;
};

/// Every rank of the axis has the same.
struct Replicate {
  friend bool operator==(Replicate, Replicate) = default;
};

/// What elements are merged with.
enum class Merge : std::uint8_t { sum, product, min, max };

/// Every rank of the axis has a part of each element: their sum, or what `merge` makes of them, is
/// its value.
struct Partial {
  Merge merge = Merge::sum;  ///< what makes a value of the parts
  friend bool operator==(Partial, Partial) = default;
};

/// One of the three.
using Placement = std::variant<Shard, Replicate, Partial>;

/// As it is written: `sum`.
std::ostream& operator<<(std::ostream& out, Merge merge);
/// As in "Shard(0)", "Shard(1, zigzag)", "Shard(0, even, halo 2)".
std::ostream& operator<<(std::ostream& out, const Shard& shard);
/// "Replicate".
std::ostream& operator<<(std::ostream& out, Replicate);
/// As in "Partial(sum)".
std::ostream& operator<<(std::ostream& out, Partial partial);
/// As the one that it is.
std::ostream& operator<<(std::ostream& out, const Placement& placement);

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/layout/placement.ipp>
#endif
