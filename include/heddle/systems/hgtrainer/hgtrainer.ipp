// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of hgtrainer.hpp.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/internal/least_shortage.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/hgtrainer/hgtrainer.hpp>
#include <heddle/systems/hgtrainer/impl/site_orders.hpp>
#include <heddle/systems/hgtrainer/impl/site_stages.hpp>

namespace heddle::inline v0::plan {

HEDDLE_INLINE FoundPlan HGTrainer::search(const PlanProblem& problem) const {
  expects(window >= 0, [&] {
    return ErrorInfo{"heddle::plan::HGTrainer", "a window has at least 0 layers",
                     text("window = ", window)};
  });
  FoundPlan found;
  found.planner = name;
  impl::LayerTable table(problem);
  const impl::SiteOrders sites(table);
  // Orders with few sites first: they bound the others.
  for (const bool least_memory : {false, true}) {
    Seconds best = 0;
    for (const int microbatches : problem.options().microbatches) {
      impl::SiteStages stages(table, sites, microbatches, window, least_memory);
      for (const std::vector<std::size_t>& order : sites.orders()) {
        auto plan = stages.best(order, found.plan ? &best : nullptr);
        if (!plan) continue;
        const Seconds time = least_memory ? stages.value() : formula(*plan, problem);
        if (found.plan && !(time < best)) continue;
        best = time;
        found.plan = std::move(plan);
      }
      found.candidates += stages.candidates();
    }
    if (found.plan && !least_memory) {
      found.formula = best;
      return found;
    }
  }
  impl::LeastShortage shortage;
  if (found.plan)
    static_cast<void>(shortage.note(plan_memory(*found.plan, problem), problem.machine()));
  found.plan.reset();
  found.infeasible = shortage.any() ? shortage.reason()
                                    : text("the schedule '", problem.options().schedule,
                                           "' has no plan for a batch of ", problem.options().batch,
                                           " samples on ", problem.machine().ranks(), " ranks");
  return found;
}

HEDDLE_INLINE Seconds HGTrainer::formula(const Plan& plan, const PlanProblem& problem) const {
  Seconds slowest = 0, sum = 0, gradient_sum = 0;
  for (const StagePrice& price : stage_prices(plan, problem)) {
    const Seconds time = price.forward + price.backward;
    slowest = std::max({slowest, time, price.send_forward, price.send_backward});
    sum += time + (price.send_forward + price.send_backward);
    gradient_sum = std::max(gradient_sum, price.gradient_sum);
  }
  return (plan.microbatches - 1) * slowest + sum + gradient_sum;
}

}  // namespace heddle::inline v0::plan
