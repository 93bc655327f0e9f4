// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of dapple.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/internal/stage_table.hpp>
#include <heddle/plan/solver/compositions.hpp>
#include <heddle/plan/solver/min_max_partition.hpp>
#include <heddle/systems/dapple/dapple.hpp>
#include <heddle/systems/dapple/impl/edge_prices.hpp>
#include <heddle/systems/dapple/impl/pivot.hpp>
#include <heddle/systems/dapple/impl/rank_policies.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// DAPPLE's search for one number of microbatches.
class DappleSearch {
 public:
  DappleSearch(const plan::PlanProblem& problem, int microbatches, std::size_t most_candidates,
               plan::impl::PlanTracker& best)
      : m_problem(&problem),
        m_microbatches(microbatches),
        m_table(problem, problem.options().batch / microbatches),
        m_policies(problem.machine(), m_table, best.watch()),
        m_edges(problem, problem.options().batch / microbatches),
        m_most(most_candidates),
        m_limit(best.candidates() + most_candidates),
        m_most_bound_steps(best.watch().left() / 4),
        m_best(&best) {
    m_rest.push_back(0);
    for (int layer = problem.layers(); layer-- > 0;)
      m_rest.push_back(m_rest.back() +
                       m_table.least_time(layer) * static_cast<double>(m_table.samples()));
    std::ranges::reverse(m_rest);
  }

  void run() {
    const std::size_t none = RankPolicies::none;
    seed(none);
    extend(0, none);
    if (m_best->found()) return;
    m_any = true;  // nothing fits: which plan lacks least?
    m_limit = m_best->candidates() + m_most / 20;
    extend(0, none);
  }

 private:
  struct Chosen {
    LayerRange layers;
    std::size_t replicas;  // see RankPolicies
  };

  [[nodiscard]] int most_ranks(std::size_t used) const {
    return static_cast<int>(std::min<std::int64_t>(m_policies.free(used), m_table.samples()));
  }

  /// Returns the least largest F + B of a stage if the layers from `first` on are divided over free
  /// ranks, without transfers: the dynamic programme over layers, ranks and used ranks.
  Seconds bound(int first, std::size_t used) {
    if (first == m_problem->layers()) return 0;
    if (used < m_bounds.size()) {
      const Seconds known = m_bounds[used][static_cast<std::size_t>(first)];
      if (known >= 0) return known;
    }
    if (m_full) return narrow_bound(first, used);
    const std::size_t width = static_cast<std::size_t>(m_problem->layers()) + 1;
    if (used >= m_bounds.size()) {
      m_best->watch().hold((used + 1 - m_bounds.size()) * width * sizeof(Seconds));
      m_bounds.resize(used + 1, std::vector(width, -1.0));
    }
    Seconds least = std::numeric_limits<Seconds>::infinity();
    for (int need = 1; need <= most_ranks(used); ++need)
      for (std::size_t s = 0; s < m_policies.steps(used, need).size(); ++s) {
        const RankPolicies::Step step = m_policies.steps(used, need)[s];
        if (full()) return narrow_bound(first, used);
        for (int last = first + 1; last <= m_problem->layers(); ++last) {
          const plan::impl::StageTime time =
              m_table.time({first, last}, m_policies.replicas(step.replicas));
          const Seconds own = time.forward + time.backward;
          if (own >= least) break;
          const Seconds rest = m_rest[static_cast<std::size_t>(last)];
          if (rest >= least * std::max(m_policies.free(step.used), 1)) continue;
          least = std::min(least, std::max(own, bound(last, step.used)));
        }
      }
    m_bounds[used][static_cast<std::size_t>(first)] = least;
    return least;
  }
  /// Counts a row of the programme. Returns true if it has no room or time for more.
  [[nodiscard]] bool full() {
    plan::impl::SearchWatch& watch = m_best->watch();
    const std::uint64_t steps = 4 + static_cast<std::uint64_t>(m_problem->layers()) / 4;
    m_bound_steps += static_cast<double>(steps);
    if (watch.spend(steps) || m_bound_steps > m_most_bound_steps ||
        !watch.enough(0, 0.5 * static_cast<double>(m_problem->options().budget.bytes)))
      m_full = true;
    if (m_full) watch.cut_off();
    return m_full;
  }
  /// Returns a lower bound that needs no table: the work of the layers over the free ranks.
  [[nodiscard]] Seconds narrow_bound(int first, std::size_t used) const {
    const int free = m_policies.free(used);
    return free > 0 ? m_rest[static_cast<std::size_t>(first)] / free
                    : std::numeric_limits<Seconds>::infinity();
  }

