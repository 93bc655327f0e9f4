// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of layout.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/layout.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Layout::Layout(MeshShape mesh, std::vector<std::int64_t> sizes,
                             std::vector<Placement> placements, std::vector<Rank> ranks) {
  Body body{std::move(mesh), std::move(sizes), std::move(placements), std::move(ranks), {}, {}};
  check_sizes(body);
  body.halos.assign(body.sizes.size(), 0);
  expects(body.placements.size() == body.mesh.axes().size(), [&] {
    return ErrorInfo{where, "each axis of the mesh needs one placement",
                     text(body.placements.size(), " placements, the mesh is ", body.mesh),
                     "give Replicate for an axis that does not divide the tensor"};
  });
  for (std::size_t axis = 0; axis < body.placements.size(); ++axis) check_placement(body, axis);
  check_halos(body);
  check_ranks(body);
  m_body = std::make_shared<const Body>(std::move(body));
}

HEDDLE_INLINE std::optional<Rank> Layout::rank_here(Rank of_all) const {
  const auto found = std::ranges::find(m_body->ranks, of_all);
  if (found == m_body->ranks.end()) return std::nullopt;
  return Rank{found - m_body->ranks.begin()};
}

HEDDLE_INLINE IndexSet Layout::indices(Rank rank, std::size_t dim) const {
  IndexSet indices(m_body->sizes[dim]);
  for (std::size_t axis = 0; axis < m_body->placements.size(); ++axis) {
    const Shard* shard = std::get_if<Shard>(&m_body->placements[axis]);
    if (shard == nullptr || static_cast<std::size_t>(shard->dim) != dim) continue;
    indices = indices.at(shard->order.share(indices.size(), mesh().axes()[axis].size,
                                            mesh().coordinate(rank, axis)));
  }
  return indices;
}

HEDDLE_INLINE std::vector<std::int64_t> Layout::local_sizes(Rank rank) const {
  std::vector<std::int64_t> local;
  for (std::size_t dim = 0; dim < dims(); ++dim) local.push_back(indices(rank, dim).size());
  return local;
}

HEDDLE_INLINE std::vector<std::int64_t> Layout::extents(Rank rank) const {
  std::vector<std::int64_t> extents = local_sizes(rank);
  for (std::size_t dim = 0; dim < dims(); ++dim) extents[dim] += 2 * halo(dim);
  return extents;
}

HEDDLE_INLINE std::vector<std::int64_t> Layout::to_global(
    Rank rank, std::span<const std::int64_t> local) const {
  expect_dims("to_global", local.size());
  std::vector<std::int64_t> global;
  for (std::size_t dim = 0; dim < dims(); ++dim) global.push_back(indices(rank, dim)[local[dim]]);
  return global;
}

HEDDLE_INLINE std::optional<std::vector<std::int64_t>> Layout::to_local(
    Rank rank, std::span<const std::int64_t> global) const {
  expect_dims("to_local", global.size());
  std::vector<std::int64_t> local;
  for (std::size_t dim = 0; dim < dims(); ++dim) {
    const auto position = indices(rank, dim).position(global[dim]);
    if (!position) return std::nullopt;
    local.push_back(*position);
  }
  return local;
}

HEDDLE_INLINE std::vector<Rank> Layout::owners(std::span<const std::int64_t> global) const {
  std::vector<Rank> owners;
  for (int r = 0; r < mesh().size(); ++r)
    if (to_local(Rank{r}, global)) owners.emplace_back(r);
  return owners;
}

HEDDLE_INLINE Layout Layout::with(std::vector<Placement> placements) const {
  return {mesh(), sizes(), std::move(placements), ranks()};
}

HEDDLE_INLINE Layout Layout::reversed() const {
  std::vector<Placement> turned = placements();
  for (Placement& placement : turned)
    if (Shard* const shard = std::get_if<Shard>(&placement))
      shard->dim = static_cast<int>(dims()) - 1 - shard->dim;
  return {mesh(), std::vector<std::int64_t>(sizes().rbegin(), sizes().rend()), std::move(turned),
          ranks()};
}

HEDDLE_INLINE bool operator==(const Layout& a, const Layout& b) {
  return a.m_body == b.m_body || *a.m_body == *b.m_body;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  for (std::size_t dim = 0; dim < layout.dims(); ++dim)
    out << (dim == 0 ? "" : " x ") << layout.sizes()[dim];
  out << " on " << layout.mesh();
  bool first_ones = true;
  for (std::size_t r = 0; r < layout.ranks().size(); ++r)
    first_ones = first_ones && +layout.ranks()[r] == r;
  for (std::size_t r = 0; r < layout.ranks().size() && !first_ones; ++r)
    out << (r == 0 ? " (ranks " : ", ") << layout.ranks()[r];
  out << (first_ones ? " as " : ") as ");
  for (std::size_t axis = 0; axis < layout.placements().size(); ++axis)
    out << (axis == 0 ? "" : ", ") << layout.placements()[axis];
  return out;
}

