// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Random redistributions, and what each element must be after one: found element by element, with
/// nothing of the planner.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>

#include "support/random_layout.hpp"

namespace heddle::test {

/// Two layouts of one tensor among the ranks of a communicator.
struct RedistributionCase {
  Layout source;
  Layout target;

  /// Of one mesh; of two meshes of all ranks, which they number otherwise; or of meshes of some
  /// ranks each. Sizes are small: 1 to `most_dims` dimensions of up to `most`.
  static RedistributionCase draw(std::uint64_t seed, int ranks, std::int64_t most = 7,
                                 std::int64_t most_dims = 4) {
    LayoutDraw draw(seed);
    const std::vector<std::int64_t> sizes = draw.sizes(most_dims, most);
    const auto dims = static_cast<std::int64_t>(sizes.size());
    const auto merge = static_cast<Merge>(draw.below(4));
    const std::int64_t kind = draw.below(3);
    const auto some = [&] {
      std::vector<Rank> all;
      for (int r = 0; r < ranks; ++r) all.emplace_back(r);
      if (kind == 0) return all;
      for (std::size_t i = all.size(); i-- > 1;)
        std::swap(all[i], all[static_cast<std::size_t>(draw.below(static_cast<int>(i) + 1))]);
      if (kind == 2) all.resize(static_cast<std::size_t>(1 + draw.below(ranks)));
      return all;
    };
    const std::vector<Rank> from = some();
    const MeshShape mesh = draw.mesh(static_cast<std::int64_t>(from.size()));
    const Layout source(mesh, sizes, draw.placements(mesh, dims, draw.below(2) == 0, merge), from);
    if (kind != 0) {
      const std::vector<Rank> to = some();
      const MeshShape other = draw.mesh(static_cast<std::int64_t>(to.size()));
      return {source, Layout(other, sizes, draw.placements(other, dims, false), to)};
    }
    std::vector<Placement> placements = draw.placements(mesh, dims, false);
    for (std::size_t axis = 0; axis < placements.size(); ++axis)
      if (std::holds_alternative<Partial>(source.placements()[axis]) && draw.below(2) == 0)
        placements[axis] = source.placements()[axis];
    return {source, source.with(std::move(placements))};
  }

  /// Counts what this case has of what a redistribution among `ranks` ranks can meet.
  void count(Coverage& coverage, int ranks) const {
    count_layout(coverage, source, "source ");
    count_layout(coverage, target, "target ");
    const auto same_mesh = source.ranks() == target.ranks();
    coverage.count("of one mesh", same_mesh);
    coverage.count("some ranks have neither",
                   source.mesh().size() < ranks && target.mesh().size() < ranks);
    coverage.count("some axes stay partial", target.partial().has_value());
    coverage.count("partial, of two meshes", source.partial().has_value() && !same_mesh);
    for (const Merge merge : {Merge::sum, Merge::product, Merge::min, Merge::max})
      coverage.count(text("merged by ", merge), source.partial() == merge);
  }
};

/// Calls `visit(offset, global)` for every element that rank `rank` of the mesh has: where it is in
/// its array, in elements, and which it is.
template <class Visit>
void for_each_element(const Layout& layout, Rank rank, Visit&& visit) {
  const std::vector<std::int64_t> local = layout.local_sizes(rank);
  const std::vector<std::int64_t> extents = layout.extents(rank);
  if (std::ranges::find(local, 0) != local.end()) return;
  std::vector<std::int64_t> at(local.size(), 0);
  std::vector<IndexSet> indices;
  for (std::size_t dim = 0; dim < local.size(); ++dim) indices.push_back(layout.indices(rank, dim));
  for (;;) {
    std::int64_t offset = 0;
    std::vector<std::int64_t> global;
    for (std::size_t dim = 0; dim < at.size(); ++dim) {
      offset = offset * extents[dim] + at[dim] + layout.halo(dim);
      global.push_back(indices[dim][at[dim]]);
    }
    visit(static_cast<std::size_t>(offset), global);
    std::size_t dim = at.size();
    while (dim-- > 0) {
      if (++at[dim] < local[dim]) break;
      at[dim] = 0;
      if (dim == 0) return;
    }
  }
}

/// Coordinates of a rank on the axes that are Partial, in the order of the axes.
[[nodiscard]] inline std::vector<int> part_of(const Layout& layout, Rank rank) {
  std::vector<int> part;
  for (std::size_t axis = 0; axis < layout.placements().size(); ++axis)
    if (std::holds_alternative<Partial>(layout.placements()[axis]))
      part.push_back(layout.mesh().coordinate(rank, axis));
  return part;
}

/// Of an element's part: 1 to 9, so that products stay small.
template <class T>
[[nodiscard]] T value_of(const std::vector<std::int64_t>& global, const std::vector<int>& part,
                         std::uint64_t seed) {
  std::uint64_t mixed = seed;
  for (const std::int64_t index : global)
    mixed = (mixed ^ static_cast<std::uint64_t>(index + 1)) * 0x9e3779b97f4a7c15u;
  for (const int coordinate : part)
    mixed = (mixed ^ static_cast<std::uint64_t>(coordinate + 77)) * 0xc2b2ae3d27d4eb4fu;
  return static_cast<T>(static_cast<double>(1 + (mixed >> 33) % 9) / (T(1) / T(2) == T(0) ? 1 : 7));
}

template <class T>
[[nodiscard]] T merged(Merge merge, T a, T b) {
  switch (merge) {
    case Merge::sum: return a + b;
    case Merge::product: return a * b;
    case Merge::min: return std::min(a, b);
    case Merge::max: return std::max(a, b);
  }
  return a;
}

/// What the element must be on rank `rank` of the target's mesh: its parts merged in the order of
/// their coordinates, but for axes that stay Partial.
template <class T>
[[nodiscard]] T expected(const RedistributionCase& test, Rank rank,
                         const std::vector<std::int64_t>& global, std::uint64_t seed) {
  const auto& placements = test.source.placements();
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < placements.size(); ++axis)
    if (std::holds_alternative<Partial>(placements[axis])) axes.push_back(axis);
  const bool stays_some = test.target.partial().has_value();
  std::vector<int> part(axes.size());
  T value{};
  bool first = true;
  const std::function<void(std::size_t)> visit = [&](std::size_t a) {
    if (a == axes.size()) {
      const T next = value_of<T>(global, part, seed);
      value = first ? next : merged(*test.source.partial(), value, next);
      first = false;
      return;
    }
    if (stays_some && std::holds_alternative<Partial>(test.target.placements()[axes[a]])) {
      part[a] = test.target.mesh().coordinate(rank, axes[a]);
      return visit(a + 1);
    }
    for (part[a] = 0; part[a] < test.source.mesh().axes()[axes[a]].size; ++part[a]) visit(a + 1);
  };
  if (axes.empty()) return value_of<T>(global, {}, seed);
  visit(0);
  return value;
}

}  // namespace heddle::test
