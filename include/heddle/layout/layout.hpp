// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Layout: which elements of a tensor lie on which rank of a mesh, and where there. Arithmetic on
/// indices only; the elements are Sharded's, in tensor/.

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
#include <heddle/core/text.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/mesh_shape.hpp>
#include <heddle/layout/placement.hpp>

namespace heddle::inline v0 {

/// The sizes of a tensor of 1 to 8 dimensions, and one placement for each axis of a mesh.
///
/// What a rank has is a range of indices of each dimension, dealt out by the axes that shard it,
/// and in its memory a dense array of them, in ascending order, the last dimension fastest; with
/// `halo` elements more at both ends of a dimension that has one. Sizes need not divide: they may
/// be 0, or fewer than ranks, some of which have no elements then.
///
/// The ranks of a mesh are those of a communicator, or some of them: rank r of the mesh is its
/// ranks()[r]. Immutable; copies share what it is made of.
class Layout {
 public:
  /// The most dimensions of a tensor.
  static constexpr std::size_t max_dims = 8;

  /// `Layout({{"data", 2}}, {rows, columns}, {Shard{0}})`. Without `ranks`, rank r of the mesh is
  /// the communicator's rank r.
  /// @throws contract_error for sizes, placements or ranks that do not fit together.
  Layout(MeshShape mesh, std::vector<std::int64_t> sizes, std::vector<Placement> placements,
         std::vector<Rank> ranks = {}) {
    Body body{std::move(mesh), std::move(sizes), std::move(placements), std::move(ranks), {}, {}};
    check_sizes(body);
    body.halos.assign(body.sizes.size(), 0);
    expects(body.placements.size() == body.mesh.axes().size(), [&] {
      return Complaint{where, "there is one placement for each axis of the mesh",
                       text(body.placements.size(), " placements, the mesh is ", body.mesh),
                       "give Replicate where an axis has no other"};
    });
    for (std::size_t axis = 0; axis < body.placements.size(); ++axis) check_placement(body, axis);
    check_halos(body);
    check_ranks(body);
    m_body = std::make_shared<const Body>(std::move(body));
  }

  /// The mesh.
  [[nodiscard]] const MeshShape& mesh() const noexcept { return m_body->mesh; }
  /// Elements along each dimension.
  [[nodiscard]] const std::vector<std::int64_t>& sizes() const noexcept { return m_body->sizes; }
  /// One for each axis of the mesh.
  [[nodiscard]] const std::vector<Placement>& placements() const noexcept {
    return m_body->placements;
  }
  /// The communicator's rank of each rank of the mesh.
  [[nodiscard]] const std::vector<Rank>& ranks() const noexcept { return m_body->ranks; }
  /// Number of dimensions.
  [[nodiscard]] std::size_t dims() const noexcept { return m_body->sizes.size(); }
  /// Elements of the tensor.
  [[nodiscard]] std::int64_t elements() const noexcept {
    std::int64_t product = 1;
    for (const std::int64_t size : m_body->sizes) product *= size;
    return product;
  }
  /// Elements more at each end of dimension `dim`: the most that one of its Shards has.
  [[nodiscard]] std::int64_t halo(std::size_t dim) const { return m_body->halos[dim]; }
  /// What its parts are merged with; none: it has values.
  [[nodiscard]] std::optional<Merge> partial() const noexcept { return m_body->partial; }

  /// Which rank of the mesh the communicator's rank `of_all` is; none: it has no elements.
  [[nodiscard]] std::optional<Rank> rank_here(Rank of_all) const {
    const auto found = std::ranges::find(m_body->ranks, of_all);
    if (found == m_body->ranks.end()) return std::nullopt;
    return Rank{found - m_body->ranks.begin()};
  }