HEDDLE_INLINE void Layout::check_sizes(const Body& body) {
  expects(!body.sizes.empty() && body.sizes.size() <= max_dims, [&] {
    return ErrorInfo{
        where, "a tensor must have 1 to 8 dimensions", text(body.sizes.size(), " sizes"),
        "use one dimension of size 1 for a scalar, and join dimensions if there are more than 8"};
  });
  std::int64_t elements = 1;
  for (const std::int64_t size : body.sizes)
    expects(
        size >= 0 && !__builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements),
        [&] {
          return ErrorInfo{where, "sizes must be at least 0, and their product must fit in 64 bits",
                           text("size ", size)};
        });
}

HEDDLE_INLINE void Layout::check_placement(Body& body, std::size_t axis) {
  const MeshShape::Axis& along = body.mesh.axes()[axis];
  const auto fail = [&](const char* what, std::string why, std::string fix = {}) {
    return ErrorInfo{text(where, ", axis '", along.name, "'"), what, std::move(why),
                     std::move(fix)};
  };
  if (const Partial* partial = std::get_if<Partial>(&body.placements[axis])) {
    expects(!body.partial || *body.partial == partial->merge, [&] {
      return fail("all Partial placements must merge by the same operation",
                  text(*partial, ", after ", Partial{*body.partial}),
                  "redistribute one of them first");
    });
    body.partial = partial->merge;
  }
  const Shard* shard = std::get_if<Shard>(&body.placements[axis]);
  if (shard == nullptr) return;
  expects(shard->dim >= 0 && static_cast<std::size_t>(shard->dim) < body.sizes.size(), [&] {
    return fail("no such dimension",
                text(*shard, " of a tensor of ", body.sizes.size(), " dimensions"),
                "number dimensions from 0, the outermost one");
  });
  expects(shard->order.fits(static_cast<std::size_t>(along.size)), [&] {
    return fail("each rank needs one weight", text(*shard, " on an axis of ", along.size, " ranks"),
                text("give ", along.size, " weights, 0 for a rank without elements"));
  });
  std::int64_t& halo = body.halos[static_cast<std::size_t>(shard->dim)];
  halo = std::max(halo, shard->halo);
  expects(shard->halo >= 0, [&] {
    return fail("the width of a halo must be at least 0", text(*shard), "use 0 for no halo");
  });
  for (std::size_t other = 0; other <= axis; ++other) {
    const Shard* same = std::get_if<Shard>(&body.placements[other]);
    if (same == nullptr || same->dim != shard->dim) continue;
    expects(halo == 0 || same->order.in_blocks(), [&] {
      return fail(
          "a dimension with a halo needs one block of indices on each rank",
          text(*same, " gives a rank several, and dimension ", shard->dim, " has a halo of ", halo),
          "use the order even or weighted, or no halo");
    });
  }
}

HEDDLE_INLINE void Layout::check_halos(const Body& body) {
  std::int64_t elements = 1;
  for (std::size_t dim = 0; dim < body.sizes.size(); ++dim) {
    std::int64_t extent = body.halos[dim];
    expects(!__builtin_mul_overflow(extent, 2, &extent) &&
                !__builtin_add_overflow(extent, body.sizes[dim], &extent) &&
                !__builtin_mul_overflow(elements, std::max<std::int64_t>(extent, 1), &elements),
            [&] {
              return ErrorInfo{where, "the product of sizes with their halos must fit in 64 bits",
                               text("size ", body.sizes[dim], ", halo ", body.halos[dim]),
                               "use a narrower halo"};
            });
  }
}

HEDDLE_INLINE void Layout::check_ranks(Body& body) {
  const auto size = static_cast<std::size_t>(body.mesh.size());
  if (body.ranks.empty())
    for (std::size_t r = 0; r < size; ++r) body.ranks.emplace_back(r);
  expects(body.ranks.size() == size, [&] {
    return ErrorInfo{where, "each rank of the mesh needs one rank of the communicator",
                     text(body.ranks.size(), " ranks, the mesh is ", body.mesh),
                     text("give ", size, " ranks, or none for ranks 0, 1, ...")};
  });
  std::vector<Rank> sorted = body.ranks;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  expects(twice == sorted.end(), [&] {
    return ErrorInfo{where, "a rank appears twice in the mesh", text("rank ", *twice),
                     "give every rank once, or use a smaller mesh"};
  });
}

HEDDLE_INLINE void Layout::expect_dims(const char* what, std::size_t given) const {
  expects(given == dims(), [&] {
    return ErrorInfo{text(where, "::", what), "each dimension needs one index",
                     text(given, " given, ", dims(), " dimensions"),
                     "give all indices, the outermost first"};
  });
}

}  // namespace heddle::inline v0
