// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Random layouts with halos, and what each place of an array must hold after an exchange.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include <heddle/schedule.hpp>

#include "support/random_layout.hpp"
#include "support/redistribution_case.hpp"

namespace heddle::test {

/// A layout of 1 to 3 dimensions, most of which have a halo.
struct HaloCase {
  Layout layout;
  schedule::HaloOptions options;

  static HaloCase draw(std::uint64_t seed, int ranks) {
    LayoutDraw draw(seed + 1000003);
    const std::vector<std::int64_t> sizes = draw.sizes(3, 7);
    // A third of the meshes has some of the ranks, in any order.
    std::vector<Rank> chosen;
    if (draw.below(3) == 0) {
      for (int r = 0; r < ranks; ++r)
        chosen.insert(chosen.begin() + draw.below(static_cast<std::int64_t>(chosen.size()) + 1),
                      Rank{r});
      chosen.resize(static_cast<std::size_t>(1 + draw.below(ranks)), Rank{0});
    }
    const MeshShape mesh =
        draw.mesh(chosen.empty() ? ranks : static_cast<std::int64_t>(chosen.size()));
    std::vector<Placement> placements =
        draw.placements(mesh, static_cast<std::int64_t>(sizes.size()), true);
    std::vector<std::int64_t> halo(sizes.size());
    for (std::int64_t& width : halo) width = draw.below(4);
    for (std::size_t axis = 0; axis < placements.size(); ++axis)
      if (Shard* const shard = std::get_if<Shard>(&placements[axis])) {
        shard->halo = halo[static_cast<std::size_t>(shard->dim)];
        if (shard->halo > 0) shard->order = draw.order(mesh.axes()[axis].size, true);
      }
    schedule::HaloOptions options{.corners = draw.below(3) != 0};
    if (draw.below(2) == 0)
      for (std::size_t dim = 0; dim < sizes.size(); ++dim)
        options.periodic.push_back(draw.below(2) == 0);
    return {Layout(mesh, sizes, std::move(placements), std::move(chosen)), std::move(options)};
  }

  /// What place `place` of the array of rank `rank` must hold: its own element, a neighbour's, or
  /// `untouched`.
  template <class T>
  [[nodiscard]] T meant(Rank rank, std::size_t place, T untouched, std::uint64_t seed) const {
    const std::vector<std::int64_t> extents = layout.extents(rank);
    std::vector<std::int64_t> global(extents.size());
    int outside = 0;
    for (const std::int64_t size : layout.local_sizes(rank))
      if (size == 0) return untouched;
    for (std::size_t dim = extents.size(); dim-- > 0;) {
      const IndexSet indices = layout.indices(rank, dim);
      const std::int64_t at =
          static_cast<std::int64_t>(place % static_cast<std::size_t>(extents[dim])) -
          layout.halo(dim);
      place /= static_cast<std::size_t>(extents[dim]);
      if (at >= 0 && at < indices.size()) {
        global[dim] = indices[at];
        continue;
      }
      ++outside;
      const std::int64_t size = layout.sizes()[dim];
      std::int64_t index = indices[0] + at;  // one block of neighbours
      const bool around = !options.periodic.empty() && options.periodic[dim];
      if (around) index = (index % size + size) % size;
      if (index < 0 || index >= size) return untouched;
      global[dim] = index;
    }
    if (outside > 1 && !options.corners) return untouched;
    return value_of<T>(global, part_of(layout, rank), seed);
  }
};

}  // namespace heddle::test
