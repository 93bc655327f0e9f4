// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of view_ref.hpp.

#include <cstddef>
#include <string>

#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE ViewRef::ViewRef(void* number, Bytes bytes, Scalar scalar) noexcept
    : data(static_cast<std::byte*>(number)), element(bytes), type(scalar), axes(1), size(1) {
  extents[0] = 1;
  strides[0] = 1;
}

HEDDLE_FULL_INLINE std::string ViewRef::label() const {
  return m_label == nullptr ? std::string() : m_label(m_view);
}

HEDDLE_FULL_INLINE void ViewRef::keep() {
  if (m_view == nullptr || m_kept != nullptr) return;
  m_kept = m_copy(m_view);
  m_view = m_kept.get();
}

HEDDLE_FULL_INLINE Bytes ViewRef::span() const noexcept {
  std::size_t last = 0;
  for (std::size_t axis = 0; axis != axes; ++axis)
    last += (extents[axis] - 1) * static_cast<std::size_t>(strides[axis]);
  return size == 0 ? 0 : (last + 1) * element;
}

HEDDLE_FULL_INLINE ViewRef ViewRef::rows(std::size_t first, std::size_t count) const {
  ViewRef part = *this;
  const std::size_t row = extents[0] == 0 ? 0 : size / extents[0];
  part.data += static_cast<std::ptrdiff_t>(first * element) * strides[0];
  part.extents[0] = count;
  part.size = count * row;
  part.contiguous = contiguous && in_index_order();
  return part;
}

HEDDLE_FULL_INLINE bool ViewRef::in_index_order() const noexcept {
  bool ordered = true;
  std::size_t inside = 1;
  for (std::size_t axis = axes; axis-- > 0; inside *= extents[axis])
    ordered = ordered && (extents[axis] == 1 || static_cast<std::size_t>(strides[axis]) == inside);
  return ordered || inside == 0;
}

HEDDLE_FULL_INLINE std::byte* ViewRef::place_of(std::size_t number) const noexcept {
  std::ptrdiff_t offset = 0;
  for (std::size_t axis = axes; axis-- > 0;) {
    const std::size_t extent = axis == 0 ? number + 1 : extents[axis];
    offset += static_cast<std::ptrdiff_t>(number % extent) * strides[axis];
    number /= extent;
  }
  return data + offset * static_cast<std::ptrdiff_t>(element);
}

HEDDLE_FULL_INLINE StridedBlock ViewRef::block() const {
  StridedBlock block(element);
  for (std::size_t axis = axes; axis-- > 0;)
    block = block.repeated(extents[axis], strides[axis] * static_cast<std::ptrdiff_t>(element));
  return block;
}

HEDDLE_FULL_INLINE void expect_size(const char* where, const char* name, const ViewRef& view,
                                    std::size_t size) {
  expects(view.size == size, [&] {
    return ErrorInfo{where, text("the ", name, " has the wrong size"),
                     text(view.label(), " has ", view.size, " elements, expected ", size)};
  });
}

}  // namespace heddle::inline v0::impl
