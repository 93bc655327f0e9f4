// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// An order of the ranks of a machine that does not depend on their numbers. Planners that take
/// ranks by number search a machine that is numbered in this order.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/impl/ring_exchange.hpp>
#include <heddle/plan/internal/search_watch.hpp>
#include <heddle/plan/internal/sites.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns the place of each key among the different keys, in ascending order.
template <class Key>
[[nodiscard]] std::vector<std::size_t> places_of(const std::vector<Key>& keys) {
  std::vector<Key> sorted = keys;
  std::ranges::sort(sorted);
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<std::size_t> places;
  for (const Key& key : keys)
    places.push_back(
        static_cast<std::size_t>(std::ranges::lower_bound(sorted, key) - sorted.begin()));
  return places;
}

/// Returns the class of each rank by its device: faster devices first, then those with more memory,
/// or the other way round if `roomiest`.
[[nodiscard]] inline std::vector<std::size_t> device_classes(const PlanProblem& problem,
                                                             bool roomiest) {
  const Machine& machine = problem.machine();
  const LayerRange all{0, problem.layers()};
  std::map<std::pair<std::string, double>, double> times;  // of a sample, by kind of device
  std::vector<std::tuple<double, double, std::string, double>> keys;
  for (int r = 0; r < machine.ranks(); ++r) {
    const Device& device = machine.device(Rank{r});
    const auto [time, is_new] = times.try_emplace({device.name, device.speed});
    if (is_new) {
      const LayerTimes one =
          problem.profile().times(all, device, problem.options().tensor_degrees.front(), 1);
      time->second = one.forward + one.backward();
    }
    const Bytes capacity = capacity_of(device);
    const double memory =
        capacity == 0 ? -std::numeric_limits<double>::infinity() : -static_cast<double>(capacity);
    keys.emplace_back(roomiest ? memory : time->second, roomiest ? time->second : memory,
                      device.name, device.speed);
  }
  return places_of(keys);
}

/// Returns a number for the links between each ordered pair of ranks, by their values. Returns
/// nothing if the levels give all links, or if the ranks are too many to compare their links.
[[nodiscard]] inline std::vector<std::size_t> link_numbers(const Machine& machine) {
  constexpr std::size_t most_ranks = 512;
  const auto ranks = static_cast<std::size_t>(machine.ranks());
  if ((machine.links().empty() && machine.lines().empty()) || ranks > most_ranks) return {};
  std::vector<std::tuple<Seconds, double, Seconds, double, double>> keys(ranks * ranks);
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = a + 1; b < ranks; ++b) {
      const Rank pair[] = {Rank{a}, Rank{b}};
      const Link &there = machine.link(pair[0], pair[1]), &back = machine.link(pair[1], pair[0]);
      const double shared = -ring_link(machine, pair).shared;
      keys[a * ranks + b] = {there.latency, -there.bandwidth, back.latency, -back.bandwidth,
                             shared};
      keys[b * ranks + a] = {back.latency, -back.bandwidth, there.latency, -there.bandwidth,
                             shared};
    }
  return places_of(keys);
}

/// Divides classes of ranks by their links to the ranks of each class, until no class changes. If a
/// class has ranks whose links to another rank differ, the first of them gets a class of its own,
/// and so on. The result depends on the numbers of the ranks if these ranks cannot change places.
inline void divide_by_links(std::vector<std::size_t>& classes,
                            const std::vector<std::size_t>& numbers) {
  const std::size_t ranks = classes.size();
  const auto alike = [&](std::size_t a, std::size_t b) {
    for (std::size_t other = 0; other < ranks; ++other)
      if (other != a && other != b && numbers[a * ranks + other] != numbers[b * ranks + other])
        return false;
    return true;
  };
  while (true) {
    std::size_t count = 0;
    for (std::size_t before = count;
         before != (count = std::set(classes.begin(), classes.end()).size()); before = count) {
      std::vector<std::vector<std::size_t>> keys;  // by rank: its class; then the others and links
      for (std::size_t r = 0; r < ranks; ++r) {
        std::vector<std::size_t>& key = keys.emplace_back(1, classes[r]);
        for (std::size_t o = 0; o < ranks; ++o)
          if (o != r) key.push_back(classes[o] * numbers.size() + numbers[r * ranks + o]);
        std::sort(key.begin() + 1, key.end());
      }
      classes = places_of(keys);
    }
    std::vector<std::size_t> leaders(ranks, ranks);  // by class: its first rank
    std::size_t first = ranks;  // the first rank of the first class whose ranks are not alike
    for (std::size_t r = 0; r < ranks; ++r) {
      std::size_t& leader = leaders[classes[r]];
      if (leader == ranks) leader = r;
      if ((first == ranks || classes[r] < classes[first]) && !alike(leader, r)) first = leader;
    }
    if (first == ranks) return;
    for (std::size_t& each : classes) each = 2 * each + 1;
    --classes[first];
  }
}

