// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Sharded: a tensor whose elements are distributed over the ranks of a mesh. Each rank's elements
/// are in a plain View.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/communicator.hpp>
#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/layout/placement.hpp>
#include <heddle/memory/internal/own_record.hpp>
#include <heddle/tensor/internal/merge_by.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The label of a rank's part.
inline constexpr const char* part_label = "heddle::tensor::sharded";

/// Allocates zeros in host memory for a part with `dims` extents. The memory lives as long as the
/// tracker, its copies and the Views of its record.
[[nodiscard]] Kokkos::Impl::SharedAllocationTracker zeroed_part(
    const std::array<std::size_t, 8>& extents, std::size_t dims, Bytes element);

}  // namespace impl

/// A Sharded of elements of any type. Copies share the elements.
class AnySharded {
 public:
  // Defined once, because each program would compile them wherever it passes a tensor on.
  /// Constructs a copy, which shares the elements.
  AnySharded(const AnySharded& other);
  /// Moves the tensor. `other` may then only be assigned to or destroyed.
  AnySharded(AnySharded&& other) noexcept;
  /// Shares the elements of `other`.
  AnySharded& operator=(const AnySharded& other);
  /// Moves the tensor. `other` may then only be assigned to or destroyed.
  AnySharded& operator=(AnySharded&& other) noexcept;
  ~AnySharded();

  /// Returns the layout, which says which rank holds which elements.
  [[nodiscard]] const Layout& layout() const noexcept { return m_layout; }
  /// Returns the layout of the elements in memory if the last dimension is the fastest there. It
  /// has the dimensions in the opposite order if the View is LayoutLeft.
  [[nodiscard]] const Layout& in_memory() const noexcept {
    return m_reversed ? *m_reversed : m_layout;
  }
  /// Returns the communicator of the tensor.
  [[nodiscard]] const Communicator& comm() const noexcept { return *m_comm; }
  /// Returns this rank's position on the layout's mesh, or nullopt if this rank has no elements.
  [[nodiscard]] std::optional<Rank> here() const noexcept { return m_here; }
  /// Returns true if the two are copies of one Sharded. All ranks get the same answer, also ranks
  /// without elements.
  [[nodiscard]] bool shares(const AnySharded& other) const noexcept {
    return m_identity == other.m_identity;
  }
  /// Returns the indices of dimension `dim` that this rank owns: position l of owned() along `dim`
  /// is the element with index `indices(dim)[l]` of the tensor.
  [[nodiscard]] IndexSet indices(std::size_t dim) const;

 protected:
  /// Constructs a tensor of `dims` dimensions, whose elements `can_merge` as it says. If `left`,
  /// the first dimension is the fastest.
  AnySharded(const Communicator& comm, Layout layout, std::size_t dims, bool (*can_merge)(Merge),
             bool left);

  /// Returns the extents of this rank's part, including halos. They are 0 on other ranks.
  [[nodiscard]] std::array<std::size_t, 8> extents_here() const;
  /// Throws if this rank's part has other extents, or gaps between its elements.
  void expect_part(const std::array<std::size_t, 8>& extents, std::size_t elements,
                   std::size_t span) const;
  /// Throws if an axis is Partial.
  void expect_values(const char* asked, const char* of_parts) const;
  /// Returns the positions of `extent` in dimension `dim` that are not in a halo.
  [[nodiscard]] Kokkos::pair<std::size_t, std::size_t> inner(std::size_t dim,
                                                             std::size_t extent) const;

 private:
  const Communicator* m_comm;
  Layout m_layout;
  std::optional<Layout> m_reversed;  ///< set if the first dimension is the fastest
  std::optional<Rank> m_here;
  std::shared_ptr<const std::byte> m_identity;
};

/// A tensor of 1 to 8 dimensions, distributed over the ranks of a communicator as its Layout says.
/// `Data` is the data type of a View, such as `double**` for two dimensions, and `Space` is its
/// memory space. Each rank has its elements in a View that it allocates with zeros, or that it gets
/// from the caller. Copies share the View. `Order` is the layout of the View: Kokkos::LayoutRight,
/// or Kokkos::LayoutLeft as Views of a GPU have it by default.
///
///     hd::Sharded<double**, Space> a(mesh, {rows, columns}, {hd::Shard{0}, hd::Replicate{}});
///
/// Construction sends no message. All ranks of the communicator must construct it with the same
/// layout, because they take part in its operations. This includes ranks that are not in the
/// layout's mesh; they have no elements. The mesh or communicator must outlive the tensor.
template <class Data, class Space = Kokkos::DefaultExecutionSpace,
          class Order = Kokkos::LayoutRight>
class Sharded : public AnySharded {
  static constexpr bool left = std::is_same_v<Order, Kokkos::LayoutLeft>;

 public:
  /// The View of a rank's elements, without gaps.
  using View = Kokkos::View<Data, Order, typename Space::memory_space>;
  /// The type of the elements.
  using Element = typename View::value_type;
  /// The number of dimensions.
  static constexpr std::size_t dims = View::rank;

  static_assert(dims >= 1 && View::rank_dynamic == dims,
                "heddle::Sharded: the sizes are known when it is made: Sharded<double**> for two "
                "dimensions");
  static_assert(left || std::is_same_v<Order, Kokkos::LayoutRight>,
                "heddle::Sharded: the View is LayoutRight or LayoutLeft");
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
      : AnySharded(comm, std::move(layout), dims, &impl::can_merge<Element>, left) {
    m_view = zeros(extents_here(), std::make_index_sequence<dims>());
  }
  /// Constructs a tensor from existing elements. `mine` is the View of this rank's elements,
  /// including halos.
  /// @throws contract_error in the same cases, and on a rank whose View has other extents or has
  ///         gaps, for example a subview.
  Sharded(const Communicator& comm, Layout layout, View mine)
      : AnySharded(comm, std::move(layout), dims, &impl::can_merge<Element>, left),
        m_view(std::move(mine)) {
    std::array<std::size_t, 8> extents = {};
    for (std::size_t dim = 0; dim < dims; ++dim) extents[dim] = m_view.extent(dim);
    expect_part(extents, m_view.size(), m_view.span());
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

 private:
  /// Returns a new View of zeros. The allocation of numbers in host memory is compiled once.
  template <std::size_t... dim>
  [[nodiscard]] static View zeros(const std::array<std::size_t, 8>& extents,
                                  std::index_sequence<dim...>) {
    if constexpr (std::is_arithmetic_v<Element> &&
                  std::is_same_v<typename View::memory_space, Kokkos::HostSpace> &&
                  memory::impl::own_record<Kokkos::HostSpace>)
      return memory::impl::view_of<View>(impl::zeroed_part(extents, dims, sizeof(Element))
                                             .template get_record<Kokkos::HostSpace>(),
                                         std::array<std::size_t, dims>{extents[dim]...},
                                         std::index_sequence<dim...>());
    else
      return View(impl::part_label, extents[dim]...);
  }
  template <std::size_t... dim>
  [[nodiscard]] auto inner(std::index_sequence<dim...>) const {
    return Kokkos::subview(m_view, AnySharded::inner(dim, m_view.extent(dim))...);
  }

  View m_view;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_TENSOR
#include <heddle/tensor/sharded.ipp>
#endif
