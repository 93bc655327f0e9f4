// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Sharded: a tensor whose elements are distributed over the ranks of a mesh. Each rank's elements
/// are in a plain View.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/tensor/impl/merge_by.hpp>

namespace heddle::inline v0 {

/// A tensor of 1 to 8 dimensions, distributed over the ranks of a communicator as its Layout says.
/// `Data` is the data type of a View, such as `double**` for two dimensions, and `Space` is its
/// memory space. Each rank has its elements in a View that it allocates with zeros, or that it gets
/// from the caller. Copies share the View.
///
///     hd::Sharded<double**, Space> a(mesh, {rows, columns}, {hd::Shard{0}, hd::Replicate{}});
///
/// Construction sends no message. All ranks of the communicator must construct it with the same
/// layout, because they take part in its operations. This includes ranks that are not in the
/// layout's mesh; they have no elements. The mesh or communicator must outlive the tensor.
template <class Data, class Space = Kokkos::DefaultExecutionSpace>
class Sharded {
 public:
  /// The View of a rank's elements, without gaps; the last dimension is the fastest.
  using View = Kokkos::View<Data, Kokkos::LayoutRight, typename Space::memory_space>;
  /// The type of the elements.
  using Element = typename View::value_type;
  /// The number of dimensions.
  static constexpr std::size_t dims = View::rank;

  static_assert(dims >= 1 && View::rank_dynamic == dims,
                "heddle::Sharded: the sizes are known when it is made: Sharded<double**> for two "
                "dimensions");
  static_assert(std::is_trivially_copyable_v<Element> && !std::is_const_v<Element>,
                "heddle::Sharded: elements travel as bytes, and are written where they arrive");

  /// Constructs a tensor with these sizes and one placement for each axis of `mesh`.
  /// @throws contract_error if the placements do not fit, see Layout.
  template <std::integral Size, std::size_t count>
  Sharded(const DeviceMesh& mesh, const Size (&sizes)[count], std::vector<Placement> placements)
      : Sharded(mesh.all(), Layout(mesh.shape(), std::vector<std::int64_t>(sizes, sizes + count),
                                   std::move(placements))) {
    static_assert(count == dims, "heddle::Sharded: there is one size for each dimension");
  }
  /// Constructs a tensor with these sizes, given as a vector.
  Sharded(const DeviceMesh& mesh, std::vector<std::int64_t> sizes,
          std::vector<Placement> placements)
      : Sharded(mesh.all(), Layout(mesh.shape(), std::move(sizes), std::move(placements))) {}
  /// Constructs a tensor with this layout on the ranks of `comm`.
  /// @throws contract_error if the layout has another number of dimensions, if `comm` lacks a rank
  ///         of the layout, or if an axis is Partial and the elements cannot be merged as it says,
  ///         because they cannot be added or multiplied, or have no order.
  Sharded(const Communicator& comm, Layout layout)
      : m_comm(&comm), m_layout(std::move(layout)), m_here(m_layout.rank_here(comm.rank())) {
    check();
    Kokkos::LayoutRight extents;
    std::ranges::copy(extents_here(), extents.dimension);
    m_view = View("heddle::tensor::sharded", extents);
  }
  /// Constructs a tensor from existing elements. `mine` is the View of this rank's elements,
  /// including halos.
  /// @throws contract_error in the same cases, and on a rank whose View has other extents or has
  ///         gaps, for example a subview.
  Sharded(const Communicator& comm, Layout layout, View mine)
      : m_comm(&comm),
        m_layout(std::move(layout)),
        m_here(m_layout.rank_here(comm.rank())),
        m_view(std::move(mine)) {
    check();
    const auto extents = extents_here();
    for (std::size_t dim = 0; dim < dims; ++dim)
      expects(m_view.extent(dim) == extents[dim], [&] {
        return ErrorInfo{where, "the View has other extents than this rank's part of the tensor",
                         text("dimension ", dim, ": ", m_view.extent(dim), ", expected ",
                              extents[dim], ", ", m_layout),
                         "ask the layout for the extents() of its rank_here(); elsewhere they "
                         "are 0"};
      });
    expects(m_view.span_is_contiguous(), [&] {
      return ErrorInfo{where, "the View has gaps between its elements",
                       text(m_view.span(), " places for ", m_view.size(), " elements"),
                       "copy them into a View of their own"};
    });
  }