  /// Considers the plan of m_stages.
  void finish() {
    m_best->count();
    const Seconds price = latency_of(m_latency, m_microbatches);
    if (!m_best->improves(price)) return;
    Plan plan{
        .stages = {}, .microbatches = m_microbatches, .schedule = m_problem->options().schedule};
    for (const Chosen& stage : m_stages)
      plan.stages.push_back(
          plan::impl::StageTable::stage(stage.layers, m_policies.replicas(stage.replicas)));
    m_best->consider(std::move(plan), price);
  }

  /// Adds a stage, and the transfer to it.
  void push(LayerRange layers, std::size_t replicas) {
    if (!m_stages.empty()) {
      const EdgePrice edge = edge_behind(m_stages.back(), replicas);
      m_latency.push_back({edge.forward, edge.backward, 0});
    }
    const plan::impl::StageTime time = m_table.time(layers, m_policies.replicas(replicas));
    m_stages.push_back({layers, replicas});
    m_latency.push_back(
        {time.forward, time.backward, m_table.tail(layers, m_policies.replicas(replicas))});
  }
  void pop() {
    m_stages.pop_back();
    m_latency.resize(m_stages.empty() ? 0 : m_latency.size() - 2);
  }

  EdgePrice edge_behind(const Chosen& stage, std::size_t next) {
    const auto [at, is_new] = m_edge_prices.try_emplace({stage.layers.last, stage.replicas, next});
    if (is_new) {
      const plan::impl::Replicas &from = m_policies.replicas(stage.replicas),
                                 &to = m_policies.replicas(next);
      m_best->watch().spend(500 + 20 * (from.ranks.size() + to.ranks.size()));
      m_best->watch().hold(100);
      at->second = m_edges.price(stage.layers.last, from, to);
    }
    return at->second;
  }

  /// Considers plans that are good at once: those of few stages, and of equal ones. It may spend
  /// half of what is left.
  void seed(std::size_t none) {
    const int ranks = m_problem->machine().ranks();
    const int most = std::min(m_problem->layers(), ranks);
    m_seeds_end = m_best->watch().left() / 2;
    // If there are too many divisions into three stages, the equal ones come first.
    const double each = 20.0 * m_problem->layers() + 10.0 * ranks;
    if (!m_best->watch().enough(0.5 * ranks * ranks * each)) equal(none, 1, most);
    for (int parts = 1; parts <= std::min(3, most); ++parts) {
      // Of very many ranks, it would take too long even to list the divisions.
      if (!m_best->watch().enough(static_cast<double>(plan::compositions(ranks, parts)))) {
        m_best->watch().cut_off();
        break;
      }
      plan::for_each_composition(ranks, parts,
                                 [&](std::span<const int> needs) { cut(none, needs); });
    }
    equal(none, 4, most);
    pairs(none);
  }
  /// Considers equal stages of so many numbers, and stages of one rank each.
  void equal(std::size_t none, int least, int most) {
    const int ranks = m_problem->machine().ranks();
    for (int parts = least; parts <= most; ++parts) {
      std::vector<int> needs(static_cast<std::size_t>(parts), 1);
      cut(none, needs);
      for (int part = 0; part < parts; ++part)
        needs[static_cast<std::size_t>(part)] = ranks / parts + (part < ranks % parts);
      cut(none, needs);
    }
  }
  /// Returns true if the seeds have spent their share.
  [[nodiscard]] bool seeded() {
    plan::impl::SearchWatch& watch = m_best->watch();
    if (!watch.ended() && watch.left() > m_seeds_end) return false;
    watch.cut_off();
    return true;
  }

