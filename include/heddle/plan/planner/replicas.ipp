// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of replicas.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/impl/ring_exchange.hpp>
#include <heddle/plan/internal/kept_by_stage.hpp>
#include <heddle/plan/internal/sites.hpp>
#include <heddle/plan/internal/stage_shape.hpp>
#include <heddle/plan/internal/stage_table.hpp>
#include <heddle/plan/planner/replicas.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan {

namespace impl {

/// Ranks in the order in which they become replicas.
struct ReplicaOrder {
  std::vector<Rank> ranks;
  std::vector<Seconds> sums;  ///< by number of ranks - 1: the sum of gradients of the first ones
};

/// Chooses the replicas of all layers, for any number of microbatches.
class ReplicaSearch {
 public:
  explicit ReplicaSearch(const PlanProblem& problem)
      : m_problem(problem),
        m_table(problem),
        m_best(problem, plan::Replicas::name),
        m_bytes(static_cast<double>(problem.profile().parameters({0, problem.layers()}))) {}

  [[nodiscard]] const PlanTracker& run() {
    std::vector<Rank> ranks;
    for (int r = 0; r < m_problem.machine().ranks(); ++r) ranks.push_back(Rank{r});
    // If no rank holds the state, the roomiest ones give the reason why there is no plan.
    const double state = m_problem.options().state_per_parameter * m_bytes;
    const auto most = std::ranges::max(ranks, {}, [&](Rank rank) { return room(rank); });
    drop_below(ranks, std::min(state, room(most)));
    while (!ranks.empty() && !m_best.watch().ended()) {
      m_needed = std::numeric_limits<double>::infinity();
      find_orders(ranks);
      for (const int microbatches : m_problem.options().microbatches)
        if (kept_by_stage(m_problem.options().schedule, 1, microbatches)) try_all(microbatches);
      if (!std::isfinite(m_needed)) break;
      drop_below(ranks, m_needed);  // these are in the way
    }
    return m_best;
  }

 private:
  /// Returns the capacity of a rank in bytes. An unknown one is infinite.
  [[nodiscard]] double room(Rank rank) const {
    const Bytes capacity = capacity_of(m_problem.machine().device(rank));
    return capacity == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(capacity);
  }
  void drop_below(std::vector<Rank>& ranks, double bytes) const {
    std::erase_if(ranks, [&](Rank rank) { return room(rank) < bytes; });
  }
  [[nodiscard]] Seconds time_of(Rank rank) {
    const LayerTimes& all = m_table.sums(rank, 1, 1).all();
    return all.forward + all.backward();
  }
  [[nodiscard]] Seconds sum_time(std::size_t ranks, const RingLink& ring) const {
    if (ranks < 2) return 0;
    const auto n = static_cast<double>(ranks);
    return 2 * (n - 1) / n * m_bytes / ring.slowest() + 2 * (n - 1) * ring.latency;
  }

  /// Finds orders of the ranks, faster ones first. Each order begins with another one of the
  /// fastest ranks. Of equally fast ranks the next one is that with which the sum of gradients is
  /// fastest.
  void find_orders(const std::vector<Rank>& ranks) {
    constexpr std::size_t most = 32, most_links = 4'000'000;  // orders, and links in all of them
    m_orders.clear();
    std::vector<Rank> sorted = ranks;
    std::ranges::stable_sort(sorted, {}, [&](Rank rank) { return time_of(rank); });
    const std::size_t count =
        std::clamp<std::size_t>(most_links / (sorted.size() * sorted.size()), 1, most);
    for (std::size_t first = 0; first < sorted.size() && m_orders.size() < count; ++first) {
      if (time_of(sorted[first]) != time_of(sorted[0])) break;
      if (first > 0 && one_group(sorted[first - 1], sorted[first])) continue;
      m_orders.push_back(order_from(sorted, first));
      if (m_best.watch().ended()) break;
    }
  }
  /// Returns true if two ranks have the same links to all others, by the levels of the machine.
  [[nodiscard]] bool one_group(Rank a, Rank b) const {
    const Machine& machine = m_problem.machine();
    return machine.links().empty() && machine.lines().empty() &&
           machine.group(0, a) == machine.group(0, b);
  }
  [[nodiscard]] ReplicaOrder order_from(std::vector<Rank> left, std::size_t first) {
    ReplicaOrder order;
    std::vector<RingLink> rings(left.size());  // of the chosen ranks and each other one
    while (true) {
      if (m_best.watch().spend(10 * left.size())) return order;
      const Rank chosen = left[first];
      order.ranks.push_back(chosen);
      order.sums.push_back(sum_time(order.ranks.size(), rings[first]));
      const RingLink ring = rings[first];
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(first));
      rings.erase(rings.begin() + static_cast<std::ptrdiff_t>(first));
      if (left.empty()) return order;
      Seconds least = std::numeric_limits<Seconds>::infinity();
      for (std::size_t i = 0; i < left.size(); ++i) {
        const Rank pair[] = {chosen, left[i]};
        const RingLink other = ring_link(m_problem.machine(), pair);
        for (const RingLink& each : {ring, other}) {
          rings[i].latency = std::max(rings[i].latency, each.latency);
          rings[i].bandwidth = std::min(rings[i].bandwidth, each.bandwidth);
          rings[i].shared = std::min(rings[i].shared, each.shared);
        }
        if (i > 0 && time_of(left[i]) != time_of(left[0])) continue;
        const Seconds sum = sum_time(order.ranks.size() + 1, rings[i]);
        if (i > 0 && !(sum < least)) continue;
        least = sum;
        first = i;
      }
    }
  }

