// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of metis.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
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
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/internal/kept_by_stage.hpp>
#include <heddle/plan/internal/least_shortage.hpp>
#include <heddle/plan/internal/plan_bytes.hpp>
#include <heddle/plan/internal/search_watch.hpp>
#include <heddle/plan/internal/sites.hpp>
#include <heddle/plan/internal/stage_shape.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/metis/impl/group_lists.hpp>
#include <heddle/systems/metis/impl/layer_balance.hpp>
#include <heddle/systems/metis/metis.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// One Metis::search().
class MetisSearch {
 public:
  MetisSearch(const Metis& metis, const plan::PlanProblem& problem)
      : m_metis(metis),
        m_problem(problem),
        m_watch(problem, Metis::name),
        m_bytes(problem),
        m_table(problem) {
    m_found.planner = Metis::name;
  }

  [[nodiscard]] plan::FoundPlan run() {
    const auto orders = rank_orders();
    // The whole search may take half of the budget, if it is likely to end within it.
    m_watch.begin_part(2);
    bool whole = affordable(orders.size());
    if (whole) {
      search_orders(orders);
      whole = !m_watch.ended();
    }
    if (!whole) {
      m_watch.cut_off();
      m_coarse = true;
      std::ranges::sort(m_numbers.rbegin(), m_numbers.rend());  // small microbatches need less
      search_orders(orders);
    }
    m_found.end = m_watch.result();
    if (m_found.plan) return std::move(m_found);
    m_found.shortage = m_shortage.worst();
    if (m_shortage.any())
      m_found.infeasible = m_shortage.reason();
    else if (!whole)
      m_found.infeasible = "cut off before it found a plan";
    else
      m_found.infeasible =
          text("the schedule '", m_problem.options().schedule, "' has no plan for a batch of ",
               m_problem.options().batch, " samples on ", m_problem.machine().ranks(), " ranks");
    return std::move(m_found);
  }

 private:
  /// Tries all ranks in each order, and then fewer ranks until there is a plan.
  void search_orders(const std::vector<std::vector<Rank>>& orders) {
    const int all = m_problem.machine().ranks();
    for (int used = all; used >= 1 && (used == all || !m_found.plan); --used)
      for (std::size_t o = 0; o < orders.size(); ++o) {
        m_order = orders[o];
        m_shapes.clear();
        m_watch.release();
        try_ranks(used, orders.size() - o);
        if (m_watch.ended() && used < all) return;
      }
  }
  /// Returns whether the budget is likely to be enough for all lists of groups.
  [[nodiscard]] bool affordable(std::size_t orders) const {
    const int ranks = m_problem.machine().ranks(), layers = m_problem.layers();
    double steps = 0;
    for (int stages = 1; stages <= std::min(ranks, layers) && m_watch.enough(steps); ++stages) {
      std::size_t calls = most_calls;
      const auto lists =
          static_cast<double>(ascending_lists(ranks, stages, m_metis.variance, calls).size());
      if (calls == 0) return false;
      steps += lists * static_cast<double>(orders * m_problem.options().microbatches.size()) *
               (20.0 * layers + 20.0 * stages);
    }
    return m_watch.enough(steps);
  }
  /// Returns a few lists of groups, the most equal ones.
  [[nodiscard]] std::vector<std::vector<int>> few_groups(int used, int stages) {
    std::size_t calls = most_calls;
    std::vector<std::vector<int>> lists = ascending_lists(used, stages, m_metis.variance, calls);
    if (lists.size() > few_lists) lists.resize(few_lists);
    m_watch.spend(most_calls - calls +
                  10 * lists.size() * static_cast<std::uint64_t>(stages) *
                      static_cast<std::uint64_t>(stages));
    return permuted_lists(lists, m_metis.longest_permutation, few_lists);
  }

