// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of curve_cut.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/cut.hpp>
#include <heddle/systems/photons/curve_cut.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE int CurveCut::owner(std::uint64_t key) const noexcept {
  // Several pieces may begin at the same key; all but the last of them are empty.
  const auto behind = std::upper_bound(begins.begin(), begins.end(), key);
  return static_cast<int>(behind - begins.begin()) - 1;
}

HEDDLE_INLINE CurveCut cut_curve(std::span<const std::uint64_t> keys,
                                 std::span<const double> weights,
                                 const std::vector<double>& shares) {
  constexpr const char* where = "heddle::systems::cut_curve";
  expects(keys.size() == weights.size(), [&] {
    return ErrorInfo{where, "every item has one key and one weight",
                     text(keys.size(), " keys, ", weights.size(), " weights")};
  });
  for (std::size_t i = 0; i < keys.size(); ++i) {
    expects(keys[i] < std::uint64_t{1} << 63, [&] {
      return ErrorInfo{where, "keys must be below 2^63", text("keys[", i, "] = ", keys[i]),
                       "GridCurve::key() returns such keys"};
    });
    // cut() would name a place on the curve, which the caller does not know.
    expects(weights[i] >= 0 && weights[i] <= std::numeric_limits<double>::max(), [&] {
      return ErrorInfo{where, "weights must be finite and at least 0",
                       text("weights[", i, "] = ", weights[i])};
    });
  }
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  std::vector<std::uint64_t> places;  // the different keys, and the weight at each
  std::vector<double> sums;
  for (const std::size_t item : order) {
    if (places.empty() || places.back() != keys[item]) {
      places.push_back(keys[item]);
      sums.push_back(0);
    }
    sums.back() += weights[item];
  }
  const std::vector<std::int64_t> boundaries = cut(sums, shares);
  CurveCut pieces;
  for (std::size_t p = 0; p < shares.size(); ++p) {
    const auto at = static_cast<std::size_t>(boundaries[p]);
    pieces.begins.push_back(at == 0 ? 0 : at < places.size() ? places[at] : places.back() + 1);
  }
  return pieces;
}

HEDDLE_INLINE CurveCut cut_curve(std::span<const std::uint64_t> keys,
                                 std::span<const double> weights, int pieces) {
  return cut_curve(keys, weights, heddle::impl::equal_shares(pieces));
}

}  // namespace heddle::inline v0::systems