  /// Returns the layout, which says which rank holds which elements.
  [[nodiscard]] const Layout& layout() const noexcept { return m_layout; }
  /// Returns the communicator of the tensor.
  [[nodiscard]] const Communicator& comm() const noexcept { return *m_comm; }
  /// Returns this rank's position on the layout's mesh, or nullopt if this rank has no elements.
  [[nodiscard]] std::optional<Rank> here() const noexcept { return m_here; }
  /// Returns true if the two are copies of one Sharded. All ranks get the same answer, also ranks
  /// without elements.
  [[nodiscard]] bool shares(const Sharded& other) const noexcept {
    return m_identity == other.m_identity;
  }

  /// Returns this rank's elements with their halos. @throws contract_error if an axis is Partial.
  [[nodiscard]] const View& view() const {
    expect_values("heddle::Sharded::view", "parts()");
    return m_view;
  }
  /// Returns this rank's elements without halos. @throws contract_error if an axis is Partial.
  [[nodiscard]] auto owned() const {
    expect_values("heddle::Sharded::owned", "owned_parts()");
    return owned_parts();
  }
  /// Returns this rank's View with its halos also if an axis is Partial. It then holds this rank's
  /// addends of the elements, not their values.
  [[nodiscard]] const View& parts() const noexcept { return m_view; }
  /// Returns the same View as parts(), without halos.
  [[nodiscard]] auto owned_parts() const { return inner(std::make_index_sequence<dims>()); }

  /// Returns the indices of dimension `dim` that this rank owns: position l of owned() along `dim`
  /// is the element with index `indices(dim)[l]` of the tensor.
  [[nodiscard]] IndexSet indices(std::size_t dim) const {
    return m_here ? m_layout.indices(*m_here, dim) : IndexSet();
  }

 private:
  static constexpr const char* where = "heddle::Sharded";

  void check() const {
    expects(m_layout.dims() == dims, [&] {
      return ErrorInfo{where, "the layout has another number of dimensions",
                       text(m_layout, ", expected ", dims),
                       text("make a layout of ", dims, " sizes, or a Sharded of another Data")};
    });
    for (const Rank rank : m_layout.ranks())
      expects(+rank < static_cast<std::size_t>(m_comm->size()), [&] {
        return ErrorInfo{
            where, "the communicator lacks a rank of the layout",
            text("rank ", rank, " of ", m_comm->size(), ", ", m_layout),
            "use a communicator with all of the layout's ranks, or a Layout on other ranks"};
      });
    expects(!m_layout.partial() || impl::can_merge<Element>(*m_layout.partial()), [&] {
      return ErrorInfo{where, "a Partial placement needs elements that can be added",
                       text(m_layout), "use Shard or Replicate"};
    });
  }
  [[nodiscard]] std::array<std::size_t, dims> extents_here() const {
    std::array<std::size_t, dims> extents = {};
    if (!m_here) return extents;
    const std::vector<std::int64_t> mine = m_layout.extents(*m_here);
    for (std::size_t dim = 0; dim < dims; ++dim) extents[dim] = static_cast<std::size_t>(mine[dim]);
    return extents;
  }

  void expect_values(const char* asked, const char* of_parts) const {
    expects(!m_layout.partial(), [&] {
      return ErrorInfo{asked, "the layout has a Partial axis, so the elements are not summed yet",
                       text(m_layout),
                       text("redistribute to Shard or Replicate, or ask for the ", of_parts)};
    });
  }
  template <std::size_t... dim>
  [[nodiscard]] auto inner(std::index_sequence<dim...>) const {
    return Kokkos::subview(m_view, inner(dim)...);
  }
  [[nodiscard]] Kokkos::pair<std::size_t, std::size_t> inner(std::size_t dim) const {
    const auto halo = m_here ? static_cast<std::size_t>(m_layout.halo(dim)) : 0;
    return {halo, m_view.extent(dim) - halo};
  }

  const Communicator* m_comm;
  Layout m_layout;
  std::optional<Rank> m_here;
  View m_view;
  std::shared_ptr<const std::byte> m_identity = std::make_shared<const std::byte>();
};

}  // namespace heddle::inline v0