/// Returns the ranks of a machine in an order that does not depend on their numbers, by
/// device_classes() and then by links, which are those of link_numbers(). The ranks of each group
/// of a level are together. Equal ranks keep their order.
[[nodiscard]] inline std::vector<Rank> rank_order(const PlanProblem& problem,
                                                  const std::vector<std::size_t>& links,
                                                  bool roomiest = false) {
  const Machine& machine = problem.machine();
  std::vector<std::size_t> classes = device_classes(problem, roomiest);
  if (!links.empty()) divide_by_links(classes, links);
  struct Block {  // a group of ranks
    std::vector<Rank> ranks;
    std::vector<double> key;
  };
  std::vector<Block> blocks;
  for (std::size_t r = 0; r < classes.size(); ++r)
    blocks.push_back({{Rank{r}}, {static_cast<double>(classes[r])}});
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    std::vector<Block> groups;
    for (std::size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
      const std::size_t number = machine.group(l, blocks[begin].ranks[0]);
      while (end < blocks.size() && machine.group(l, blocks[end].ranks[0]) == number) ++end;
      std::ranges::stable_sort(blocks.begin() + static_cast<std::ptrdiff_t>(begin),
                               blocks.begin() + static_cast<std::ptrdiff_t>(end), {}, &Block::key);
      Block& group = groups.emplace_back();
      for (std::size_t b = begin; b < end; ++b) {
        group.ranks.insert(group.ranks.end(), blocks[b].ranks.begin(), blocks[b].ranks.end());
        group.key.insert(group.key.end(), blocks[b].key.begin(), blocks[b].key.end());
      }
      const Ports& ports = machine.ports(l, number);
      group.key.insert(group.key.end(), {-ports.out, -ports.in, static_cast<double>(-ports.count)});
    }
    blocks = std::move(groups);
  }
  return blocks.front().ranks;
}

/// Returns whether the ranks of each group of a level are together in the order.
[[nodiscard]] inline bool keeps_groups(const Machine& machine, const std::vector<Rank>& order) {
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    std::set<std::size_t> groups;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t group = machine.group(l, order[i]);
      if (i > 0 && group == machine.group(l, order[i - 1])) continue;
      if (!groups.insert(group).second) return false;
    }
  }
  return true;
}

/// Returns a machine whose rank i is rank order[i] of `machine`. The ranks of each group of a level
/// are together in the order.
[[nodiscard]] inline Machine renumbered(const Machine& machine, const std::vector<Rank>& order) {
  std::vector<Device> devices;
  std::vector<Rank> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    devices.push_back(machine.device(order[i]));
    place[+order[i]] = Rank{i};
  }
  std::vector<std::vector<std::size_t>> groups(machine.levels().size());
  std::vector<std::vector<int>> sizes(groups.size());
  for (std::size_t l = 0; l < groups.size(); ++l) {
    for (const Rank rank : order) {
      const std::size_t group = machine.group(l, rank);
      if (groups[l].empty() || groups[l].back() != group) {
        groups[l].push_back(group);
        sizes[l].push_back(0);
      }
      ++sizes[l].back();
    }
    const int each = machine.levels()[l].ranks;
    if (!machine.unequal(l) &&
        std::all_of(sizes[l].begin(), sizes[l].end() - 1, [&](int size) { return size == each; }))
      sizes[l].clear();
  }
  const std::span<const Level> levels = machine.levels();
  Machine result = Machine::hierarchical(std::move(devices), {levels.begin(), levels.end()}, sizes);
  for (std::size_t l = 0; l < groups.size(); ++l)
    for (std::size_t g = 0; g < groups[l].size(); ++g)
      if (const Ports& ports = machine.ports(l, groups[l][g]); !(result.ports(l, g) == ports))
        result.set_ports(l, g, ports);
  if (!machine.links().empty())
    for (std::size_t from = 0; from < order.size(); ++from)
      for (std::size_t to = 0; to < order.size(); ++to)
        result.set_link(Rank{from}, Rank{to}, machine.link(order[from], order[to]));
  for (SharedLine line : machine.lines()) {
    for (auto& [from, to] : line.pairs) {
      from = place[+from];
      to = place[+to];
    }
    result.share(line.shared.name, line.shared.bandwidth, std::move(line.pairs));
  }
  return result;
}

/// Returns bytes that are enough for a rank, whatever the plan: the state of all weights, and of
/// the whole batch all that is saved, and more messages than a schedule keeps of any size.
[[nodiscard]] inline double enough_memory(const PlanProblem& problem) {
  double weights = 0, kept = 0, largest = static_cast<double>(problem.profile().input);
  for (const ProfiledLayer& layer : problem.profile().layers) {
    const auto output = static_cast<double>(layer.output);
    weights += static_cast<double>(layer.parameters);
    kept += static_cast<double>(layer.saved) + static_cast<double>(layer.delta) + 4 * output;
    largest = std::max(largest, output);
  }
  const auto layers = static_cast<double>(problem.layers());
  return (problem.options().state_per_parameter + 4) * (weights + 8 * layers) +
         static_cast<double>(problem.options().batch) * (kept + 16 * largest + layers);
}

