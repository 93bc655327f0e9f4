// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What collective calls ask of their Views.

#include <cstddef>
#include <functional>
#include <type_traits>

#include <heddle/collective/internal/view_ref.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Refuses two Views that cannot be the two ends of a call.
template <class In, class Out>
constexpr void check_match() {
  static_assert(std::is_same_v<typename In::non_const_value_type, typename Out::value_type> &&
                    std::is_same_v<typename In::memory_space, typename Out::memory_space>,
                "heddle: the output of a collective is a View of the input's elements and memory");
}

/// Returns true if the `a_bytes` bytes at `a` and the `b_bytes` bytes at `b` have memory in common.
[[nodiscard]] inline bool overlap(const std::byte* a, Bytes a_bytes, const std::byte* b,
                                  Bytes b_bytes) {
  const std::less<const std::byte*> before;  // of any two addresses
  return a_bytes != 0 && b_bytes != 0 && before(a, b + b_bytes) && before(b, a + a_bytes);
}

}  // namespace impl
}  // namespace heddle::inline v0
