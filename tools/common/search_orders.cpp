// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/simulate/costs.hpp>

#include "search_orders.hpp"

namespace tool {

using namespace heddle;

namespace {

/// Returns the part of a rank's share of the model that is a stage.
double share_of(const Orders& orders) {
  return static_cast<double>(orders.ranks.size()) / stage_count(orders);
}

}  // namespace

bool fits(const std::vector<double>& activations, Bytes bytes, const MemoryLimit& limit) {
  return !(limit.activations > 0 &&
           std::ranges::max(activations) > limit.activations * (1 + 1e-12)) &&
         !(limit.bytes > 0 && bytes > limit.bytes);
}

Candidate candidate(std::string name, const Orders& orders, const Prices& prices,
                    const MemoryLimit& limit) {
  Candidate result{std::move(name), price(orders, prices)};
  result.fits = fits(result.priced.activations,
                     limit.bytes > 0 ? most_bytes(result.priced.timeline) : 0, limit);
  return result;
}

plan::Coordinated<Seconds> coordinated(const Orders& orders, const Prices& s,
                                       plan::CoordinateOptions options, double effort) {
  const double share = share_of(orders);
  StageCosts costs{.forward = s.forward[0] * share,
                   .backward_input = s.backward_input[0] * share,
                   .backward_weight = s.backward_weight[0] * share,
                   .latency = s.latency,
                   .per_byte = s.bandwidth > 0 ? 1 / s.bandwidth : 0};
  if (s.backward[0] > 0) costs.backward = s.backward[0] * share;
  std::size_t entries = 1;
  for (const auto& list : orders.ranks) entries += list.size();
  options.sizes = {.activation = s.activation};
  options.swaps = static_cast<std::int64_t>(effort * 2e6 / static_cast<double>(entries));
  options.branches = static_cast<std::int64_t>(effort * 1e5);
  return plan::coordinate(orders, costs, options);
}

std::optional<Candidate> search_orders(std::string_view name, const Orders& orders, const Prices& s,
                                       const MemoryLimit& limit, double effort) {
  // Activations of single stages that fit. Messages need memory, too, so that fewer may fit.
  const double share = share_of(orders);
  double most = std::numeric_limits<double>::infinity();
  if (limit.activations > 0) most = limit.activations / share * (1 + 1e-12);
  if (limit.bytes > 0 && s.saved > 0)
    most = std::min(most,
                    (static_cast<double>(limit.bytes) - 2.0 * static_cast<double>(s.parameters)) /
                        (static_cast<double>(s.saved) * share));
  if (most < 1) return {};
  const auto given = most < 1e9 ? static_cast<std::int64_t>(most) : 0;
  auto cap = given;
  do {
    const auto found = coordinated(orders, s, {.cap = cap}, effort);
    if (found.extra > 0) return {};
    std::string way(name);
    if (found.rule != "as given") way = text("work of ", name, ": ", found.rule);
    Candidate result = candidate(std::move(way), found.orders, s, limit);
    result.bound = cap == given ? found.bound : 0;  // a smaller cap has a larger bound
    if (result.fits) return result;
    cap = found.live - 1;
  } while (cap > 0 && s.saved > 0);
  return {};
}

std::string with_gap(const Candidate& candidate, const std::string& bound_text) {
  const double makespan = candidate.priced.timeline.makespan();
  if (candidate.bound > 0 && candidate.bound < makespan * (1 - 1e-9))
    return text(candidate.name, "; ", percent(makespan / candidate.bound - 1),
                " above the lower bound ", bound_text, " of its computations");
  return text(candidate.name, candidate.bound > 0 ? "; optimal for its computations" : "");
}

}  // namespace tool
