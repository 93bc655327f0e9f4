// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// least_time(): the best assignment of flows to spines by brute force.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <heddle/systems/c4/path_plan.hpp>

namespace heddle::test {

/// Returns the time of the busiest link of an assignment: its flows over the share of its spine.
inline double time_of(const std::vector<systems::Flow>& flows,
                      const std::vector<std::uint32_t>& spine, const std::vector<double>& shares) {
  std::uint32_t leaves = 0;
  for (const systems::Flow& flow : flows) leaves = std::max({leaves, flow.from + 1, flow.to + 1});
  std::vector<double> load(2 * std::size_t{leaves} * shares.size(), 0);
  double longest = 0;
  for (std::size_t f = 0; f < flows.size(); ++f)
    for (const std::size_t end : {std::size_t{flows[f].from}, std::size_t{leaves} + flows[f].to})
      longest = std::max(longest, (load[end * shares.size() + spine[f]] += 1) / shares[spine[f]]);
  return longest;
}

namespace impl {

inline void search(const std::vector<systems::Flow>& flows, std::vector<std::uint32_t>& spine,
                   const std::vector<double>& shares, double& least) {
  if (time_of({flows.begin(), flows.begin() + static_cast<std::ptrdiff_t>(spine.size())}, spine,
              shares) >= least)
    return;
  if (spine.size() == flows.size()) {
    least = time_of(flows, spine, shares);
    return;
  }
  for (std::uint32_t s = 0; s < shares.size(); ++s) {
    spine.push_back(s);
    search(flows, spine, shares, least);
    spine.pop_back();
  }
}

}  // namespace impl

/// Returns the least time of the busiest link over all assignments. Branches end where they are no
/// better than the best so far.
inline double least_time(const std::vector<systems::Flow>& flows,
                         const std::vector<double>& shares) {
  double least = std::numeric_limits<double>::infinity();
  std::vector<std::uint32_t> spine;
  impl::search(flows, spine, shares, least);
  return least;
}

}  // namespace heddle::test
