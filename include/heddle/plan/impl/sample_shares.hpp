// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// sample_shares(): divides the samples of a microbatch over groups of different speed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include <heddle/core/units.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns shares of `samples` in proportion to 1 / times[g], rounded by largest remainder; of
/// equal remainders the first group's is the largest. Every group gets at least one sample, which
/// the largest share gives. There are no fewer samples than groups.
[[nodiscard]] inline std::vector<std::int64_t> sample_shares(std::span<const Seconds> times,
                                                             std::int64_t samples) {
  const Seconds longest = *std::ranges::max_element(times);
  std::vector<double> speeds;
  double all = 0;
  for (const Seconds time : times) {
    speeds.push_back(longest > 0 ? longest / std::max(time, 1e-9 * longest) : 1);
    all += speeds.back();
  }
  std::vector<std::int64_t> shares;
  std::vector<double> remainders;
  std::int64_t rest = samples;
  for (const double speed : speeds) {
    const double exact = static_cast<double>(samples) * speed / all;
    shares.push_back(std::min(rest, static_cast<std::int64_t>(exact)));
    remainders.push_back(exact - static_cast<double>(shares.back()));
    rest -= shares.back();
  }
  std::vector<std::size_t> order(times.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Remainders that differ by rounding only are equal: the order must not depend on it.
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return static_cast<std::int64_t>(remainders[a] * 0x1p30) >
           static_cast<std::int64_t>(remainders[b] * 0x1p30);
  });
  for (std::size_t i = 0; rest > 0; i = (i + 1) % order.size(), --rest) ++shares[order[i]];
  for (std::int64_t& share : shares)
    if (share == 0) {
      --*std::ranges::max_element(shares);
      share = 1;
    }
  return shares;
}

}  // namespace heddle::inline v0::plan::impl
