// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Random meshes, sizes and layouts, the same on all ranks that draw from the same seed.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>

#include "support/coverage.hpp"

namespace heddle::test {

/// Counts what `layout` has of what a layout can have. `which` names it among several of a case.
inline void count_layout(Coverage& coverage, const Layout& layout, const std::string& which = "") {
  std::array<int, 4> kinds{};  // axes that are Replicate, Partial, Shard, Shard with a halo
  std::vector<int> shards(layout.dims(), 0);
  std::string orders;
  for (std::size_t axis = 0; axis < layout.placements().size(); ++axis) {
    const Placement& placement = layout.placements()[axis];
    if (layout.mesh().axes()[axis].size == 1) continue;  // says nothing
    if (const auto* const shard = std::get_if<Shard>(&placement)) {
      ++kinds[shard->halo > 0 ? 3 : 2];
      ++shards[static_cast<std::size_t>(shard->dim)];
      orders += text(shard->order);
    } else {
      ++kinds[std::holds_alternative<Partial>(placement) ? 1 : 0];
    }
  }
  const auto count = [&](const char* name, bool is) { coverage.count(which + name, is); };
  count("replicated", kinds[0] > 0);
  count("partial", kinds[1] > 0);
  count("partial on two axes", kinds[1] > 1);
  count("with a halo", kinds[3] > 0);
  count("two axes on one dimension", std::ranges::any_of(shards, [](int n) { return n > 1; }));
  count("two dimensions divided", std::ranges::count_if(shards, [](int n) { return n > 0; }) > 1);
  count("three dimensions divided", std::ranges::count_if(shards, [](int n) { return n > 0; }) > 2);
  for (const char* const order : {"weighted", "cyclic", "strided", "zigzag"})
    count(order, orders.find(order) != std::string::npos);
  count("without elements", layout.elements() == 0);
  count("of four dimensions or more", layout.dims() > 3);
}

/// Draws one after the other.
class LayoutDraw {
 public:
  explicit LayoutDraw(std::uint64_t seed) : m_random(seed, "layout") {}

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(m_random.below(m_next++, static_cast<std::uint64_t>(bound)));
  }

  /// A mesh of exactly so many ranks: its prime factors dealt out to one to three axes; half the
  /// time to the smallest of three, because few meshes have three axes of several ranks otherwise.
  MeshShape mesh(std::int64_t ranks) {
    return below(2) == 0 ? mesh(ranks, 3, true)
                         : mesh(ranks, static_cast<std::size_t>(1 + below(3)), false);
  }

  /// A mesh of exactly so many ranks: its prime factors dealt out to `dims` axes, to the smallest
  /// if `evenly`.
  MeshShape mesh(std::int64_t ranks, std::size_t dims, bool evenly) {
    std::vector<MeshShape::Axis> axes(dims);
    for (std::size_t axis = 0; axis < axes.size(); ++axis)
      axes[axis].name = std::string(1, names[axis]);
    for (int factor = 2; ranks > 1; ++factor)
      for (; ranks % factor == 0; ranks /= factor) {
        MeshShape::Axis& axis =
            evenly ? *std::ranges::min_element(axes, {}, &MeshShape::Axis::size)
                   : axes[static_cast<std::size_t>(below(static_cast<std::int64_t>(axes.size())))];
        axis.size *= factor;
      }
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
  /// be any. Axes are of one kind half the time, because few layouts are partial on several axes or
  /// divide several dimensions otherwise.
  std::vector<Placement> placements(const MeshShape& mesh, std::int64_t dims, bool partial,
                                    Merge merge = Merge::sum) {
    std::vector<std::int64_t> halo(static_cast<std::size_t>(dims));
    for (std::int64_t& width : halo) width = below(4) == 0 ? 1 + below(2) : 0;
    std::vector<Placement> placements;
    const std::int64_t way = below(4);  // all partial, if any may be; each another dimension; any
    const std::int64_t turn = below(dims);
    for (const MeshShape::Axis& axis : mesh.axes()) {
      const std::int64_t kind = way == 0 && partial ? 4 : way == 1 ? 1 : below(partial ? 5 : 4);
      if (kind == 0) {
        placements.emplace_back(Replicate{});
      } else if (kind == 4) {
        placements.emplace_back(Partial{merge});
      } else {
        const auto next = static_cast<std::int64_t>(placements.size());
        const std::int64_t dim = way == 1 ? (turn + next) % dims : below(dims);
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
