// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// median() and value_at(): quantiles of measured values.

#include <algorithm>
#include <cstddef>
#include <vector>

namespace heddle::inline v0::impl {

/// Returns the value that has `place` smaller or equal values before it in ascending order. `place`
/// is below the number of values. It changes the order of `values`.
template <class T>
[[nodiscard]] T value_at(std::vector<T>& values, std::size_t place) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// Returns the median, which is the larger one of the middle two values of an even number. There is
/// at least one value. It changes the order of `values`.
template <class T>
[[nodiscard]] T median(std::vector<T>& values) {
  return value_at(values, values.size() / 2);
}

}  // namespace heddle::inline v0::impl
