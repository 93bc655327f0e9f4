// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// coordinate() under a cap: the exact search against an enumeration of all lists, the lower bound,
// the schedules of the catalogue, the building blocks of a V, and figures of their authors.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan/solver/coordinate.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/capped_v.hpp"
#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_shortest_orders {

using namespace heddle;
using Costs = BasicStageCosts<std::int64_t>;

namespace {

/// A small chain, and all lists of each of its ranks.
class Enumeration {
 public:
  Enumeration(const Orders& orders, const Costs& costs, std::int64_t cap)
      : m_costs(costs), m_cap(cap), m_stages(orders.graph.stages), m_rank_of(m_stages) {
    for (std::size_t r = 0; r < orders.ranks.size(); ++r) {
      for (const Order& order : orders.ranks[r]) {
        m_rank_of[+order.stage] = r;
        m_items = std::max(m_items, +order.item + 1);
      }
      m_lists.emplace_back();
      std::vector<Order> list;
      extend(orders.ranks[r], list, m_lists.back());
    }
  }

  /// Returns the number of choices of a list for every rank.
  [[nodiscard]] std::size_t choices() const {
    std::size_t all = 1;
    for (const auto& lists : m_lists) all *= lists.size();
    return all;
  }

  /// Returns the makespan of the shortest choice, or 0 if none can progress.
  [[nodiscard]] std::int64_t shortest() const {
    std::int64_t best = 0;
    std::vector<std::size_t> chosen(m_lists.size(), 0);
    for (;;) {
      const std::int64_t makespan = makespan_of(chosen);
      if (makespan > 0 && (best == 0 || makespan < best)) best = makespan;
      std::size_t rank = 0;
      while (rank < chosen.size() && ++chosen[rank] == m_lists[rank].size()) chosen[rank++] = 0;
      if (rank == chosen.size()) return best;
    }
  }

 private:
  /// Appends every list of the computations of `work` that starts with `list`, keeps the cap and
  /// has each F of a stage before its backward and each I before its W. From 3 microbatches on,
  /// those of a kind and a stage are in order.
  void extend(const std::vector<Order>& work, std::vector<Order>& list,
              std::vector<std::vector<Order>>& all) const {
    if (list.size() == work.size()) all.push_back(list);
    std::int64_t live = 0;
    for (const Order& order : list)
      live += order.kind == Kind::forward ? 1 : order.kind == Kind::backward_input ? 0 : -1;
    const auto has = [&](Kind kind, Stage stage, Item item) {
      return std::ranges::find(list, Order{kind, stage, item}) != list.end();
    };
    for (const Order& next : work) {
      if (has(next.kind, next.stage, next.item)) continue;
      if (next.kind == Kind::forward           ? live >= m_cap
          : next.kind == Kind::backward_weight ? !has(Kind::backward_input, next.stage, next.item)
                                               : !has(Kind::forward, next.stage, next.item))
        continue;
      // A microbatch passes the stages of its rank in order.
      if (next.kind != Kind::backward_weight && std::ranges::any_of(work, [&](const Order& each) {
            return each.kind == next.kind && each.item == next.item &&
                   (next.kind == Kind::forward ? each.stage < next.stage
                                               : next.stage < each.stage) &&
                   !has(each.kind, each.stage, each.item);
          }))
        continue;
      if (m_items > 2 && +next.item > 0 && !has(next.kind, next.stage, Item{+next.item - 1}))
        continue;
      list.push_back(next);
      extend(work, list, all);
      list.pop_back();
    }
  }

  [[nodiscard]] std::int64_t takes(Kind kind) const {
    switch (kind) {
      case Kind::forward: return m_costs.forward;
      case Kind::backward_input: return m_costs.backward_input;
      case Kind::backward_weight: return m_costs.backward_weight;
      default: return m_costs.backward_input + m_costs.backward_weight;
    }
  }

