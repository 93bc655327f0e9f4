// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ViewRef: a View of any type, as collective calls see it.

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

class StridedBlock;

namespace impl {

/// The memory of a View, in which it must be.
template <class View>
[[nodiscard]] std::byte* begin_of(const View& view) {
  using Element = typename View::non_const_value_type;
  return reinterpret_cast<std::byte*>(const_cast<Element*>(view.data()));
}

/// A reference to a View of any type. It costs no allocation.
class ViewRef {
 public:
  /// Refers to a View without elements.
  ViewRef() = default;
  /// Refers to `view`, which must outlive it unless it keeps a copy.
  template <class View>
  requires Kokkos::is_view_v<View> ViewRef(const View& view)  // NOLINT(google-explicit-constructor)
      : data(begin_of(view)),
        element(sizeof(typename View::value_type)),
        type(scalar_of<typename View::non_const_value_type>),
        axes(View::rank),
        size(view.size()),
        contiguous(view.span_is_contiguous()),
        m_view(&view),
        m_label(
            [](const void* of) -> std::string { return static_cast<const View*>(of)->label(); }),
        m_copy([](const void* of) -> std::shared_ptr<const void> {
          return std::make_shared<const View>(*static_cast<const View*>(of));
        }) {
    for (std::size_t axis = 0; axis != View::rank; ++axis) {
      extents[axis] = view.extent(axis);
      strides[axis] = static_cast<std::ptrdiff_t>(view.stride(axis));
    }
  }

  /// Refers to one element of `bytes` bytes that is in no View. It cannot keep a copy.
  ViewRef(void* number, Bytes bytes, Scalar scalar) noexcept;

  /// Makes it refer to a copy of the View, which lives as long as this and all copies of this.
  void keep();

  [[nodiscard]] Bytes bytes() const noexcept { return size * element; }
  [[nodiscard]] std::string label() const;
  /// Returns the bytes from the first element to the end of the last one. No stride is negative.
  [[nodiscard]] Bytes span() const noexcept;
  /// Returns `count` indices of the first axis, from `first` on.
  [[nodiscard]] ViewRef rows(std::size_t first, std::size_t count) const;
  /// Returns true if the elements lie one after another in the order of their indices, the last
  /// index fastest: then they travel as they lie.
  [[nodiscard]] bool in_index_order() const noexcept;
  /// Returns the address of the element with `number` elements before it in index order.
  [[nodiscard]] std::byte* place_of(std::size_t number) const noexcept;
  /// Returns the elements as bytes relative to `data`, in index order.
  [[nodiscard]] StridedBlock block() const;

  std::byte* data = nullptr;
  Bytes element = 1;           ///< bytes of an element
  Scalar type = Scalar::byte;  ///< and its type
  std::size_t axes = 0;        ///< the rank of the View
  std::size_t size = 0;        ///< number of elements
  bool contiguous = true;      ///< without gaps, in whatever order
  std::array<std::size_t, 8> extents;
  std::array<std::ptrdiff_t, 8> strides;

 private:
  const void* m_view = nullptr;
  std::string (*m_label)(const void*) = nullptr;
  std::shared_ptr<const void> (*m_copy)(const void*) = nullptr;
  std::shared_ptr<const void> m_kept;
};

/// Refuses a View of another number of elements.
void expect_size(const char* where, const char* name, const ViewRef& view, std::size_t size);

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/internal/view_ref.ipp>
#endif