/// Asks planners for plans of a problem whose ranks are numbered by rank_order(), so that a plan
/// does not depend on the numbers of the ranks. A capacity that is enough for every plan counts as
/// unknown, so that a plan does not depend on it either. If memories differ, a planner that finds
/// no plan is asked with other orders as well: ranks with more memory first, and both orders
/// reversed. If it still finds none, and if the ranks are few and not alike, it is asked with all
/// orders.
class SortedSearch {
 public:
  explicit SortedSearch(const PlanProblem& problem) : m_problem(problem) {
    Machine machine = problem.machine();
    const double enough = enough_memory(problem);
    bool ample = false, differ = false, alike = true;
    for (int r = 0; r < machine.ranks(); ++r) {
      Device device = machine.device(Rank{r});
      if (static_cast<double>(capacity_of(device)) >= enough) {
        device.memories.clear();
        machine.set_device(Rank{r}, std::move(device));
        ample = true;
      }
      const Device &one = machine.device(Rank{r}), &first = machine.device(Rank{0});
      differ = differ || capacity_of(one) != capacity_of(first);
      alike = alike && !differ && same_kind(one, first);
    }
    const PlanProblem same(problem.profile(), machine, problem.options());
    const std::vector<std::size_t> links = link_numbers(machine);
    std::vector<std::vector<Rank>> orders = {rank_order(same, links)};
    if (machine.ranks() <= most_in_all_orders && !(alike && links.empty()))
      m_first = std::make_unique<Sorted>(problem, machine, orders[0]);
    if (!differ && !ample && std::ranges::is_sorted(orders[0])) return;
    if (differ) {
      orders.push_back(rank_order(same, links, true));
      for (std::size_t i = 0; i < 2; ++i) orders.emplace_back(orders[i].rbegin(), orders[i].rend());
    }
    for (std::vector<Rank>& order : orders)
      m_sorted.push_back(std::make_unique<Sorted>(problem, machine, std::move(order)));
  }

  /// Returns the plan of a planner, with the numbers of the problem. The budget is that of each of
  /// its searches, but for the seconds, which are those of all of them.
  template <class Planner>
  [[nodiscard]] FoundPlan ask(const Planner& planner, const PlanBudget& budget) const {
    const Seconds begin = steady_seconds();
    bool cut_off = false;
    const auto left = [&] {
      PlanBudget rest = budget;
      rest.seconds = std::max(0.0, budget.seconds - (steady_seconds() - begin));
      return rest;
    };
    // If a search was cut off before one that finds a plan, a better one may exist.
    const auto noted = [&](FoundPlan found) {
      cut_off = cut_off || found.end == SearchEnd::cut_off;
      if (cut_off) found.end = SearchEnd::cut_off;
      return found;
    };
    for (const std::unique_ptr<Sorted>& sorted : m_sorted)
      if (FoundPlan found = noted(sorted->ask(planner, left())); found.plan) return found;
    // Without a plan, the reason names the ranks of the problem.
    FoundPlan unsorted = noted(planner.search(m_problem.with(left())));
    if (m_first == nullptr || (m_sorted.empty() && unsorted.plan)) return unsorted;
    std::vector<Rank> places;
    for (std::size_t r = 0; r < m_first->order.size(); ++r) places.emplace_back(r);
    while (std::ranges::next_permutation(places).found) {
      if (!keeps_groups(m_first->machine, places)) continue;
      std::vector<Rank> order;
      for (const Rank place : places) order.push_back(m_first->order[+place]);
      if (FoundPlan found = noted(
              Sorted(m_problem, m_first->machine, places, std::move(order)).ask(planner, left()));
          found.plan)
        return found;
    }
    return unsorted;
  }

 private:
  /// A planner that finds no plan for so many ranks is asked with at most 24 orders.
  static constexpr int most_in_all_orders = 4;

  struct Sorted {
    std::vector<Rank> order;
    Machine machine;
    PlanProblem problem;

    Sorted(const PlanProblem& from, const Machine& ranks, std::vector<Rank> by)
        : Sorted(from, ranks, by, by) {}
    /// The ranks of `ranks` in the order `by` are those of the problem in the order `names`.
    Sorted(const PlanProblem& from, const Machine& ranks, const std::vector<Rank>& by,
           std::vector<Rank> names)
        : order(std::move(names)),
          machine(renumbered(ranks, by)),
          problem(from.profile(), machine, from.options()) {}

    template <class Planner>
    [[nodiscard]] FoundPlan ask(const Planner& planner, const PlanBudget& budget) const {
      FoundPlan found = planner.search(problem.with(budget));
      if (found.plan)
        for (PlanStage& stage : found.plan->stages)
          for (Rank& rank : stage.ranks) rank = order[+rank];
      return found;
    }
  };

  const PlanProblem& m_problem;
  std::unique_ptr<Sorted> m_first;  ///< in the first order; null: other orders are not tried
  std::vector<std::unique_ptr<Sorted>> m_sorted;  ///< empty: the problem as it is
};

}  // namespace heddle::inline v0::plan::impl
