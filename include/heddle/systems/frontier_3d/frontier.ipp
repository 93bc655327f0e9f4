// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of frontier.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/internal/plan_bytes.hpp>
#include <heddle/plan/internal/search_watch.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/solver/tune.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/frontier_3d/frontier.hpp>

namespace heddle::inline v0::systems {

namespace impl {

// The grid of uniform plans. Its axes are the tensor degree, the number of stages (the divisors of
// the ranks, up to the layers), the number of microbatches, the sharding, recomputation, and the
// sequence degree if there are several.
class UniformPlans {
 public:
  explicit UniformPlans(const plan::PlanProblem& problem) : m_problem(&problem) {
    const int ranks = problem.machine().ranks();
    for (int p = 1; p <= std::min(ranks, problem.layers()); ++p)
      if (ranks % p == 0) m_stages.push_back(p);
  }

  [[nodiscard]] std::vector<plan::TuneAxis> axes() const {
    std::vector<plan::TuneAxis> all = {{"tensor", m_problem->options().tensor_degrees.size()},
                                       {"stages", m_stages.size()},
                                       {"microbatches", m_problem->options().microbatches.size()},
                                       {"sharding", 2, false},
                                       {"recompute", 2, false}};
    if (const std::size_t degrees = m_problem->options().sequence_degrees.size(); degrees > 1)
      all.push_back({"sequence", degrees});
    return all;
  }

  // Returns the plan of a point, or nothing if ranks or samples do not divide.
  [[nodiscard]] std::optional<Plan> plan(const plan::TunePoint& at) const {
    const plan::PlanOptions& options = m_problem->options();
    const int tensor = options.tensor_degrees[at[0]];
    const int stages = m_stages[at[1]];
    const int microbatches = options.microbatches[at[2]];
    const int ranks = m_problem->machine().ranks();
    const std::int64_t samples = options.batch / microbatches;
    const std::vector<int>& degrees = options.sequence_degrees;
    const int sequence = degrees.empty() ? 1 : degrees[at.size() > 5 ? at[5] : 0];
    const int degree = tensor * sequence;  // ranks of a group
    if (ranks % (stages * degree) != 0) return {};
    const int groups = ranks / (stages * degree);
    if (samples % (groups * options.sample_unit(tensor)) != 0) return {};
    if (groups * sequence == 1 && at[3] == 1) return {};  // there is nothing to divide
    Plan plan{.stages = {},
              .microbatches = microbatches,
              .schedule = options.schedule,
              .sharding = at[3] == 1 ? "zero1" : "",
              .attention = options.attention};
    const int layers = m_problem->layers();
    int first = 0;
    for (int s = 0; s < stages; ++s) {
      PlanStage stage{.layers = {first, first + layers / stages + (s < layers % stages)},
                      .ranks = {},
                      .samples = std::vector(static_cast<std::size_t>(groups), samples / groups),
                      .tensor = tensor,
                      .sequence = sequence,
                      .recompute = at[4] == 1};
      for (int r = 0; r < groups * degree; ++r)
        stage.ranks.push_back(Rank{s * groups * degree + r});
      first = stage.layers.last;
      plan.stages.push_back(std::move(stage));
    }
    return plan;
  }

 private:
  const plan::PlanProblem* m_problem;
  std::vector<int> m_stages;
};

}  // namespace impl

HEDDLE_INLINE plan::FoundPlan Frontier3D::search(const plan::PlanProblem& problem) const {
  expects(share >= 0 && share <= 1, [&] {
    return ErrorInfo{"heddle::systems::Frontier3D", "the share of a grid is in [0, 1]",
                     text("share = ", share)};
  });
  const impl::UniformPlans plans(problem);
  const std::vector<plan::TuneAxis> axes = plans.axes();
  std::size_t points = 1;
  for (const plan::TuneAxis& axis : axes) points *= axis.values;
  const auto tried = static_cast<std::size_t>(share * static_cast<double>(points));
  const std::size_t evaluations =
      points <= exhaustive ? points : std::max({tried, exhaustive / 4, std::size_t{1}});
  plan::FoundPlan found{.planner = std::string(name)};
  std::optional<plan::MemoryShortage> smallest;  // of the plans that do not fit
  plan::impl::SearchWatch watch(problem, name);
  plan::impl::PlanBytes bytes(problem);
  const auto ranks = static_cast<std::uint64_t>(problem.machine().ranks());
  Seconds best = std::numeric_limits<Seconds>::infinity();
  const plan::Tuned tuned =
      plan::tune(axes,
                 [&](const plan::TunePoint& at) -> std::optional<double> {
                   const std::optional<Plan> plan = plans.plan(at);
                   if (!plan || watch.spend(1000 * plan->stages.size() + 50 * ranks)) return {};
                   watch.note(++found.candidates, best);
                   const auto shortage = bytes.shortage(*plan);
                   if (!shortage) {
                     const Seconds time = formula(*plan, problem);
                     best = std::min(best, time);
                     return time;
                   }
                   if (!smallest || shortage->needed < smallest->needed) smallest = shortage;
                   return {};
                 },
                 {.evaluations = evaluations, .seed = seed});
  found.end = watch.result();
  if (tuned.best) {
    found.plan = plans.plan(tuned.best->point);
    found.formula = *tuned.best->cost;
  } else if (smallest) {
    found.shortage = smallest;
    found.infeasible = text("rank ", smallest->rank, " needs ", smallest->needed, " bytes and has ",
                            smallest->capacity, " in the smallest plan");
  } else if (found.end == plan::SearchEnd::cut_off) {
    found.infeasible = "cut off before it found a plan";
  } else {
    found.infeasible =
        text("no degrees divide ", problem.machine().ranks(), " ranks, ", problem.layers(),
             " layers and ", problem.options().batch, " samples equally");
  }
  return found;
}

HEDDLE_INLINE Seconds Frontier3D::formula(const Plan& plan,
                                          const plan::PlanProblem& problem) const {
  Seconds step = 0;
  Seconds sum = 0;
  Seconds update = 0;
  for (const plan::StagePrice& price : plan::stage_prices(plan, problem)) {
    step = std::max(step, price.forward + price.backward);
    sum = std::max(sum, price.gradient_sum);
    update = std::max(update, price.update);
  }
  return static_cast<double>(plan.microbatches + static_cast<int>(plan.stages.size()) - 1) * step +
         sum + update;
}

}  // namespace heddle::inline v0::systems
