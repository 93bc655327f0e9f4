// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Layout: which elements of a tensor lie on which rank of a mesh, and where there. Arithmetic on
/// indices only; the elements are Sharded's, in tensor/.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
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
         std::vector<Rank> ranks = {});

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
  [[nodiscard]] std::optional<Rank> rank_here(Rank of_all) const;

  /// The indices of dimension `dim` that rank `rank` of the mesh has, without a halo.
  [[nodiscard]] IndexSet indices(Rank rank, std::size_t dim) const;
  /// Elements that rank `rank` of the mesh has along each dimension, without a halo.
  [[nodiscard]] std::vector<std::int64_t> local_sizes(Rank rank) const;
  /// The same with the halo at both ends: extents of its array.
  [[nodiscard]] std::vector<std::int64_t> extents(Rank rank) const;

  /// The element at `local`, positions without a halo, of rank `rank` of the mesh.
  /// @throws contract_error where there is none.
  [[nodiscard]] std::vector<std::int64_t> to_global(Rank rank,
                                                    std::span<const std::int64_t> local) const;
  /// Where rank `rank` of the mesh has the element at `global`, without a halo; none: it has not.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> to_local(
      Rank rank, std::span<const std::int64_t> global) const;
  /// The ranks of the mesh that have the element at `global`, or a part of it, ascending.
  [[nodiscard]] std::vector<Rank> owners(std::span<const std::int64_t> global) const;

  /// The same mesh, ranks and sizes with other placements. @throws as the constructor does.
  [[nodiscard]] Layout with(std::vector<Placement> placements) const;

  friend bool operator==(const Layout& a, const Layout& b) {
    return a.m_body == b.m_body || *a.m_body == *b.m_body;
  }

  /// As in "6 x 5 on data=2 x tensor=2 as Shard(0), Replicate"; with "(ranks 3, 1)" where the ranks
  /// are not the communicator's first ones in their order.
  friend std::ostream& operator<<(std::ostream& out, const Layout& layout);

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

  static void check_sizes(const Body& body);

  static void check_placement(Body& body, std::size_t axis);

  static void check_halos(const Body& body);

  static void check_ranks(Body& body);

  void expect_dims(const char* what, std::size_t given) const;

  std::shared_ptr<const Body> m_body;
};

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/layout/layout.ipp>
#endif
