// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <string>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/live_activations.hpp>

#include "search.hpp"

namespace tool {

using namespace heddle;

Candidate searched(const Request& request, const Orders& orders, const Prices& prices) {
  constexpr std::size_t most = 5'000;  // passes; a search of more takes many seconds
  std::size_t passes = 0;
  for (const auto& list : orders.ranks) passes += list.size();
  if (passes > most)
    wrong("the schedule is too large for a search in the page",
          text(passes, " passes, expected at most ", most),
          "take fewer ranks or microbatches, or run heddle-schedule show best");
  if (!prices.equal_stages())
    wrong("a search is for stages that take equally long", "", "remove the factors of the stages");
  if (has_pairs(orders))
    wrong("a search has no fused pairs", "", "take a schedule without fused pairs");
  double effort = 1;
  request.read("effort", effort);
  if (!(effort >= 0 && effort <= 1)) wrong("effort is a number from 0 to 1", text(effort));
  const std::string name(request.text("schedule"));
  MemoryLimit limit;
  if (request.text("search") == "kept") {
    const auto caps = schedule::live_activations(orders);
    const auto kept = coordinated(orders, prices, {.caps = caps}, effort);
    Candidate result =
        candidate(text(name, ", refined (", kept.rule, ")"), kept.orders, prices, limit);
    result.bound = kept.bound;
    return result;
  }
  if (prices.sized()) request.read("cap-bytes", limit.bytes);
  auto found = search_orders(name, orders, prices, limit, effort);
  if (!found)
    throw infeasible({"explorer", "no orders with the computations of this schedule fit the memory",
                      text(limit.bytes, " bytes"), "give more memory, or more ranks"});
  return *std::move(found);
}

}  // namespace tool
