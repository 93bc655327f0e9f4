// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// coordinate(): searches for the best orders. It makes lists by several priorities under several
/// memory caps, simulates each, and returns the best.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/impl/exact_orders.hpp>
#include <heddle/plan/impl/known_orders.hpp>
#include <heddle/plan/impl/list_bound.hpp>
#include <heddle/plan/impl/list_clock.hpp>
#include <heddle/plan/impl/order_search.hpp>
#include <heddle/plan/impl/v_blocks.hpp>
#include <heddle/plan/impl/zero_bubble_rounds.hpp>
#include <heddle/plan/place_weights.hpp>
#include <heddle/plan/priority.hpp>
#include <heddle/plan/solver/list_schedule.hpp>
#include <heddle/schedule/order/live_activations.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0::plan {

/// A priority and its name in reports.
struct Rule {
  std::string name;   ///< such as "backward first"
  Priority priority;  ///< the priority
};

/// Returns the rules that coordinate() tries by default.
[[nodiscard]] std::vector<Rule> standard_rules();

/// The options of coordinate().
struct CoordinateOptions {
  std::int64_t cap = 0;  ///< most activations that a rank keeps; 0: no limit
  /// The number of activations that a forward of each stage keeps. If empty, it is one each.
  std::vector<std::int64_t> activations = {};
  std::vector<Rule> rules = standard_rules();  ///< rules to try
  StageSizes sizes = {};                       ///< sizes of what is moved
  /// Most swaps of neighbours on the critical path that improve the best orders. A swap takes time
  /// in proportion to the number of actions, about 30 us for a thousand.
  std::int64_t swaps = 0;
  /// Most branches of an exact search, which runs if ranks times microbatches are at most 24. A
  /// million branches take seconds.
  std::int64_t branches = 0;
  /// The most activations of each rank, in place of `cap`. With
  /// `schedule::live_activations(orders)`, no rank keeps more than in the given orders.
  std::vector<std::int64_t> caps = {};
};

/// The result of coordinate().
template <class Time>
struct Coordinated {
  Orders orders;           ///< the best orders
  Time makespan = {};      ///< their makespan by simulate()
  std::string rule;        ///< the rule that gave them; "as given" if no rule was better
  std::int64_t live = 0;   ///< most activations that a rank keeps
  std::int64_t extra = 0;  ///< activations above a cap, if no orders were found within it
  int tried = 0;           ///< lists that were tried, without variants that differ in W only
  int dead_ends = 0;       ///< tried lists that could not go on under their cap
  /// No orders of these computations are shorter within the cap, or within the raised cap if
  /// `extra` is positive.
  Time bound = {};

  /// Returns true if the orders are proven to be the shortest.
  [[nodiscard]] bool optimal() const { return !(bound < makespan); }
};

namespace impl {

/// Throws contract_error if an option of coordinate() is out of its range or a rule is empty.
void check(const Orders& orders, const CoordinateOptions& options);

/// Returns the cap of each rank, raised to `quarters` quarters, or nothing if there is no limit.
[[nodiscard]] std::vector<std::int64_t> caps_of(const Orders& orders,
                                                const CoordinateOptions& options, int quarters);

/// Returns by how much the activations of a rank exceed its cap at most.
[[nodiscard]] std::int64_t excess(const std::vector<std::int64_t>& live,
                                  const std::vector<std::int64_t>& caps);

/// Returns the largest of the values, 0 if there are none.
[[nodiscard]] std::int64_t largest(const std::vector<std::int64_t>& values);

}  // namespace impl