  /// Considers the min-max partition of the layers over stages of so many ranks.
  void cut(std::size_t used, std::span<const int> needs) {
    std::vector<std::size_t> chain;
    if (seeded()) return;
    const auto layers = static_cast<std::uint64_t>(m_problem->layers());
    m_best->watch().spend(needs.size() * layers * (1 + layers / 8));
    for (const int need : needs) {
      if (need > m_table.samples()) return;
      const RankPolicies::Step step = m_policies.steps(used, need)[0];
      chain.push_back(step.replicas);
      used = step.used;
    }
    const int parts = static_cast<int>(chain.size());
    const auto best =
        plan::min_max_partition(m_problem->layers(), parts, [&](int part, int first, int last) {
          const plan::impl::StageTime own = m_table.time(
              {first, last}, m_policies.replicas(chain[static_cast<std::size_t>(part)]));
          return own.forward + own.backward;
        });
    int first = 0;
    for (std::size_t part = 0; part < chain.size(); ++part) {
      push({first, best.ends[part]}, chain[part]);
      first = best.ends[part];
    }
    finish();
    while (!m_stages.empty()) pop();
  }

  /// Considers all plans of one and two stages.
  void pairs(std::size_t none) {
    const int layers = m_problem->layers();
    for (int need = 1; need <= most_ranks(none); ++need)
      for (std::size_t s = 0; s < m_policies.steps(none, need).size(); ++s) {
        const RankPolicies::Step step = m_policies.steps(none, need)[s];
        for (int last = 1; last <= layers; ++last) {
          if (seeded()) return;
          push({0, last}, step.replicas);
          if (worth(step.used)) {
            if (last == layers) finish();
            for (int more = 1; last < layers && more <= most_ranks(step.used); ++more) {
              if (m_best->watch().spend(100) || seeded()) break;
              for (std::size_t t = 0; t < m_policies.steps(step.used, more).size(); ++t) {
                push({last, layers}, m_policies.steps(step.used, more)[t].replicas);
                if (worth(step.used)) finish();
                pop();
              }
            }
          }
          pop();
        }
      }
  }

  /// Returns true if a plan that begins with these stages can be the best.
  [[nodiscard]] bool worth(std::size_t used) {
    if (m_any) return true;
    const Chosen& stage = m_stages.back();
    return m_table.may_fit(stage.layers, m_policies.replicas(stage.replicas)) &&
           least_latency(bound(stage.layers.last, used)) < m_best->price() * (1 - 1e-13);
  }

  /// Returns a lower bound of the latency of a plan that begins with these stages and has one of at
  /// least `rest` behind them. With c = F + B and a pivot Q, the latency is at least
  /// (M - 1) c_x + sum_{a <= x} c_a for all x <= Q, because the pivot lasts longer, but for stages
  /// between. It is also at least (M - 1) c_Q + sum_{a <= Q} c_a, and c_Q >= c_x for all x > Q. The
  /// tail of a stage x <= Q may follow, less the B of the stages before.
  [[nodiscard]] Seconds least_latency(Seconds rest) const {
    Seconds longest_behind = rest;  // of the stages behind x
    Seconds least = std::numeric_limits<Seconds>::infinity();
    m_behind.assign(m_latency.size(), 0);
    for (std::size_t x = m_latency.size(); x-- > 0;) {
      m_behind[x] = longest_behind;
      longest_behind = std::max(longest_behind, m_latency[x].forward + m_latency[x].backward);
    }
    Seconds sum = 0, backwards = 0, tail = 0, so_far = 0;
    for (std::size_t x = 0; x < m_latency.size(); ++x) {
      const LatencyStage& stage = m_latency[x];
      const Seconds both = stage.forward + stage.backward;
      tail = std::max(tail, stage.tail - backwards);
      backwards += stage.backward;
      sum += both;
      so_far = std::max(so_far, (m_microbatches - 1) * both + sum);
      if (both >= m_behind[x]) least = std::min(least, so_far + tail);  // x is the pivot
    }
    if (m_stages.back().layers.last == m_problem->layers()) return least;
    return std::min(least, std::max(so_far, m_microbatches * rest + sum) + tail);
  }

