// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// is_time(): checks whether a cost is a valid time, and makes the errors for costs and sums that
/// are not.

#include <iosfwd>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::impl {

/// Returns true if `value` is a valid duration: a finite number that is not negative.
template <class Time>
[[nodiscard]] constexpr bool is_time(const Time& value) {
  if constexpr (std::numeric_limits<Time>::has_infinity)
    return !(value < Time{}) && value < std::numeric_limits<Time>::infinity();  // no NaN either
  else
    return !(value < Time{});
}

/// Returns the error for the cost `name`, which is not a valid time.
template <class Time>
[[nodiscard]] ErrorInfo no_time(std::string where, const std::string& name, const Time& value) {
  std::string found = name;
  if constexpr (std::is_arithmetic_v<Time> || requires(std::ostream & out) { out << value; })
    found += text(" = ", value);
  return {std::move(where), "a cost is negative, infinite or not a number", std::move(found),
          "every cost is a finite time of at least 0; 0 is for what takes no time"};
}

/// Throws contract_error unless `value` is a valid time.
template <class Time>
void expect_time(const char* where, const char* name, const Time& value) {
  expects(is_time(value), [&] { return no_time(where, name, value); });
}

/// Throws contract_error unless `sum`, to which valid times add up, is a valid time. `of()` names
/// the sum. `fix` says what the caller can change.
template <class Time, class Of>
void expect_sum(const char* where, const Time& sum, Of&& of,
                const char* fix = "choose a greater unit of time") {
  expects(is_time(sum), [&] {
    return ErrorInfo{where, "the costs add up to more than their type can hold", of(), fix};
  });
}

}  // namespace heddle::inline v0::impl