  /// The indices of dimension `dim` that rank `rank` of the mesh has, without a halo.
  [[nodiscard]] IndexSet indices(Rank rank, std::size_t dim) const {
    IndexSet indices(m_body->sizes[dim]);
    for (std::size_t axis = 0; axis < m_body->placements.size(); ++axis) {
      const Shard* shard = std::get_if<Shard>(&m_body->placements[axis]);
      if (shard == nullptr || static_cast<std::size_t>(shard->dim) != dim) continue;
      indices = indices.at(shard->order.share(indices.size(), mesh().axes()[axis].size,
                                              mesh().coordinate(rank, axis)));
    }
    return indices;
  }
  /// Elements that rank `rank` of the mesh has along each dimension, without a halo.
  [[nodiscard]] std::vector<std::int64_t> local_sizes(Rank rank) const {
    std::vector<std::int64_t> local;
    for (std::size_t dim = 0; dim < dims(); ++dim) local.push_back(indices(rank, dim).size());
    return local;
  }
  /// The same with the halo at both ends: extents of its array.
  [[nodiscard]] std::vector<std::int64_t> extents(Rank rank) const {
    std::vector<std::int64_t> extents = local_sizes(rank);
    for (std::size_t dim = 0; dim < dims(); ++dim) extents[dim] += 2 * halo(dim);
    return extents;
  }

  /// The element at `local`, positions without a halo, of rank `rank` of the mesh.
  /// @throws contract_error where there is none.
  [[nodiscard]] std::vector<std::int64_t> to_global(Rank rank,
                                                    std::span<const std::int64_t> local) const {
    expect_dims("to_global", local.size());
    std::vector<std::int64_t> global;
    for (std::size_t dim = 0; dim < dims(); ++dim) global.push_back(indices(rank, dim)[local[dim]]);
    return global;
  }
  /// Where rank `rank` of the mesh has the element at `global`, without a halo; none: it has not.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> to_local(
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
  /// The ranks of the mesh that have the element at `global`, or a part of it, ascending.
  [[nodiscard]] std::vector<Rank> owners(std::span<const std::int64_t> global) const {
    std::vector<Rank> owners;
    for (int r = 0; r < mesh().size(); ++r)
      if (to_local(Rank{r}, global)) owners.emplace_back(r);
    return owners;
  }

  /// The same mesh, ranks and sizes with other placements. @throws as the constructor does.
  [[nodiscard]] Layout with(std::vector<Placement> placements) const {
    return {mesh(), sizes(), std::move(placements), ranks()};
  }

  friend bool operator==(const Layout& a, const Layout& b) {
    return a.m_body == b.m_body || *a.m_body == *b.m_body;
  }

  /// As in "6 x 5 on data=2 x tensor=2 as Shard(0), Replicate"; with "(ranks 3, 1)" where the ranks
  /// are not the communicator's first ones in their order.
  friend std::ostream& operator<<(std::ostream& out, const Layout& layout) {
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

 private:
  struct Body {
    MeshShape mesh;
    std::vector<std::int64_t> sizes;
    std::vector<Placement> placements;
    std::vector<Rank> ranks;
    std::vector<std::int64_t> halos;  ///< by dimension
    std::optional<Merge> partial;
    friend bool operator==(const Body&, const Body&) = default;
  };
  static constexpr const char* where = "heddle::Layout";

  static void check_sizes(const Body& body) {
    expects(!body.sizes.empty() && body.sizes.size() <= max_dims, [&] {
      return Complaint{where, "a tensor has 1 to 8 dimensions", text(body.sizes.size(), " sizes"),
                       "give a single number the size 1, and join dimensions where there are more"};
    });
    std::int64_t elements = 1;
    for (const std::int64_t size : body.sizes)
      expects(size >= 0 &&
                  !__builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements),
              [&] {
                return Complaint{where, "sizes are at least 0, and 64 bits hold their product",
                                 text("size ", size)};
              });
  }