  /// Returns the makespan, or 0 if the lists cannot progress.
  [[nodiscard]] std::int64_t makespan_of(const std::vector<std::size_t>& chosen) const {
    constexpr std::int64_t not_yet = -1;
    const std::size_t stages = m_rank_of.size();
    std::vector<std::int64_t> forward(stages * m_items, not_yet),
        backward(stages * m_items, not_yet);
    std::vector<std::size_t> head(chosen.size(), 0);
    std::vector<std::int64_t> free(chosen.size(), 0);
    const auto arrival = [&](const Order& order) {
      const auto from = [&](const std::vector<std::int64_t>& ends, std::size_t stage) {
        const std::int64_t end = ends[stage * m_items + +order.item];
        if (end == not_yet) return end;
        return end + (m_rank_of[stage] == m_rank_of[+order.stage] ? 0 : m_costs.latency);
      };
      const std::size_t stage = +order.stage;
      if (order.kind == Kind::backward_weight) return std::int64_t{0};
      if (order.kind == Kind::forward) return stage == 0 ? 0 : from(forward, stage - 1);
      return stage + 1 == stages ? from(forward, stage) : from(backward, stage + 1);
    };
    std::size_t left = 0;
    for (std::size_t r = 0; r < chosen.size(); ++r) left += m_lists[r][chosen[r]].size();
    for (bool any = true; any;) {
      any = false;
      for (std::size_t r = 0; r < chosen.size(); ++r)
        for (const auto& list = m_lists[r][chosen[r]]; head[r] < list.size(); ++head[r], --left) {
          const Order& order = list[head[r]];
          const std::int64_t ready = arrival(order);
          if (ready == not_yet) break;
          free[r] = std::max(free[r], ready) + takes(order.kind);
          const std::size_t at = +order.stage * m_items + +order.item;
          if (order.kind == Kind::forward) forward[at] = free[r];
          if (order.kind == Kind::backward_input || order.kind == Kind::backward)
            backward[at] = free[r];
          any = true;
        }
    }
    return left > 0 ? 0 : std::ranges::max(free);
  }

  Costs m_costs;
  std::int64_t m_cap;
  std::size_t m_stages;
  std::size_t m_items = 0;
  std::vector<std::size_t> m_rank_of;
  std::vector<std::vector<std::vector<Order>>> m_lists;
};

/// The costs of a stage of a V, in chunks, and of a message.
Costs costs_of(std::int64_t f, std::int64_t i, std::int64_t w, std::int64_t latency = 0) {
  return {.forward = f,
          .backward_input = i,
          .backward_weight = w,
          .backward = i + w,
          .latency = latency};
}

std::int64_t step(const Orders& orders, const Costs& costs) {
  return simulate(weave(orders), costs).makespan();
}

}  // namespace

TEST_CASE("the exact search finds the shortest of all lists, for 300 small problems") {
  struct Shape {
    std::string name;
    Orders orders;
  };
  const std::vector<Shape> shapes = {
      {"split chain", schedule::zb_h1(2, 2)},
      {"split chain", schedule::zb_h1(2, 3)},
      {"split chain", schedule::zb_h1(3, 2)},
      {"split V", schedule::zb_v(2, 1)},
      {"split V", schedule::zb_v(1, 2)},
      {"split V", schedule::zb_v(3, 1)},
      {"whole chain", schedule::one_f_one_b(2, 4)},
      {"whole chain", schedule::one_f_one_b(3, 3)},
      {"whole interleaved", schedule::interleaved(2, 2, 2)},
      {"whole interleaved", schedule::interleaved(3, 2, 1)},
  };
  std::mt19937 random(7);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::map<std::string, int> seen;
  int capped = 0, improved = 0, proven_before = 0;
  const int rounds = test::cases(300, 3000);
  for (int round = 0; round < rounds; ++round) {
    const Shape& shape = shapes[static_cast<std::size_t>(round) % shapes.size()];
    const Costs costs = costs_of(1 + below(5), 1 + below(5), 1 + below(5), below(3));
    const auto most = static_cast<int>(std::ranges::max(schedule::live_activations(shape.orders)));
    // A stage of each rank fits for one microbatch.
    const int least = shape.orders.graph.stages / static_cast<int>(shape.orders.ranks.size());
    const int cap = least + below(most - least + 2);
    const Enumeration all(shape.orders, costs, cap);
    INFO(shape.orders.name << " F=" << costs.forward << " I=" << costs.backward_input
                           << " W=" << costs.backward_weight << " latency=" << costs.latency
                           << " cap=" << cap << ", " << all.choices() << " choices");
    const std::int64_t shortest = all.shortest();
    REQUIRE(shortest > 0);
    // The first rule only, so that the search has something to improve.
    plan::CoordinateOptions options{.cap = cap, .rules = {plan::standard_rules()[1]}};
    const auto listed = plan::coordinate(shape.orders, costs, options);
    CHECK(listed.bound <= shortest);
    CHECK(listed.makespan >= shortest);
    options.branches = 1'000'000;
    const auto found = plan::coordinate(shape.orders, costs, options);
    CHECK(found.optimal());
    CHECK(found.makespan == shortest);
    CHECK(found.bound == shortest);
    CHECK(found.live <= cap);
    CHECK(found.makespan == step(found.orders, costs));
    ++seen[shape.name];
    capped += cap < most;
    improved += found.makespan < listed.makespan;
    proven_before += listed.optimal();
  }
  std::cout << "exact search: " << rounds << " problems, " << capped << " with a tight cap, "
            << improved << " improved, " << proven_before << " optimal by the bound\n";
  CHECK(seen.size() == 4);
  CHECK(capped > 50);
  CHECK(improved > 5);
  CHECK(proven_before > 10);
}

