// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Layout: which elements of a tensor lie on which rank of a mesh, and at which position. It holds
/// no elements, only index arithmetic. Sharded, in tensor/, holds the elements.

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

/// The distribution of a tensor over a mesh: the sizes of a tensor of 1 to 8 dimensions, and one
/// placement for each axis of the mesh.
///
/// A rank owns a set of indices of each dimension, as the axes that shard the dimension distribute
/// it. In memory it has a dense array of these elements, in ascending order, the last dimension
/// fastest. If a dimension has a halo, the array has `halo` more elements at both of its ends.
/// Sizes need not be multiples of the number of ranks. They may be 0 or below the number of ranks,
/// and then some ranks have no elements.
///
/// The ranks of a mesh are all or some ranks of a communicator: rank r of the mesh is rank
/// ranks()[r] of the communicator. A Layout is immutable, and copies share its data.
class Layout {
 public:
  /// The largest number of dimensions of a tensor.
  static constexpr std::size_t max_dims = 8;

  /// Constructs a layout: `Layout({{"data", 2}}, {rows, columns}, {Shard{0}})`. If `ranks` is
  /// empty, rank r of the mesh is rank r of the communicator.
  /// @throws contract_error if sizes, placements and ranks do not fit together.
  Layout(MeshShape mesh, std::vector<std::int64_t> sizes, std::vector<Placement> placements,
         std::vector<Rank> ranks = {});

  /// The mesh.
  [[nodiscard]] const MeshShape& mesh() const noexcept { return m_body->mesh; }
  /// Number of elements along each dimension.
  [[nodiscard]] const std::vector<std::int64_t>& sizes() const noexcept { return m_body->sizes; }
  /// The placements, one for each axis of the mesh.
  [[nodiscard]] const std::vector<Placement>& placements() const noexcept {
    return m_body->placements;
  }
  /// The rank in the communicator of each rank of the mesh.
  [[nodiscard]] const std::vector<Rank>& ranks() const noexcept { return m_body->ranks; }
  /// Number of dimensions.
  [[nodiscard]] std::size_t dims() const noexcept { return m_body->sizes.size(); }
  /// Number of elements of the tensor.
  [[nodiscard]] std::int64_t elements() const noexcept {
    std::int64_t product = 1;
    for (const std::int64_t size : m_body->sizes) product *= size;
    return product;
  }
  /// Width of the halo at each end of dimension `dim`, in elements: the largest of its Shards.
  [[nodiscard]] std::int64_t halo(std::size_t dim) const { return m_body->halos[dim]; }
  /// The operation that merges the parts of a Partial tensor, or nullopt if no axis is Partial.
  [[nodiscard]] std::optional<Merge> partial() const noexcept { return m_body->partial; }

  /// The rank of the mesh that is rank `of_all` of the communicator, or nullopt if it is not in the
  /// mesh and has no elements.
  [[nodiscard]] std::optional<Rank> rank_here(Rank of_all) const;

  /// The indices of dimension `dim` that rank `rank` of the mesh owns, without the halo.
  [[nodiscard]] IndexSet indices(Rank rank, std::size_t dim) const;
  /// Number of elements that rank `rank` of the mesh owns along each dimension, without the halo.
  [[nodiscard]] std::vector<std::int64_t> local_sizes(Rank rank) const;
  /// The extents of the array of rank `rank`: local_sizes() with the halo at both ends.
  [[nodiscard]] std::vector<std::int64_t> extents(Rank rank) const;

  /// The global indices of the element at `local` on rank `rank` of the mesh. Positions in `local`
  /// do not count the halo.
  /// @throws contract_error if there is no such element.
  [[nodiscard]] std::vector<std::int64_t> to_global(Rank rank,
                                                    std::span<const std::int64_t> local) const;
  /// The position of the element at `global` on rank `rank` of the mesh, not counting the halo, or
  /// nullopt if the rank does not own it.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> to_local(
      Rank rank, std::span<const std::int64_t> global) const;
  /// The ranks of the mesh that own the element at `global`, or a part of it, in ascending order.
  [[nodiscard]] std::vector<Rank> owners(std::span<const std::int64_t> global) const;

  /// Returns the layout with the same mesh, ranks and sizes, but other placements.
  /// @throws contract_error as the constructor does.
  [[nodiscard]] Layout with(std::vector<Placement> placements) const;
  /// Returns the layout with the dimensions in the opposite order. An array with the first
  /// dimension fastest lies in memory as one of this layout with the last dimension fastest.
  [[nodiscard]] Layout reversed() const;

  /// Returns true if two layouts have the same mesh, ranks, sizes and placements.
  friend bool operator==(const Layout& a, const Layout& b);

  /// Prints "6 x 5 on data=2 x tensor=2 as Shard(0), Replicate". It adds "(ranks 3, 1)" unless rank
  /// r of the mesh is rank r of the communicator.
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

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/layout.ipp>
#endif
