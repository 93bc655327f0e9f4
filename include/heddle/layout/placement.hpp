// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Placement: how a tensor is distributed along one axis of a mesh: Shard, Replicate or Partial.

#include <cstdint>
#include <iosfwd>
#include <variant>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/shard_order.hpp>

namespace heddle::inline v0 {

/// A placement that divides dimension `dim` among the ranks of the axis. If several axes divide one
/// dimension, each of them divides the indices that the axes before it gave to a rank.
struct Shard {
  int dim = 0;            ///< the dimension; 0 is the outermost
  ShardOrder order = {};  ///< which rank gets which indices
  /// Width of the halo in elements: copies of neighbours' elements at both ends of a rank's block.
  std::int64_t halo = 0;
  friend bool operator==(const Shard&, const Shard&) = default;
};

/// A placement that gives every rank of the axis a copy of the same elements.
struct Replicate {
  friend bool operator==(Replicate, Replicate) = default;
};

/// The operation that merges the parts of a Partial tensor.
enum class Merge : std::uint8_t { sum, product, min, max };

/// A placement that gives every rank of the axis a part of each element. The value of the element
/// is the sum of its parts, or the result of another `merge`.
struct Partial {
  Merge merge = Merge::sum;  ///< the operation that merges the parts
  friend bool operator==(Partial, Partial) = default;
};

/// The placement of a tensor along one mesh axis.
using Placement = std::variant<Shard, Replicate, Partial>;

/// Prints the name of the operation: `sum`.
std::ostream& operator<<(std::ostream& out, Merge merge);
/// Prints "Shard(0)", "Shard(1, zigzag)" or "Shard(0, even, halo 2)".
std::ostream& operator<<(std::ostream& out, const Shard& shard);
/// Prints "Replicate".
std::ostream& operator<<(std::ostream& out, Replicate);
/// Prints "Partial(sum)".
std::ostream& operator<<(std::ostream& out, Partial partial);
/// Prints the alternative that the variant holds.
std::ostream& operator<<(std::ostream& out, const Placement& placement);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/placement.ipp>
#endif