TEST_CASE("coordinate() is never longer than a schedule of the catalogue with its computations") {
  int compared = 0;
  std::set<std::string> names;
  const std::vector<Costs> all_costs = {costs_of(3, 4, 2, 1), costs_of(1, 1, 1),
                                        costs_of(10, 20, 10), costs_of(2, 1, 4, 3)};
  const std::size_t used = test::cases(2, all_costs.size());
  for (const int p : {2, 3, 4})
    for (const int m : {p, 2 * p, 2 * p + 1}) {
      std::map<std::string, std::vector<Orders>> works;  // by what the ranks compute
      const auto add = [&](const schedule::NamedSchedule& entry, int group) {
        try {
          Orders orders = entry.orders({.ranks = p, .microbatches = m, .group = group});
          if (std::ranges::any_of(
                  orders.ranks,
                  [](const auto& list) { return std::ranges::any_of(list, &Order::fused); }) ||
              orders.graph.replicas)
            return;
          orders.name = entry.name;
          auto work = orders;
          work.name = "";
          for (auto& list : work.ranks)
            std::ranges::sort(list, {}, [](const Order& each) {
              return std::tuple(each.kind, each.stage, each.item);
            });
          works[to_string(work)].push_back(std::move(orders));
        } catch (const error&) {
          // There is no such schedule of this shape.
        }
      };
      for (const auto& entry : schedule::catalogue()) {
        if (!entry.synchronous || entry.branches) continue;
        if (!entry.uses(schedule::ShapeOption::group))
          add(entry, 0);
        else
          for (const int group : {2, (p + 1) / 2, p}) add(entry, group);
      }
      for (const auto& [work, all] : works)
        for (std::size_t c = 0; c < used; ++c) {
          std::map<std::int64_t, plan::Coordinated<std::int64_t>> within;  // by the cap
          for (const Orders& orders : all) {
            const auto live = std::ranges::max(schedule::live_activations(orders));
            if (!within.contains(live))
              within[live] = plan::coordinate(all[0], all_costs[c], {.cap = live, .rules = {}});
            const auto& found = within[live];
            INFO(orders.name << " p=" << p << " m=" << m << " within " << live << ": "
                             << found.rule);
            CHECK(found.makespan <= step(orders, all_costs[c]));
            CHECK(found.live <= live);
            CHECK(found.bound <= found.makespan);
            names.insert(orders.name);
            ++compared;
          }
        }
    }
  CHECK(compared > 300);
  for (const char* const name :
       {"1f1b-v", "gis", "interleaved", "v-half", "v-min", "zb-h2", "zb-v"})
    CHECK(names.contains(name));
}

TEST_CASE("coordinate() is never longer than a building block of a V, in any of its three forms") {
  const std::vector<Costs> all_costs = {costs_of(1, 1, 1), costs_of(10, 14, 10, 1)};
  int compared = 0, reordered = 0;
  for (const int p : {2, 3, 4, 5})
    for (const int m : {p, 2 * p - 1, 2 * p + 1})
      for (const int cap : {p + 1, p + 2, 2 * p}) {
        const Orders work = schedule::v_min(p, m);
        for (const Costs& costs : all_costs) {
          const auto found = plan::coordinate(work, costs, {.cap = cap, .rules = {}});
          INFO("p=" << p << " m=" << m << " within " << cap << ": " << found.rule);
          CHECK(found.extra == 0);
          plan::impl::try_v_blocks(work, static_cast<std::size_t>(cap), 2'000,
                                   [&](const Orders& block, const std::string& rule) {
                                     if (std::ranges::max(schedule::live_activations(block)) > cap)
                                       return;
                                     INFO(rule);
                                     CHECK(found.makespan <= step(block, costs));
                                     ++compared;
                                     reordered += rule.ends_with("ends reordered");
                                   });
        }
      }
  CHECK(compared > 1000);
  CHECK(reordered > 300);
}

