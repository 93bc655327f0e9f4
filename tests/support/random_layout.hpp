// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Random meshes, sizes and layouts, the same on all ranks that draw from the same seed.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/layout.hpp>

namespace heddle::test {

/// Draws one after the other.
class LayoutDraw {
 public:
  explicit LayoutDraw(std::uint64_t seed) : m_random(seed, "layout") {}

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(m_random.below(m_next++, static_cast<std::uint64_t>(bound)));
  }

  /// A mesh of exactly so many ranks: its prime factors dealt out to one to three axes.
  MeshShape mesh(std::int64_t ranks) { return mesh(ranks, static_cast<std::size_t>(1 + below(3))); }

  /// A mesh of exactly so many ranks: its prime factors dealt out to `dims` axes.
  MeshShape mesh(std::int64_t ranks, std::size_t dims) {
    std::vector<MeshAxis> axes(dims);
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
      axes[axis].name = std::string(1, names[axis]);
    for (int factor = 2; ranks > 1; ++factor)
      for (; ranks % factor == 0; ranks /= factor)
        axes[static_cast<std::size_t>(below(static_cast<std::int64_t>(axes.size())))].size *=
            factor;
    return MeshShape(std::move(axes));
  }

  /// 1 to `dims` dimensions of 0 to `most` elements; 0 is rare.
  std::vector<std::int64_t> sizes(std::int64_t dims, std::int64_t most) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(1 + below(dims)));
    for (std::int64_t& size : sizes) size = below(20) == 0 ? 0 : 1 + below(most);
    return sizes;
  }

  /// Any order for an axis of so many ranks.
  ShardOrder order(int ranks, bool in_blocks) {
    switch (below(in_blocks ? 3 : 6)) {
      case 0:
      case 1: return ShardOrder::even();
      case 2: {
        std::vector<std::int64_t> weights(static_cast<std::size_t>(ranks));
        for (std::int64_t& weight : weights) weight = below(4);
        weights[static_cast<std::size_t>(below(ranks))] += 1;
        return ShardOrder::weighted(std::move(weights));
      }
      case 3: return ShardOrder::cyclic(1 + below(3));
      case 4: return ShardOrder::strided(1 + below(3));
      default: return ShardOrder::zigzag();
    }
  }

  /// Any placements; some dimensions have a halo. Partial ones merge as `merge`, where there are to
  /// be any.
  std::vector<Placement> placements(const MeshShape& mesh, std::int64_t dims, bool partial,
                                    Merge merge = Merge::sum) {
    std::vector<std::int64_t> halo(static_cast<std::size_t>(dims));
    for (std::int64_t& width : halo) width = below(4) == 0 ? 1 + below(2) : 0;
    std::vector<Placement> placements;
    for (const MeshAxis& axis : mesh.axes()) {
      const std::int64_t kind = below(partial ? 5 : 4);
      if (kind == 0) {
        placements.emplace_back(Replicate{});
      } else if (kind == 4) {
        placements.emplace_back(Partial{merge});
      } else {
        const std::int64_t dim = below(dims);
        const std::int64_t width = halo[static_cast<std::size_t>(dim)];
        placements.emplace_back(Shard{static_cast<int>(dim), order(axis.size, width > 0), width});
      }
    }
    return placements;
  }

  /// Any layout of these sizes.
  Layout layout(const MeshShape& mesh, const std::vector<std::int64_t>& sizes) {
    return {mesh, sizes,
            placements(mesh, static_cast<std::int64_t>(sizes.size()), true,
                       static_cast<Merge>(below(4)))};
  }

 private:
  static constexpr std::array names = {'x', 'y', 'z'};
  Random m_random;
  std::uint64_t m_next = 0;
};

}  // namespace heddle::test
