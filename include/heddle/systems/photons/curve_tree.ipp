// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of curve_tree.hpp.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/photons/curve_tree.hpp>
#include <heddle/systems/photons/grid_curve.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE CurveTree::CurveTree(std::span<const std::uint64_t> keys, int dimensions, int bits,
                                   std::size_t leaf_size) {
  constexpr const char* where = "heddle::systems::CurveTree";
  expects(dimensions == 2 || dimensions == 3, [&] {
    return ErrorInfo{where, "a grid has 2 or 3 dimensions", text("dimensions = ", dimensions)};
  });
  const int max_bits = dimensions == 2 ? GridCurve<2>::max_bits : GridCurve<3>::max_bits;
  expects(bits >= 1 && bits <= max_bits, [&] {
    return ErrorInfo{where, "the keys are those of a GridCurve",
                     text("bits = ", bits, " in ", dimensions, " dimensions"),
                     text("take 1 to ", max_bits, " bits")};
  });
  expects(leaf_size >= 1, [&] {
    return ErrorInfo{where, "a leaf must have room for one item", text("leaf_size = ", leaf_size)};
  });
  for (std::size_t i = 0; i < keys.size(); ++i) {
    expects(i == 0 || keys[i - 1] <= keys[i], [&] {
      return ErrorInfo{where, "the keys are not sorted",
                       text("keys[", i - 1, "] = ", keys[i - 1], ", keys[", i, "] = ", keys[i]),
                       "sort the items by their keys"};
    });
    expects(keys[i] >> (dimensions * bits) == 0, [&] {
      return ErrorInfo{where, "the curve has no such key",
                       text("keys[", i, "] = ", keys[i], ", bits = ", bits)};
    });
  }
  m_nodes.push_back({0, keys.size(), 0, 0});
  for (std::size_t n = 0; n < m_nodes.size(); ++n) {
    const CurveNode node = m_nodes[n];
    if (node.size() <= leaf_size || keys[node.first] == keys[node.last - 1]) continue;
    // The first digit of `dimensions` bits in which keys of the node differ divides it.
    const int highest =
        static_cast<int>(std::bit_width(keys[node.first] ^ keys[node.last - 1])) - 1;
    const int shift = highest / dimensions * dimensions;
    m_nodes[n].first_child = m_nodes.size();
    for (std::size_t at = node.first; at < node.last;) {
      const std::uint64_t digits = keys[at] >> shift;
      const auto behind =
          std::partition_point(keys.begin() + static_cast<std::ptrdiff_t>(at),
                               keys.begin() + static_cast<std::ptrdiff_t>(node.last),
                               [&](std::uint64_t key) { return key >> shift == digits; });
      const auto last = static_cast<std::size_t>(behind - keys.begin());
      m_nodes.push_back({at, last, 0, 0});
      at = last;
    }
    m_nodes[n].children = m_nodes.size() - m_nodes[n].first_child;
  }
}

}  // namespace heddle::inline v0::systems