  /// Returns the ranks by every order of kinds; by speed alone if there are very many kinds.
  [[nodiscard]] std::vector<std::vector<Rank>> rank_orders() {
    const auto kinds = plan::impl::device_kinds(m_problem.machine());
    std::vector<std::size_t> order(kinds.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<std::vector<Rank>> all;
    const auto add = [&] {
      std::vector<Rank>& ranks = all.emplace_back();
      for (const std::size_t kind : order)
        ranks.insert(ranks.end(), kinds[kind].begin(), kinds[kind].end());
    };
    if (std::cmp_greater(kinds.size(), m_metis.longest_permutation)) {
      const int degree = m_problem.options().tensor_degrees.front();
      std::ranges::stable_sort(order, {}, [&](std::size_t kind) {
        const plan::LayerTimes& all_layers = m_table.sums(kinds[kind][0], degree, 1).all();
        return all_layers.forward + all_layers.backward();
      });
      add();
      std::ranges::reverse(order);
      add();
      return all;
    }
    do add();
    while (std::ranges::next_permutation(order).found);
    return all;
  }

  /// Tries all plans with the first `used` ranks of the order. A coarse search divides the budget
  /// among the numbers of stages of `orders` orders, and tries few lists of groups for each.
  void try_ranks(int used, std::size_t orders) {
    const int most = std::min(used, m_problem.layers());
    for (int stages = 1; stages <= most; ++stages) {
      if (m_coarse)
        m_watch.begin_part(1 + orders * static_cast<std::size_t>(most) -
                           static_cast<std::size_t>(stages));
      if (m_watch.ended()) continue;
      for (const std::vector<int>& sizes :
           m_coarse
               ? few_groups(used, stages)
               : device_group_lists(used, stages, m_metis.longest_permutation, m_metis.variance)) {
        std::vector<std::span<const Rank>> groups;
        for (std::size_t first = 0; const int size : sizes) {
          groups.push_back(std::span(m_order).subspan(first, static_cast<std::size_t>(size)));
          first += groups.back().size();
        }
        for (const int microbatches : m_numbers)
          if (const plan::impl::KeptByStage* kept = kept_of(stages, microbatches);
              !m_watch.ended() && kept)
            try_degrees(groups, microbatches, *kept);
      }
    }
  }

  [[nodiscard]] const plan::impl::KeptByStage* kept_of(int stages, int microbatches) {
    const auto [place, inserted] = m_kept.try_emplace({stages, microbatches});
    if (std::uint64_t listed = 0; inserted) {
      place->second =
          plan::impl::kept_by_stage(m_problem.options().schedule, stages, microbatches, &listed);
      m_watch.spend(4 * listed);
    }
    return place->second ? &*place->second : nullptr;
  }

  /// From data parallelism to tensor parallelism, one stage after another.
  void try_degrees(const std::vector<std::span<const Rank>>& groups, int microbatches,
                   const plan::impl::KeptByStage& kept) {
    const std::int64_t samples = m_problem.options().batch / microbatches;
    std::vector<int> degrees(groups.size(), 1);
    for (std::size_t s = 0; s < groups.size(); ++s)
      if (!allowed(groups[s], 1) && !raise(groups[s], degrees[s])) return;
    const auto layers = static_cast<std::uint64_t>(m_problem.layers());
    while (!m_watch.spend(20 * layers + 20 * groups.size())) {
      std::vector<const plan::impl::StageShape*> shapes;
      std::vector<double> headroom(groups.size(), -std::numeric_limits<double>::infinity());
      for (std::size_t s = 0; s < groups.size(); ++s)
        if (const plan::impl::StageShape* shape = shape_of(groups[s], degrees[s], samples)) {
          shapes.push_back(shape);
          headroom[s] = 0;
        }
      const bool all_shapes = shapes.size() == groups.size();
      bool fits = false;
      if (all_shapes && m_coarse && !may_hold(shapes)) {
        for (std::size_t s = 0; s < shapes.size(); ++s) headroom[s] = shapes[s]->room();
      } else if (all_shapes) {
        const LayerBalance balance(shapes, kept, m_problem.layers());
        const std::vector<int> ends = balance.ends();
        ++m_found.candidates;
        fits = balance.fits(ends);
        if (!fits) m_watch.spend(layers * layers * groups.size());
        if (!fits && !m_coarse)
          note_shortage(shapes, balance.least_memory_ends(), microbatches);
        else if (fits && (!m_found.plan || balance.computation(ends, microbatches) <=
                                               std::max(1.0, m_metis.refined) * m_found.formula))
          consider(shapes, ends, microbatches, balance);
        for (std::size_t s = 0; s < shapes.size(); ++s) headroom[s] = balance.headroom(ends, s);
      }
      std::vector<std::size_t> order(groups.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::ranges::stable_sort(order, {}, [&](std::size_t s) { return headroom[s]; });
      // A stage with fewer samples than groups must be raised; none of the others helps.
      const auto tried = all_shapes ? order.end() : order.begin() + 1;
      if (std::none_of(order.begin(), tried,
                       [&](std::size_t s) { return raise(groups[s], degrees[s]); })) {
        // A coarse search looks at the last degrees only, which need least.
        if (m_coarse && all_shapes && !fits && !m_found.plan)
          note_shortage(shapes, LayerBalance(shapes, kept, m_problem.layers()).least_memory_ends(),
                        microbatches);
        return;
      }
    }
  }

  /// Returns false if the state of the weights is more than all stages have memory for.
  [[nodiscard]] bool may_hold(const std::vector<const plan::impl::StageShape*>& shapes) const {
    double room = 0;
    for (const plan::impl::StageShape* shape : shapes) room += shape->room();
    return room >= m_problem.options().state_per_parameter *
                       static_cast<double>(m_problem.profile().parameters({0, m_problem.layers()}));
  }

  /// Returns the shape of a stage, or nullptr if it has fewer samples than groups.
  [[nodiscard]] const plan::impl::StageShape* shape_of(std::span<const Rank> ranks, int degree,
                                                       std::int64_t samples) {
    const auto [place, inserted] =
        m_shapes.try_emplace({ranks.data() - m_order.data(), ranks.size(), degree, samples});
    m_watch.spend(inserted ? 100 + 10 * ranks.size() : 10);
    m_watch.hold(inserted ? sizeof(plan::impl::StageShape) + 12 * ranks.size() : 0);
    if (inserted)
      if (auto shares = plan::impl::balanced_samples(m_table, ranks, degree, samples))
        place->second.emplace(m_table, std::vector<Rank>(ranks.begin(), ranks.end()),
                              std::move(*shares), degree);
    return place->second ? &*place->second : nullptr;
  }

  [[nodiscard]] bool allowed(std::span<const Rank> ranks, int degree) {
    return std::cmp_less_equal(degree, ranks.size()) &&
           ranks.size() % static_cast<std::size_t>(degree) == 0 &&
           std::ranges::find(m_problem.options().tensor_degrees, degree) !=
               m_problem.options().tensor_degrees.end() &&
           std::ranges::all_of(ranks, [&](Rank rank) { return m_table.has_degree(rank, degree); });
  }

  /// Doubles a stage's degree until it is allowed. Returns false if there is no such degree.
  [[nodiscard]] bool raise(std::span<const Rank> ranks, int& degree) {
    for (int next = 2 * degree; std::cmp_less_equal(next, ranks.size()); next *= 2)
      if (allowed(ranks, next)) {
        degree = next;
        return true;
      }
    return false;
  }

  [[nodiscard]] Plan plan_of(const std::vector<const plan::impl::StageShape*>& shapes,
                             const std::vector<int>& ends, int microbatches) const {
    Plan plan;
    plan.microbatches = microbatches;
    plan.schedule = m_problem.options().schedule;
    for (std::size_t s = 0; s < shapes.size(); ++s)
      plan.stages.push_back({.layers = {s == 0 ? 0 : ends[s - 1], ends[s]},
                             .ranks = shapes[s]->ranks(),
                             .samples = shapes[s]->samples(),
                             .tensor = shapes[s]->tensor()});
    return plan;
  }

  /// Prices a plan that fits, and its neighbours while they are better.
  void consider(const std::vector<const plan::impl::StageShape*>& shapes, std::vector<int> ends,
                int microbatches, const LayerBalance& balance) {
    Seconds time = price(shapes, ends, microbatches);
    if (!(time <= m_metis.refined * m_found.formula)) return;
    for (bool better = true; better && !m_watch.ended();) {
      better = false;
      for (std::size_t s = 0; s + 1 < ends.size(); ++s)
        for (const int step : {-1, 1}) {
          std::vector<int> moved = ends;
          moved[s] += step;
          if (moved[s] <= (s == 0 ? 0 : moved[s - 1]) || moved[s] >= moved[s + 1]) continue;
          if (!balance.shortens(ends, moved, s) || !balance.fits(moved)) continue;
          ++m_found.candidates;
          const Seconds other = price(shapes, moved, microbatches);
          if (other >= time) continue;
          time = other;
          ends = std::move(moved);
          better = true;
        }
    }
  }

  Seconds price(const std::vector<const plan::impl::StageShape*>& shapes,
                const std::vector<int>& ends, int microbatches) {
    Plan plan = plan_of(shapes, ends, microbatches);
    m_watch.spend(100 * ends.size() + 20 * static_cast<std::uint64_t>(m_problem.machine().ranks()));
    const Seconds time = m_metis.formula(plan, m_problem);
    m_watch.note(m_found.candidates, m_found.plan ? std::min(time, m_found.formula) : time);
    if (!m_found.plan || time < m_found.formula) {
      m_found.plan = std::move(plan);
      m_found.formula = time;
    }
    return time;
  }

  void note_shortage(const std::vector<const plan::impl::StageShape*>& shapes,
                     const std::vector<int>& ends, int microbatches) {
    m_watch.spend(ends.size() * static_cast<std::uint64_t>(m_problem.layers()) *
                  static_cast<std::uint64_t>(m_problem.layers()));
    m_watch.spend(50 * ends.size() + 5 * static_cast<std::uint64_t>(m_problem.machine().ranks()));
    static_cast<void>(
        m_shortage.note(m_bytes.memory(plan_of(shapes, ends, microbatches)), m_problem.machine()));
  }

  static constexpr std::size_t most_calls = 100'000;  ///< that make the lists of a number of stages
  static constexpr std::size_t few_lists = 16;        ///< that are tried in a coarse search

  const Metis& m_metis;
  const plan::PlanProblem& m_problem;
  plan::impl::SearchWatch m_watch;
  plan::impl::PlanBytes m_bytes;
  bool m_coarse = false;
  plan::impl::LayerTable m_table;
  plan::impl::LeastShortage m_shortage;
  std::vector<int> m_numbers = m_problem.options().microbatches;  ///< of microbatches, to try
  std::vector<Rank> m_order;                                      ///< all ranks, kind after kind
  /// By first rank in the order, number of ranks, tensor degree and samples.
  std::map<std::tuple<std::ptrdiff_t, std::size_t, int, std::int64_t>,
           std::optional<plan::impl::StageShape>>
      m_shapes;
  std::map<std::pair<int, int>, std::optional<plan::impl::KeptByStage>> m_kept;
  plan::FoundPlan m_found;
};

}  // namespace impl

HEDDLE_INLINE plan::FoundPlan Metis::search(const plan::PlanProblem& problem) const {
  expects(longest_permutation >= 1 && variance >= 0 && std::isfinite(variance) && refined >= 0 &&
              std::isfinite(refined),
          [&] {
            return ErrorInfo{"heddle::systems::Metis", "an option is out of range",
                             text("longest_permutation = ", longest_permutation,
                                  ", variance = ", variance, ", refined = ", refined),
                             "use at least one block, and finite numbers of at least 0"};
          });
  return impl::MetisSearch(*this, problem).run();
}

HEDDLE_INLINE Seconds Metis::formula(const Plan& plan, const plan::PlanProblem& problem) const {
  Seconds slowest = 0, sum = 0, update = 0, gradient_sum = 0, messages = 0;
  for (const plan::StagePrice& price : plan::stage_prices(plan, problem)) {
    const Seconds time = price.forward + price.backward;
    slowest = std::max(slowest, time);
    sum += time;
    update = std::max(update, price.update);
    gradient_sum = std::max(gradient_sum, price.gradient_sum);
    messages += price.send_forward + price.send_backward;
  }
  return (plan.microbatches - 1) * slowest + sum + update + gradient_sum + messages;
}

HEDDLE_INLINE std::vector<std::vector<int>> device_group_lists(int devices, int stages,
                                                               int longest_permutation,
                                                               double variance) {
  expects(devices >= 1 && stages >= 1 && longest_permutation >= 1 && variance >= 0, [&] {
    return ErrorInfo{"heddle::systems::device_group_lists",
                     "a number is below 1, or the variance is below 0 or not a number",
                     text("devices = ", devices, ", stages = ", stages, ", longest_permutation = ",
                          longest_permutation, ", variance = ", variance)};
  });
  constexpr std::size_t every = std::numeric_limits<std::size_t>::max();
  std::size_t calls = every;
  std::vector<std::vector<int>> lists = impl::permuted_lists(
      impl::ascending_lists(devices, stages, variance, calls), longest_permutation, every);
  std::ranges::sort(lists);
  const auto repeated = std::ranges::unique(lists);
  lists.erase(repeated.begin(), repeated.end());
  return lists;
}

}  // namespace heddle::inline v0::systems
