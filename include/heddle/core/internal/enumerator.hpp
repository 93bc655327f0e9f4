// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// enumerator_name() and expect_enumerator(): names and checks of enumerators, which an integer
/// from elsewhere may not be.

#include <cstddef>
#include <iterator>
#include <string_view>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::impl {

/// Returns the name of `value` in an array of the names of all enumerators, or "unknown".
template <class Names, class Enum>
[[nodiscard]] constexpr std::string_view enumerator_name(const Names& names, Enum value) noexcept {
  const auto at = static_cast<std::size_t>(value);
  return at < std::size(names) ? std::string_view(names[at]) : std::string_view("unknown");
}

/// Throws contract_error unless `value` is not above `last`, the last enumerator.
template <class Enum>
constexpr void expect_enumerator(const char* where, const char* name, Enum value, Enum last) {
  expects(static_cast<std::size_t>(value) <= static_cast<std::size_t>(last), [&] {
    return ErrorInfo{where, "a value is not one of the enumerators",
                     text(name, " = ", static_cast<std::size_t>(value), ", the last one is ",
                          static_cast<std::size_t>(last))};
  });
}

}  // namespace heddle::inline v0::impl
