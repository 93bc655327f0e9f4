// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What collective calls ask of their Views.

#include <cstddef>
#include <functional>
#include <type_traits>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Refuses a View of another number of elements.
template <class View>
void expect_size(const char* where, const char* name, const View& view, std::size_t size) {
  expects(view.size() == size, [&] {
    return ErrorInfo{where, text("the ", name, " has the wrong size"),
                     text(view.label(), " has ", view.size(), " elements, expected ", size)};
  });
}

/// True if the two Views can be the two ends of a call.
template <class In, class Out>
inline constexpr bool match = std::is_same_v<typename std::remove_cvref_t<In>::non_const_value_type,
                                             typename std::remove_cvref_t<Out>::value_type>&&
    std::is_same_v<typename std::remove_cvref_t<In>::memory_space,
                   typename std::remove_cvref_t<Out>::memory_space>;

/// Returns true if the `a_bytes` bytes at `a` and the `b_bytes` bytes at `b` have memory in common.
[[nodiscard]] inline bool overlap(const std::byte* a, Bytes a_bytes, const std::byte* b,
                                  Bytes b_bytes) {
  const std::less<const std::byte*> before;  // of any two addresses
  return a_bytes != 0 && b_bytes != 0 && before(a, b + b_bytes) && before(b, a + a_bytes);
}

template <class View>
[[nodiscard]] std::byte* begin_of(const View& view) {
  using Element = typename View::non_const_value_type;
  return reinterpret_cast<std::byte*>(const_cast<Element*>(view.data()));
}

}  // namespace impl
}  // namespace heddle::inline v0
