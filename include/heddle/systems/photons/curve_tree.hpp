// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CurveTree: the quadtree or octree of items that are sorted by their keys on a GridCurve.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::systems {

/// A node of a CurveTree: the items [first, last) of the sorted list.
struct CurveNode {
  std::size_t first = 0;        ///< its first item
  std::size_t last = 0;         ///< one past its last item
  std::size_t first_child = 0;  ///< number of its first child; the others follow
  std::size_t children = 0;     ///< number of children, 0 for a leaf

  /// Returns the number of items.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return last - first; }
  /// Returns true if the node has no children.
  [[nodiscard]] constexpr bool is_leaf() const noexcept { return children == 0; }
  friend constexpr bool operator==(const CurveNode&, const CurveNode&) = default;
};

/// A tree over sorted keys. A node is a cube of the grid, and its items are a contiguous part of
/// the list, so a piece of a curve (see cut_curve()) has a tree of its own. Node 0 is the root, and
/// a child has a higher number than its parent. A node has 2 to 2^dimensions children, because
/// cubes with a single occupied subcube are skipped.
class CurveTree {
 public:
  /// Constructs the tree of `keys` of a GridCurve with these dimensions and bits. Nodes with more
  /// than `leaf_size` items are divided. Only a leaf of equal keys may have more items.
  /// @throws contract_error if the keys are not sorted or not on the curve, if leaf_size is 0, if
  ///         dimensions is neither 2 nor 3, or if bits is not in the range of GridCurve.
  CurveTree(std::span<const std::uint64_t> keys, int dimensions, int bits, std::size_t leaf_size);

  /// Returns the nodes. There is at least the root, which has no items if there are no keys.
  [[nodiscard]] const std::vector<CurveNode>& nodes() const noexcept { return m_nodes; }

 private:
  std::vector<CurveNode> m_nodes;
};

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/photons/curve_tree.ipp>
#endif
