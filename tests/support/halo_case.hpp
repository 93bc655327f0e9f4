// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Random layouts with halos, and what each place of an array must hold after an exchange.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "support/coverage.hpp"
#include "support/random_layout.hpp"
#include "support/redistribution_case.hpp"

namespace heddle::test {

/// A layout of 1 to 3 dimensions, most of which have a halo.
struct HaloCase {
  Layout layout;
  schedule::HaloOptions options;

  /// Random placements seldom divide every dimension, so a third of the cases does, in three
  /// dimensions with a halo each: edges and corners of three dimensions occur in these alone.
  static HaloCase draw(std::uint64_t seed, int ranks) {
    LayoutDraw draw(seed + 1000003);
    const bool every = draw.below(3) == 0;
    std::vector<std::int64_t> sizes = draw.sizes(3, 7);
    if (every) sizes = {2 + draw.below(4), 2 + draw.below(4), 2 + draw.below(4)};
    // A third of the meshes has some of the ranks, in any order.
    std::vector<Rank> chosen;
    if (draw.below(3) == 0) {
      for (int r = 0; r < ranks; ++r)
        chosen.insert(chosen.begin() + draw.below(static_cast<std::int64_t>(chosen.size()) + 1),
                      Rank{r});
      chosen.resize(static_cast<std::size_t>(1 + draw.below(ranks)), Rank{0});
    }
    const std::int64_t count = chosen.empty() ? ranks : static_cast<std::int64_t>(chosen.size());
    const MeshShape mesh = every ? draw.mesh(count, 3, draw.below(2) == 0) : draw.mesh(count);
    std::vector<Placement> placements =
        draw.placements(mesh, static_cast<std::int64_t>(sizes.size()), true);
    if (every)
      for (std::size_t axis = 0; axis < 3; ++axis)
        placements[axis] = Shard{static_cast<int>((axis + seed) % 3)};
    std::vector<std::int64_t> halo(sizes.size());
    for (std::int64_t& width : halo) width = every ? 1 + draw.below(2) : draw.below(4);
    for (std::size_t axis = 0; axis < placements.size(); ++axis)
      if (Shard* const shard = std::get_if<Shard>(&placements[axis])) {
        shard->halo = halo[static_cast<std::size_t>(shard->dim)];
        if (shard->halo > 0) shard->order = draw.order(mesh.axes()[axis].size, true);
      }
    schedule::HaloOptions options{.corners = draw.below(3) != 0};
    if (draw.below(2) == 0)
      for (std::size_t dim = 0; dim < sizes.size(); ++dim)
        options.periodic.push_back(draw.below(every ? 5 : 2) == 0);
    if (every) options.periodic.flip();  // most are
    return {Layout(mesh, sizes, std::move(placements), std::move(chosen)), std::move(options)};
  }

  /// An element that belongs to a place of a rank's array.
  struct Element {
    std::vector<std::int64_t> global;
    std::size_t outside = 0;  ///< dimensions in which the place is in the halo
  };

  /// The element that belongs to place `place` of the array of rank `rank`, whether or not corners
  /// are filled; none beyond the ends of the tensor, nor on a rank without elements.
  [[nodiscard]] std::optional<Element> element(Rank rank, std::size_t place) const {
    const std::vector<std::int64_t> extents = layout.extents(rank);
    Element found{.global = std::vector<std::int64_t>(extents.size())};
    for (const std::int64_t size : layout.local_sizes(rank))
      if (size == 0) return std::nullopt;
    for (std::size_t dim = extents.size(); dim-- > 0;) {
      const IndexSet indices = layout.indices(rank, dim);
      const std::int64_t at =
          static_cast<std::int64_t>(place % static_cast<std::size_t>(extents[dim])) -
          layout.halo(dim);
      place /= static_cast<std::size_t>(extents[dim]);
      if (at >= 0 && at < indices.size()) {
        found.global[dim] = indices[at];
        continue;
      }
      ++found.outside;
      const std::int64_t size = layout.sizes()[dim];
      std::int64_t index = indices[0] + at;  // one block of neighbours
      const bool around = !options.periodic.empty() && options.periodic[dim];
      if (around) index = (index % size + size) % size;
      if (index < 0 || index >= size) return std::nullopt;
      found.global[dim] = index;
    }
    return found;
  }

  /// What place `place` of the array of rank `rank` must hold: its own element, a neighbour's, or
  /// `untouched`.
  template <class T>
  [[nodiscard]] T meant(Rank rank, std::size_t place, T untouched, std::uint64_t seed) const {
    const std::optional<Element> found = element(rank, place);
    if (!found || (found->outside > 1 && !options.corners)) return untouched;
    return value_of<T>(found->global, part_of(layout, rank), seed);
  }

  /// Counts what this case has of what a halo exchange among `ranks` ranks can meet.
  void count(Coverage& coverage, int ranks) const {
    // By the dimensions in which a place is outside: of other ranks' elements, and of the rank's
    // own on the other side.
    std::array<bool, 4> others{}, own{};
    bool skipped = false, empty = false, far = false;
    for (int r = 0; r < layout.mesh().size(); ++r) {
      const Rank rank{r};
      std::size_t places = 1;
      for (const std::int64_t extent : layout.extents(rank))
        places *= static_cast<std::size_t>(extent);
      for (std::size_t dim = 0; dim < layout.dims(); ++dim) {
        empty |= layout.indices(rank, dim).size() == 0;
        far |= layout.halo(dim) > layout.indices(rank, dim).size();
      }
      for (std::size_t place = 0; place < places; ++place)
        if (const auto found = element(rank, place); found && found->outside > 0) {
          if (found->outside == 3 && !options.corners) skipped = true;
          if (found->outside > 1 && !options.corners) continue;
          const bool mine = layout.to_local(rank, found->global).has_value();
          (mine ? own : others)[found->outside] = true;
        }
    }
    constexpr std::array names = {"", "faces", "edges (2 dimensions)", "corners (3 dimensions)"};
    for (std::size_t outside = 1; outside < names.size(); ++outside) {
      coverage.count(text(names[outside], " that other ranks own"), others[outside]);
      coverage.count(text(names[outside], " that the rank itself owns"), own[outside]);
    }
    coverage.count("corners (3 dimensions) that the options leave out", skipped);
    coverage.count("a rank without elements", empty);
    coverage.count("a halo wider than a rank's block", far);
    coverage.count("a mesh of some of the ranks", layout.mesh().size() < ranks);
    coverage.count("several ranks with the same elements, or parts of them",
                   std::ranges::any_of(layout.placements(), [](const Placement& placement) {
                     return !std::holds_alternative<Shard>(placement);
                   }));
  }
};

}  // namespace heddle::test