  static void check_placement(Body& body, std::size_t axis) {
    const MeshAxis& along = body.mesh.axes()[axis];
    const auto fail = [&](const char* what, std::string why, std::string fix = {}) {
      return Complaint{text(where, ", axis '", along.name, "'"), what, std::move(why),
                       std::move(fix)};
    };
    if (const Partial* partial = std::get_if<Partial>(&body.placements[axis])) {
      expects(!body.partial || *body.partial == partial->merge, [&] {
        return fail("all Partial placements merge alike",
                    text(*partial, ", after ", Partial{*body.partial}),
                    "redistribute one of them before");
      });
      body.partial = partial->merge;
    }
    const Shard* shard = std::get_if<Shard>(&body.placements[axis]);
    if (shard == nullptr) return;
    expects(shard->dim >= 0 && static_cast<std::size_t>(shard->dim) < body.sizes.size(), [&] {
      return fail("no such dimension",
                  text(*shard, " of a tensor of ", body.sizes.size(), " dimensions"),
                  "count from 0, the outermost");
    });
    expects(shard->order.fits(static_cast<std::size_t>(along.size)), [&] {
      return fail("there is one weight for each rank",
                  text(*shard, " on an axis of ", along.size, " ranks"),
                  text("give ", along.size, " weights, 0 for a rank without elements"));
    });
    std::int64_t& halo = body.halos[static_cast<std::size_t>(shard->dim)];
    halo = std::max(halo, shard->halo);
    expects(shard->halo >= 0, [&] {
      return fail("a halo is at least 0 wide", text(*shard), "leave it out for none");
    });
    for (std::size_t other = 0; other <= axis; ++other) {
      const Shard* same = std::get_if<Shard>(&body.placements[other]);
      if (same == nullptr || same->dim != shard->dim) continue;
      expects(halo == 0 || same->order.in_blocks(), [&] {
        return fail(
            "a halo is around one block of neighbours",
            text(*same, " deals out many, and dimension ", shard->dim, " has a halo of ", halo),
            "take the order even or weighted, or leave the halo out");
      });
    }
  }

  static void check_halos(const Body& body) {
    std::int64_t elements = 1;
    for (std::size_t dim = 0; dim < body.sizes.size(); ++dim) {
      std::int64_t extent = body.halos[dim];
      expects(!__builtin_mul_overflow(extent, 2, &extent) &&
                  !__builtin_add_overflow(extent, body.sizes[dim], &extent) &&
                  !__builtin_mul_overflow(elements, std::max<std::int64_t>(extent, 1), &elements),
              [&] {
                return Complaint{where, "64 bits hold the product of sizes with their halos",
                                 text("size ", body.sizes[dim], ", halo ", body.halos[dim]),
                                 "make the halo narrower"};
              });
    }
  }

  static void check_ranks(Body& body) {
    const auto size = static_cast<std::size_t>(body.mesh.size());
    if (body.ranks.empty())
      for (std::size_t r = 0; r < size; ++r) body.ranks.emplace_back(r);
    expects(body.ranks.size() == size, [&] {
      return Complaint{where, "every rank of the mesh is one of the communicator's",
                       text(body.ranks.size(), " ranks, the mesh is ", body.mesh),
                       text("give ", size, " ranks, or none for the first ones in their order")};
    });
    std::vector<Rank> sorted = body.ranks;
    std::ranges::sort(sorted);
    const auto twice = std::ranges::adjacent_find(sorted);
    expects(twice == sorted.end(), [&] {
      return Complaint{where, "a rank stands for one place of the mesh", text("rank ", *twice),
                       "give every rank once, on a smaller mesh where there are too few"};
    });
  }

  void expect_dims(const char* what, std::size_t given) const {
    expects(given == dims(), [&] {
      return Complaint{text(where, "::", what), "there is one index for each dimension",
                       text(given, " given, ", dims(), " dimensions"),
                       "give all of them, the outermost first"};
    });
  }

  std::shared_ptr<const Body> m_body;
};

}  // namespace heddle::inline v0
