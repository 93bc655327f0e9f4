// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of coordinate.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/priority.hpp>
#include <heddle/plan/solver/coordinate.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

HEDDLE_INLINE std::vector<Rule> standard_rules() {
  std::vector<Rule> rules = {{"backward first", backward_first},
                             {"forward first", forward_first},
                             {"microbatch first", microbatch_first},
                             {"deepest first", deepest_first},
                             {"backward first, W last", WeightsLast{backward_first}},
                             {"slot first, every 2, W last", WeightsLast{SlotFirst{4}}}};
  for (const int half_slots : {1, 2, 4, 8})
    rules.push_back({text("slot first, every ", half_slots / 2.0), SlotFirst{half_slots}});
  return rules;
}

namespace impl {

HEDDLE_INLINE void check(const Orders& orders, const CoordinateOptions& options) {
  const auto where = [&] { return text("heddle::plan::coordinate(", orders.name, ")"); };
  // The search raises the cap by quarters.
  expects(options.cap >= 0 && options.cap <= (std::int64_t{1} << 40), [&] {
    return ErrorInfo{where(), "the cap on activations must be at least 0 and at most 2^40",
                     text("cap = ", options.cap), "0 means no limit"};
  });
  expects(options.swaps >= 0 && options.branches >= 0, [&] {
    return ErrorInfo{where(), "the numbers of swaps and of branches must be at least 0",
                     text("swaps = ", options.swaps, ", branches = ", options.branches)};
  });
  const std::size_t ranks = orders.ranks.size();
  expects(options.caps.empty() || (options.caps.size() == ranks && options.cap == 0), [&] {
    return ErrorInfo{where(), text("expected one cap for each of ", ranks, " ranks, and cap = 0"),
                     text("got ", options.caps.size(), " caps and cap = ", options.cap),
                     "use caps = schedule::live_activations(orders), or cap for all ranks"};
  });
  for (const std::int64_t each : options.caps)
    expects(each >= 0 && each <= (std::int64_t{1} << 40), [&] {
      return ErrorInfo{where(), "the cap of each rank must be at least 0 and at most 2^40",
                       text("got ", each), "without caps there is no limit"};
    });
  for (const Rule& rule : options.rules)
    expects(rule.priority != nullptr, [&] {
      return ErrorInfo{where(), "a rule has no priority", text("rule '", rule.name, "'")};
    });
}

HEDDLE_INLINE std::vector<std::int64_t> caps_of(const Orders& orders,
                                                const CoordinateOptions& options, int quarters) {
  std::vector<std::int64_t> caps = options.caps;
  if (options.cap > 0) caps.assign(orders.ranks.size(), options.cap);
  if (quarters > 4)
    for (std::int64_t& cap : caps) cap = std::max<std::int64_t>(cap, 1) * quarters / 4;
  return caps;
}

HEDDLE_INLINE std::int64_t excess(const std::vector<std::int64_t>& live,
                                  const std::vector<std::int64_t>& caps) {
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < caps.size(); ++rank)
    most = std::max(most, live[rank] - caps[rank]);
  return most;
}

HEDDLE_INLINE std::int64_t largest(const std::vector<std::int64_t>& values) {
  return values.empty() ? 0 : *std::ranges::max_element(values);
}

}  // namespace impl

HEDDLE_INLINE Coordinated<Seconds> coordinate(const Orders& orders, const StageCosts& costs,
                                              const CoordinateOptions& options) {
  return coordinate<StageCosts>(orders, costs, options);
}

}  // namespace heddle::inline v0::plan
