// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of axis_costs.hpp.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/hap/axis_costs.hpp>
#include <heddle/systems/hap/internal/byte_times.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE void AxisCosts::expect_valid(const char* where, double n) const {
  expects(ways >= 1, [&] {
    return ErrorInfo{where, "an axis has at least one rank", text("ways = ", ways)};
  });
  heddle::impl::expect_time(where, "start", start);
  heddle::impl::expect_time(where, "latency", latency);
  heddle::impl::expect_time(where, "ring", ring);
  heddle::impl::expect_time(where, "pairs", pairs);
  expects(heddle::impl::is_time(n), [&] {
    return ErrorInfo{where, "a number of bytes must be finite and at least 0", text("n = ", n)};
  });
}

HEDDLE_INLINE Seconds AxisCosts::all_gather(double n) const {
  expect_valid("heddle::systems::AxisCosts::all_gather", n);
  if (ways < 2) return 0;
  const double p = ways;
  return start + (p - 1) * latency + (p - 1) / p * n * ring;
}

HEDDLE_INLINE Seconds AxisCosts::all_reduce(double n) const {
  const Seconds gather = all_gather(n);
  return ways < 2 ? 0 : 2 * gather - start;
}

HEDDLE_INLINE Seconds AxisCosts::all_to_all(double n) const {
  expect_valid("heddle::systems::AxisCosts::all_to_all", n);
  if (ways < 2) return 0;
  const double p = ways;
  return start + (p - 1) * latency + n / (p * p) * pairs;
}

HEDDLE_INLINE Seconds AxisCosts::change(const TensorForm& from, const TensorForm& to,
                                        double n) const {
  using enum TensorForm::Kind;
  if (from == to) return 0;
  if (to.kind == partial) return std::numeric_limits<Seconds>::infinity();
  if (from.kind == replicated) return 0;
  if (from.kind == partial && to.kind == replicated) return all_reduce(n);
  return from.kind == sharded && to.kind == sharded ? all_to_all(n) : all_gather(n);
}

HEDDLE_INLINE AxisCosts axis_costs(const Machine& machine,
                                   const std::vector<std::vector<Rank>>& groups, Seconds start) {
  const auto alike = [&](const std::vector<Rank>& group) {
    return !group.empty() && group.size() == groups.front().size();
  };
  expects(!groups.empty() && std::ranges::all_of(groups, alike), [&] {
    return ErrorInfo{"heddle::systems::axis_costs", "an axis needs groups of one size",
                     text(groups.size(), " groups")};
  });
  heddle::impl::expect_time("heddle::systems::axis_costs", "start", start);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t i = 0; i < groups[g].size(); ++i) {
      const auto here = groups[g].begin() + static_cast<std::ptrdiff_t>(i);
      expects(+*here < static_cast<std::size_t>(machine.ranks()) &&
                  std::find(groups[g].begin(), here, *here) == here,
              [&] {
                return ErrorInfo{
                    "heddle::systems::axis_costs",
                    "a group names a rank that does not exist, or one twice",
                    text("groups[", g, "][", i, "] is rank ", *here, " of ", machine.ranks())};
              });
    }
  AxisCosts costs{.ways = static_cast<int>(groups.front().size()), .start = start};
  impl::ByteTimes ring(machine), pairs(machine);
  for (const std::vector<Rank>& group : groups)
    for (std::size_t i = 0; i < group.size(); ++i)
      for (std::size_t j = 0; j < group.size(); ++j) {
        if (i == j) continue;
        costs.latency = std::max(costs.latency, machine.link(group[i], group[j]).latency);
        pairs.add(group[i], group[j]);
        if (j == (i + 1) % group.size()) ring.add(group[i], group[j]);
      }
  costs.ring = ring.busiest();
  costs.pairs = pairs.busiest();
  for (const Seconds each : {costs.ring, costs.pairs})
    heddle::impl::expect_sum(
        "heddle::systems::axis_costs", each,
        [] { return std::string("the time of a byte on the busiest link"); },
        "correct the bandwidths of the machine");
  return costs;
}

}  // namespace heddle::inline v0::systems