/// Returns the best of `orders` and of the results of list_schedule() by every rule. Each rule is
/// tried with half, two thirds, three quarters and all of the cap, because it may help the others
/// if a rank holds back. A candidate counts if it progresses and keeps no more than the cap. The
/// best has the smallest makespan of simulate(); at equal makespans the fewest activations win,
/// then the first. If no candidate counts, the cap is raised by quarters until one does, and
/// `extra` tells by how much it is exceeded.
///
/// The schedules of the catalogue with the same computations are candidates, too, so the best is
/// never longer than theirs. If the backward is split and times convert to double, every candidate
/// is also tried with other places of its W, as place_weights() does. For a chain with one stage
/// per rank, the heuristic of the zero-bubble authors adds up to eight candidates, so the best is
/// never longer than theirs. For a chain that is folded to a V, the candidates include the building
/// blocks of V-half and V-min with other steps from rank to rank. Each is repeated, squeezed under
/// the cap, and repeated with its two ends in the order of its authors.
/// `coordinate(v_min(p, m), costs, {.cap = k, .rules = {}})` returns the shortest of them for
/// `costs` and k activations without trying lists by priority.
///
/// `bound` is a lower bound: a path of dependencies, the work of a rank with its pipeline fill, or
/// the time for which activations are kept. If `branches` are allowed and the problem is small, an
/// exact search may prove that the best is optimal, or improve it. It applies if all microbatches
/// cost the same, orders take time, and messages do not occupy their channels.
///
/// The search tries up to 4 |rules| lists of the length of `orders` for every cap, and six times as
/// many if the backward is split. The candidates of a V are a few hundred for a thousand orders,
/// and four for many.
/// @throws contract_error if a cap, `swaps` or `branches` are negative, or if `cap` and `caps` are
///         both given.
/// @throws infeasible, contract_error as weave(), live_activations() and ListScheduler do.
template <Costs C>
[[nodiscard]] Coordinated<typename C::Time> coordinate(const Orders& orders, const C& costs,
                                                       const CoordinateOptions& options = {}) {
  using Time = typename C::Time;
  impl::check(orders, options);
  const ListScheduler<C> scheduler(orders, costs, options.sizes);
  impl::ListClock<Time> clock(scheduler.problem());
  Coordinated<Time> best;
  BasicTimeline<Time> timeline;
  const std::vector<std::int64_t> given = impl::caps_of(orders, options, 4);
  std::vector<std::int64_t> limits = given;
  const auto consider = [&](const Orders& candidate, const std::string& rule) {
    const std::vector<std::int64_t> live =
        schedule::live_activations(candidate, options.activations);
    const std::int64_t most = impl::largest(live);
    if (impl::excess(live, limits) > 0) return;
    const auto longer = [&](const Time& makespan) {
      return !best.rule.empty() &&
             (best.makespan < makespan || (!(makespan < best.makespan) && best.live <= most));
    };
    // The clock is never later than simulate().
    if (const auto least = clock.makespan(candidate); least && longer(*least)) return;
    simulate(weave(candidate, options.sizes), costs, timeline);
    const Time makespan = timeline.makespan();
    if (longer(makespan)) return;
    best.orders = candidate;
    best.makespan = makespan;
    best.rule = rule;
    best.live = most;
  };
  // The pass that places W computes in double.
  constexpr bool places = requires(const Time& time) { static_cast<double>(time); };
  const bool split = places && impl::has_weights(orders);
  schedule::FillOptions filling;
  if constexpr (places)
    if (split) filling = impl::fill_options(weave(orders, options.sizes), costs);
  filling.activations = options.activations;
  const auto consider_filled = [&](const Orders& candidate, const std::string& rule,
                                   std::int64_t limit) {
    consider(candidate, rule);
    if (!split) return;
    filling.cap = limit;
    try {
      impl::try_placings(candidate, filling, [&](const Orders& placed, const std::string& gaps) {
        consider(placed, text(rule, ", then ", gaps));
      });
    } catch (const infeasible&) {
      // The forwards need more than the limit for all places of W.
    }
  };
  const auto consider_rounds = [&](std::int64_t limit) {
    if (!split) return;
    filling.cap = limit;
    impl::try_rounds(orders, filling, [&](const Orders& candidate, const std::string& rule) {
      ++best.tried;
      consider(candidate, rule);
    });
  };
  const auto consider_known = [&](std::int64_t limit) {
    impl::for_each_known_order(orders, [&](const Orders& candidate, const std::string& name) {
      ++best.tried;
      consider_filled(candidate, name, limit);
    });
    impl::try_repeated(orders, [&](const Orders& candidate, const std::string& rule) {
      ++best.tried;
      consider_filled(candidate, rule, limit);
    });
    // Other places of W are tried for the shortest blocks only.
    std::vector<std::pair<Time, Orders>> shortest;
    const auto block = [&](const Orders& candidate, const std::string& rule) {
      ++best.tried;
      const auto least = clock.makespan(candidate);
      if (!least) return;
      consider(candidate, rule);
      constexpr std::size_t most = 8;
      if (shortest.size() == most && !(*least < shortest.back().first)) return;
      const auto at = std::ranges::upper_bound(shortest, *least, std::less<>(),
                                               &std::pair<Time, Orders>::first);
      shortest.insert(at, {*least, candidate})->second.name = rule;
      if (shortest.size() > most) shortest.pop_back();
    };
    impl::try_v_blocks(orders, static_cast<std::size_t>(limit),
                       options.swaps > 0 ? 1'000'000 : 50'000, block);
    for (auto& [least, candidate] : shortest) {
      const std::string rule = std::exchange(candidate.name, orders.name);
      consider_filled(candidate, rule, limit);
    }
  };
  const auto attempt = [&](const Rule& rule, std::int64_t cap, std::int64_t limit) {
    ++best.tried;
    std::optional<Orders> found;
    try {
      found = scheduler.run({rule.priority, cap, options.activations});
    } catch (const infeasible&) {
      ++best.dead_ends;
      return;
    }
    consider_filled(*found, rule.name, limit);
  };

  if (given.empty()) {
    consider_filled(orders, "as given", 0);
    for (const Rule& rule : options.rules) attempt(rule, 0, 0);
    consider_rounds(0);
    consider_known(0);
  }
  for (int quarters = 4; best.rule.empty(); ++quarters) {
    const auto raised = impl::caps_of(orders, options, quarters);
    if (quarters > 4 && raised == limits) continue;
    limits = raised;
    const std::int64_t limit = impl::largest(limits);
    consider_filled(orders, "as given", limit);
    std::vector<std::int64_t> caps = {limit / 2, limit * 2 / 3, limit * 3 / 4, limit};
    caps.erase(std::unique(caps.begin(), caps.end()), caps.end());
    for (const Rule& rule : options.rules)
      for (const std::int64_t cap : caps)
        if (cap > 0) attempt(rule, cap, limit);
    consider_rounds(limit);
    consider_known(limit);
  }
  if (options.swaps > 0) {
    impl::OrderSearch<Time> search(scheduler.problem(), clock, limits, options.activations);
    const std::string rule = text(best.rule, ", then swaps");
    const Orders start = best.orders;
    search.run(start, options.swaps, [&](const Orders& candidate) { consider(candidate, rule); });
  }
  best.bound = impl::list_bound(scheduler.problem(), orders.graph, limits, options.activations);
  if constexpr (places)
    if (options.branches > 0 && best.bound < best.makespan) {
      const auto chain =
          impl::small_chain(orders, scheduler.problem(), limits, options.activations);
      if (chain) {
        const auto exact =
            impl::exact_orders(*chain, static_cast<double>(best.makespan), options.branches);
        Orders candidate = orders;
        candidate.ranks = exact.ranks;
        if (!exact.ranks.empty()) consider(candidate, "exact search");
        if (exact.complete) best.bound = best.makespan;
      }
    }
  best.extra = impl::excess(schedule::live_activations(best.orders, options.activations), given);
  return best;
}
/// Searches under costs that are written as a braced list:
/// `coordinate(orders, {.forward = 1, .backward = 2})`.
[[nodiscard]] Coordinated<Seconds> coordinate(const Orders& orders, const StageCosts& costs,
                                              const CoordinateOptions& options = {});

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN_SOLVER
#include <heddle/plan/solver/coordinate.ipp>
#endif
