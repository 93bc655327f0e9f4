// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// place_weights(): finds the best places of the W of zero-bubble orders under given costs. The
/// generators assume that F, I and W take equally long and that transfers take no time; profiles
/// differ from that.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/order/live_activations.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/pass/fill_idle_with_weights.hpp>
#include <heddle/simulate/internal/priced.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0::plan {

/// The result of place_weights().
template <class Time>
struct PlacedWeights {
  Orders orders;       ///< the best orders
  Time makespan = {};  ///< their makespan by simulate()
  std::string rule;    ///< the placing that gave them; "as given" if no placing was better
};

namespace impl {

/// Returns the time of every order under `costs` and the longest transfer, as plain numbers for
/// passes.
template <Costs C>
[[nodiscard]] schedule::FillOptions fill_options(const Schedule& woven, const C& costs) {
  std::size_t stages = 0;
  std::size_t items = 0;
  for (const Action& action : woven.actions()) {
    if (action.kind > Kind::backward) continue;
    stages = std::max(stages, +action.stage + 1);
    items = std::max(items, +action.item + 1);
  }
  const auto index = [items](Kind kind, Stage stage, Item item) {
    return (+stage * items + +item) * 4 + static_cast<std::size_t>(kind);
  };
  std::vector<double> prices(stages * items * 4, 0);
  double longest = 0;
  for (std::size_t i = 0; i < woven.size(); ++i) {
    const Action& action = woven[ActionId{i}];
    if (action.kind == Kind::move) {
      const auto transfer = heddle::impl::transfer_time(woven, costs, ActionId{i});
      longest = std::max(longest, static_cast<double>(transfer.occupancy + transfer.latency));
    } else if (action.kind <= Kind::backward) {
      prices[index(action.kind, action.stage, action.item)] =
          static_cast<double>(heddle::impl::work_time(woven, costs, ActionId{i}));
    }
  }
  return {.price =
              [index, prices = std::move(prices)](const Order& order) {
                return prices[index(order.kind, order.stage, order.item)];
              },
          .transfer = longest};
}

/// Returns true if a backward is split.
[[nodiscard]] bool has_weights(const Orders& orders);

/// Calls `consider(orders, rule)` with the results of fill_idle_with_weights(), once for every
/// least share of a W that a gap must hold.
template <class Consider>
void try_placings(const Orders& orders, schedule::FillOptions options, const Consider& consider) {
  for (const double share : {1.0, 0.75, 0.5, 0.25, 0.0}) {
    options.share = share;
    consider(schedule::fill_idle_with_weights(orders, options),
             text("gaps of at least ", share, " W"));
  }
}

}  // namespace impl

/// Returns the best of `orders` and of five results of fill_idle_with_weights() under `costs`. They
/// move a W into a gap that holds at least 1, 3/4, 1/2, 1/4 or any part of it. The best has the
/// smallest makespan of simulate(); at equal makespans the first wins. No rank keeps more
/// activations than the maximum over the ranks of `orders`. F and I keep their order; coordinate()
/// tries other orders.
///
/// Qi et al. ("Zero bubble pipeline parallelism", ICLR'24) have one such switch, on or off, in
/// their search. Its other switches, the number of forwards ahead and whether F or I goes first,
/// are the choice of `orders`.
/// @throws infeasible, contract_error as weave() and fill_idle_with_weights() do.
template <Costs C>
[[nodiscard]] PlacedWeights<typename C::Time> place_weights(const Orders& orders, const C& costs,
                                                            const StageSizes& sizes = {}) {
  const Schedule woven = weave(orders, sizes);
  PlacedWeights<typename C::Time> best{orders, simulate(woven, costs).makespan(), "as given"};
  schedule::FillOptions options = impl::fill_options(woven, costs);
  const auto live = schedule::live_activations(orders);
  options.cap = std::ranges::max(live);
  impl::try_placings(orders, std::move(options), [&](Orders placed, std::string rule) {
    const auto makespan = simulate(weave(placed, sizes), costs).makespan();
    if (makespan < best.makespan) best = {std::move(placed), makespan, std::move(rule)};
  });
  return best;
}
/// Places W under costs that are written as a braced list: `place_weights(orders, {.forward = 1,
/// .backward_input = 1.2, .backward_weight = 0.8})`.
[[nodiscard]] PlacedWeights<Seconds> place_weights(const Orders& orders, const StageCosts& costs,
                                                   const StageSizes& sizes = {});

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/place_weights.ipp>
#endif