  /// Tries all stages behind those in m_stages.
  void extend(int first, std::size_t used) {
    for (int need = most_ranks(used); need >= 1; --need)
      for (std::size_t s = 0; s < m_policies.steps(used, need).size(); ++s) {
        const RankPolicies::Step step = m_policies.steps(used, need)[s];
        for (int last = first + 1; last <= m_problem->layers(); ++last) {
          if (m_best->candidates() >= m_limit) m_best->watch().cut_off();
          if (m_best->candidates() >= m_limit || m_best->watch().spend(20)) return;
          const plan::impl::StageTime time =
              m_table.time({first, last}, m_policies.replicas(step.replicas));
          if (!m_any && (m_microbatches - 1) * (time.forward + time.backward) >= m_best->price())
            break;  // and a longer stage is slower
          push({first, last}, step.replicas);
          if (worth(step.used)) {
            if (last == m_problem->layers()) {
              finish();
            } else if (m_policies.free(step.used) > 0) {
              m_best->count();
              extend(last, step.used);
            }
          }
          pop();
        }
      }
  }

  const plan::PlanProblem* m_problem;
  int m_microbatches;
  plan::impl::StageTable m_table;
  RankPolicies m_policies;
  EdgePrices m_edges;
  std::size_t m_most;
  std::size_t m_limit;        // candidates at which the search stops
  double m_most_bound_steps;  // of the dynamic programme, at most
  plan::impl::PlanTracker* m_best;
  bool m_any = false;      // whether plans are tried that are too slow or do not fit
  double m_seeds_end = 0;  // what is left of the budget when the seeds end

  std::vector<Seconds> m_rest;  // by layer: the least device time of it and all behind it
  std::vector<std::vector<Seconds>> m_bounds;  // by used ranks, by layer; below 0: not known
  double m_bound_steps = 0;                    // that the programme has spent
  bool m_full = false;                         // whether it has ended, so that bounds are narrow
  std::map<std::tuple<int, std::size_t, std::size_t>, EdgePrice> m_edge_prices;
  std::vector<Chosen> m_stages;           // of the plan that is tried
  std::vector<LatencyStage> m_latency;    // and its transfers
  mutable std::vector<Seconds> m_behind;  // the longest stage behind each
};

}  // namespace impl

HEDDLE_INLINE std::size_t pivot_stage(std::span<const LatencyStage> stages, int microbatches) {
  impl::check_latency("heddle::systems::pivot_stage", stages, microbatches);
  return impl::pivot_of(stages, microbatches);
}

HEDDLE_INLINE Seconds pivot_latency(std::span<const LatencyStage> stages, int microbatches) {
  impl::check_latency("heddle::systems::pivot_latency", stages, microbatches);
  return impl::latency_of(stages, microbatches);
}

HEDDLE_INLINE Seconds Dapple::formula(const Plan& plan, const plan::PlanProblem& problem) const {
  const std::vector<plan::StagePrice> prices = plan::stage_prices(plan, problem);
  std::vector<LatencyStage> stages;
  for (std::size_t s = 0; s < prices.size(); ++s) {
    const plan::StagePrice& price = prices[s];
    stages.push_back({price.forward, price.backward, price.gradient_sum + price.update});
    if (s + 1 < prices.size()) stages.push_back({price.send_forward, price.send_backward, 0});
  }
  return pivot_latency(stages, plan.microbatches);
}

HEDDLE_INLINE plan::FoundPlan Dapple::search(const plan::PlanProblem& problem) const {
  plan::impl::PlanTracker best(problem, name);
  const std::vector<int>& degrees = problem.options().tensor_degrees;
  if (std::ranges::find(degrees, 1) == degrees.end())
    return {.planner = std::string(name),
            .plan = std::nullopt,
            .infeasible = "DAPPLE divides no layer, and tensor degree 1 is not among the degrees"};
  // Many microbatches are small and fit: their price bounds the search for those that do not.
  std::vector<int> counts = problem.options().microbatches;
  std::ranges::sort(counts, std::greater<>());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    best.watch().begin_part(counts.size() - i);
    if (best.watch().ended()) break;
    impl::DappleSearch(problem, counts[i], most_candidates, best).run();
  }
  return best.result([&](const Plan& plan) { return formula(plan, problem); });
}

}  // namespace heddle::inline v0::systems
