// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Sharded: a tensor whose elements lie on the ranks of a mesh, each rank's in a plain View.

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

/// A tensor of 1 to 8 dimensions over the ranks of a communicator, as its Layout says: `Data` is
/// that of a View, `double**` for two; `Space` is where it lies. Each rank has its elements in a
/// View that it made, zero at first, or was given. Copies share it, as those of a View do.
///
///     hd::Sharded<double**, Space> a(mesh, {rows, columns}, {hd::Shard{0}, hd::Replicate{}});
///
/// Making one sends no message, but all ranks of the communicator make theirs alike, for they take
/// part in what is done with it; also those that are not of the layout's mesh, and have no
/// elements. The mesh or communicator outlives it.
template <class Data, class Space = Kokkos::DefaultExecutionSpace>
class Sharded {
 public:
  /// A rank's elements: dense, the last dimension fastest.
  using View = Kokkos::View<Data, Kokkos::LayoutRight, typename Space::memory_space>;
  /// The type of its elements.
  using Element = typename View::value_type;
  /// Number of dimensions.
  static constexpr std::size_t dims = View::rank;

  static_assert(dims >= 1 && View::rank_dynamic == dims,
                "heddle::Sharded: the sizes are known when it is made: Sharded<double**> for two "
                "dimensions");
  static_assert(std::is_trivially_copyable_v<Element> && !std::is_const_v<Element>,
                "heddle::Sharded: elements travel as bytes, and are written where they arrive");

  /// One of `sizes`, by one placement for each axis of `mesh`.
  /// @throws contract_error for placements that do not fit, see Layout.
  template <std::integral Size, std::size_t count>
  Sharded(const DeviceMesh& mesh, const Size (&sizes)[count], std::vector<Placement> placements)
      : Sharded(mesh.all(), Layout(mesh.shape(), std::vector<std::int64_t>(sizes, sizes + count),
                                   std::move(placements))) {
    static_assert(count == dims, "heddle::Sharded: there is one size for each dimension");
  }
  /// The same for sizes that were counted.
  Sharded(const DeviceMesh& mesh, std::vector<std::int64_t> sizes,
          std::vector<Placement> placements)
      : Sharded(mesh.all(), Layout(mesh.shape(), std::move(sizes), std::move(placements))) {}
  /// One with this layout, among the ranks of `comm`.
  /// @throws contract_error for a layout of another number of dimensions, of ranks that `comm` has
  ///         not, or with parts of elements that cannot be merged as it says: those that do not
  ///         add and multiply, or that have no order.
  Sharded(const Communicator& comm, Layout layout)
      : m_comm(&comm), m_layout(std::move(layout)), m_here(m_layout.rank_here(comm.rank())) {
    check();
    Kokkos::LayoutRight extents;
    std::ranges::copy(extents_here(), extents.dimension);
    m_view = View("heddle::tensor::sharded", extents);
  }
  /// The same of elements that are there already: this rank's, with those of a halo, lie in `mine`.
  /// @throws contract_error as above, and on a rank whose View has other extents, or elements that
  ///         are not dense, as a subview's.
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

  /// Returns which rank holds which elements.
  [[nodiscard]] const Layout& layout() const noexcept { return m_layout; }
  /// The ranks that it is among.
  [[nodiscard]] const Communicator& comm() const noexcept { return *m_comm; }
  /// This rank's place on the layout's mesh; none: it has no elements.
  [[nodiscard]] std::optional<Rank> here() const noexcept { return m_here; }
  /// Whether the two are copies of one Sharded. All ranks say the same, also those without
  /// elements.
  [[nodiscard]] bool shares(const Sharded& other) const noexcept {
    return m_identity == other.m_identity;
  }

  /// This rank's elements, with those of a halo. @throws contract_error where they are Partial.
  [[nodiscard]] const View& view() const {
    expect_values("heddle::Sharded::view", "parts()");
    return m_view;
  }
  /// The same without a halo. @throws likewise.
  [[nodiscard]] auto owned() const {
    expect_values("heddle::Sharded::owned", "owned_parts()");
    return owned_parts();
  }
  /// This rank's parts of elements, or the elements where none is Partial, with those of a halo:
  /// for whoever writes them, or knows.
  [[nodiscard]] const View& parts() const noexcept { return m_view; }
  /// The same without a halo.
  [[nodiscard]] auto owned_parts() const { return inner(std::make_index_sequence<dims>()); }

  /// The indices of dimension `dim` that this rank has: the element at position l of owned() along
  /// it is that at `indices(dim)[l]` of the tensor.
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