  void try_all(int microbatches) {
    const std::int64_t samples = m_problem.options().batch / microbatches;
    for (std::size_t k = 1; k <= m_orders[0].ranks.size(); ++k) {
      if (std::cmp_greater(k, samples) || m_best.watch().spend(200 + 10 * k)) return;
      const auto& order = *std::ranges::min_element(
          m_orders, {}, [&](const ReplicaOrder& each) { return each.sums[k - 1]; });
      std::vector<Rank> ranks(order.ranks.begin(),
                              order.ranks.begin() + static_cast<std::ptrdiff_t>(k));
      std::vector<std::int64_t> even;
      for (std::size_t i = 0; i < k; ++i)
        even.push_back(samples / static_cast<std::int64_t>(k) +
                       (std::cmp_less(i, samples % static_cast<std::int64_t>(k)) ? 1 : 0));
      consider(ranks, even, microbatches, order.sums[k - 1]);
      if (m_table.kind(ranks.front()) == m_table.kind(ranks.back())) continue;
      if (auto shares = balanced_samples(m_table, ranks, 1, samples))
        consider(ranks, *shares, microbatches, order.sums[k - 1]);
    }
  }

  void consider(const std::vector<Rank>& ranks, const std::vector<std::int64_t>& shares,
                int microbatches, Seconds sum) {
    m_best.count();
    Seconds forward = 0, backward = 0, update = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (i > 0 && shares[i] == shares[i - 1] &&
          m_table.kind(ranks[i]) == m_table.kind(ranks[i - 1]))
        continue;
      const LayerTimes& all = m_table.sums(ranks[i], 1, shares[i]).all();
      forward = std::max(forward, all.forward);
      backward = std::max(backward, all.backward());
      update = std::max(update, all.update);
    }
    const Seconds price = microbatches * (forward + backward) + sum + update;
    if (!m_best.improves(price)) return;
    const Plan plan{
        .stages = {{.layers = {0, m_problem.layers()}, .ranks = ranks, .samples = shares}},
        .microbatches = microbatches,
        .schedule = m_problem.options().schedule};
    m_best.consider(plan, price);
    if (m_best.price() == price) return;
    if (const auto shortage = memory_shortage(plan, m_problem))
      m_needed = std::min(m_needed, static_cast<double>(shortage->needed));
  }

  const PlanProblem& m_problem;
  LayerTable m_table;
  PlanTracker m_best;
  double m_bytes;
  std::vector<ReplicaOrder> m_orders;
  double m_needed = 0;  ///< the least bytes of a rank in the plans that do not fit
};

}  // namespace impl

HEDDLE_INLINE FoundPlan Replicas::search(const PlanProblem& problem) const {
  const std::vector<int>& degrees = problem.options().tensor_degrees;
  if (std::ranges::find(degrees, 1) == degrees.end())
    return {.planner = std::string(name),
            .plan = std::nullopt,
            .infeasible = "replicas divide no layer, and tensor degree 1 is not among the degrees"};
  impl::ReplicaSearch search(problem);
  const impl::PlanTracker& best = search.run();
  FoundPlan result = best.result([&](const Plan& plan) { return formula(plan, problem); });
  if (!best.found() && best.candidates() == 0 && result.end == SearchEnd::complete)
    result.infeasible =
        text("the schedule '", problem.options().schedule, "' has no plan of one stage");
  return result;
}

HEDDLE_INLINE Seconds Replicas::formula(const Plan& plan, const PlanProblem& problem) const {
  return simulated_step(plan, problem);
}

}  // namespace heddle::inline v0::plan