TEST_CASE("the lower bound is reached by 1F1B, ZB-V and one rank, and knows the cap") {
  const Costs unit = costs_of(1, 1, 1);
  for (const int p : {1, 2, 3, 4}) {
    // The last rank starts after P - 1 forwards, and its last I has P - 1 I and a W behind it.
    const auto v = plan::coordinate(schedule::zb_v(p, 2 * p), unit, {.cap = 2 * p, .rules = {}});
    CHECK(v.optimal());
    CHECK(v.makespan == 12 * p + p - 1);
    const Costs whole = costs_of(1, 1, 1);
    const auto one = plan::coordinate(schedule::one_f_one_b(p, 2 * p), whole, {.cap = p});
    CHECK(one.optimal());
    CHECK(one.makespan == (3 * p - 1) * 3);
  }
  // Within one activation, every microbatch goes alone.
  const auto alone = plan::coordinate(schedule::one_f_one_b(4, 6), unit, {.cap = 1});
  CHECK(alone.optimal());
  CHECK(alone.makespan == 6 * 4 * 3);
}

TEST_CASE("under a cap, no longer than the search for building blocks of its authors") {
  const std::size_t all = std::size(test::capped_v_of_its_authors);
  const std::size_t stride = all / std::min<std::size_t>(all, test::cases(all / 12, all));
  int compared = 0, shorter = 0, optimal = 0;
  double gap = 0;
  for (std::size_t i = 0; i < all; i += stride) {
    const test::CappedV& each = test::capped_v_of_its_authors[i];
    const auto found =
        plan::coordinate(schedule::v_min(each.ranks, each.microbatches),
                         costs_of(each.costs[0], each.costs[1], each.costs[2], each.costs[3]),
                         {.cap = each.cap, .swaps = 10'000});
    INFO(found.orders.name << " within " << each.cap << ": " << found.rule);
    CHECK(found.makespan <= each.step);
    CHECK(found.live <= each.cap);
    CHECK(found.bound <= found.makespan);
    ++compared;
    shorter += found.makespan < each.step;
    optimal += found.optimal();
    gap += static_cast<double>(found.makespan) / static_cast<double>(found.bound) - 1;
  }
  std::cout << "V under a cap: " << compared << " settings, " << shorter
            << " shorter than the authors', " << optimal << " optimal by the bound, mean gap "
            << 100 * gap / compared << "%\n";
  CHECK(compared >= 20);
  CHECK(shorter >= 8);
}

TEST_CASE("reordered ends of a V block close the last slot without swaps") {
  int closed = 0;
  for (const test::CappedV& each : test::capped_v_of_its_authors) {
    const bool one_of = each.costs == std::array<std::int64_t, 4>{1, 1, 1, 0} &&
                        ((each.ranks == 4 && each.microbatches == 8 && each.cap == 5) ||
                         (each.ranks == 5 && each.cap == 7) || (each.ranks == 6 && each.cap == 9) ||
                         (each.ranks == 8 && each.cap == 9));
    if (!one_of) continue;
    const auto found = plan::coordinate(schedule::v_min(each.ranks, each.microbatches),
                                        costs_of(1, 1, 1), {.cap = each.cap, .rules = {}});
    INFO("p=" << each.ranks << " m=" << each.microbatches << " within " << each.cap << ": "
              << found.rule);
    CHECK(found.makespan <= each.step);
    CHECK(found.live <= each.cap);
    closed += found.rule.find("ends reordered") != std::string::npos;
  }
  CHECK(closed >= 6);
}

TEST_CASE("under a cap of 8 chunks on 8 ranks: 71 slots, and 904 at unequal costs") {
  for (const auto& [costs, theirs] : {std::pair{costs_of(1, 1, 1), std::int64_t{71}},
                                      {costs_of(10, 14, 10, 1), std::int64_t{904}}}) {
    const Orders orders = schedule::v_min(8, 8);
    const auto listed = plan::coordinate(orders, costs, {.cap = 8});
    const auto found = plan::coordinate(orders, costs, {.cap = 8, .swaps = 10'000});
    INFO(found.rule);
    CHECK(found.makespan <= theirs);
    CHECK(found.makespan <= listed.makespan);
    CHECK(found.orders.name == orders.name);
    CHECK(found.makespan == step(found.orders, costs));
    CHECK(found.live <= 8);
  }
}

TEST_CASE("negative numbers of swaps and branches are rejected") {
  const Orders orders = schedule::zb_h1(2, 2);
  const StageCosts costs{.forward = 1, .backward_input = 1, .backward_weight = 1};
  for (const plan::CoordinateOptions& options :
       {plan::CoordinateOptions{.swaps = -1}, plan::CoordinateOptions{.branches = -1}})
    CHECK(test::message_of<contract_error>([&] {
            (void)plan::coordinate(orders, costs, options);
          }).find("the numbers of swaps and of branches must be at least 0") != std::string::npos);
}

}  // namespace test_shortest_orders
