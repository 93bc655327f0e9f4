// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// strided_block_of(): the bytes of an mdspan. It takes std::mdspan, the mdspan that Kokkos has
/// before C++23, and every type with their members.

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <heddle/core/contract.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0 {

namespace impl {

/// A type with the members of an mdspan whose elements are in memory.
template <class Span>
concept StridedSpan = requires(const Span& span, typename Span::rank_type axis) {
  typename Span::element_type;
  { Span::rank() } -> std::convertible_to<std::size_t>;
  { span.extent(axis) } -> std::convertible_to<std::size_t>;
  { span.stride(axis) } -> std::convertible_to<std::int64_t>;
  { span.is_strided() } -> std::convertible_to<bool>;
  span.data_handle();
};

}  // namespace impl

/// Returns the elements of an mdspan as bytes, with offsets from the element of index 0. The last
/// index is the fastest one, whatever the layout of the span.
/// @throws contract_error if the layout has no strides.
template <impl::StridedSpan Span>
[[nodiscard]] StridedBlock strided_block_of(const Span& span) {
  expects(span.is_strided(), [] {
    return ErrorInfo{"heddle::strided_block_of", "the layout has no strides",
                     "its elements are not nested loops", "copy them to a layout with strides"};
  });
  using Axis = typename Span::rank_type;
  constexpr std::size_t size = sizeof(typename Span::element_type);
  StridedBlock block(size);
  for (Axis axis = Span::rank(); axis-- > 0;)
    block = block.repeated(
        static_cast<std::uint64_t>(span.extent(axis)),
        static_cast<std::int64_t>(span.stride(axis)) * static_cast<std::int64_t>(size));
  return block;
}

}  // namespace heddle::inline v0
