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
#include <heddle/plan/internal/search_watch.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/systems/hgtrainer/hgtrainer.hpp>
#include <heddle/systems/hgtrainer/impl/site_orders.hpp>
#include <heddle/systems/hgtrainer/impl/site_stages.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE plan::FoundPlan HGTrainer::search(const plan::PlanProblem& problem) const {
  expects(window >= 0, [&] {
    return ErrorInfo{"heddle::systems::HGTrainer", "a window has at least 0 layers",
                     text("window = ", window)};
  });
  plan::FoundPlan found;
  found.planner = name;
  plan::impl::LayerTable table(problem);
  const impl::SiteOrders sites(table);
  plan::impl::SearchWatch watch(problem, name);
  const std::vector<int>& counts = problem.options().microbatches;
  const std::size_t orders = sites.orders().size();
  bool least_memory = false;
  Seconds best = 0;
  // Tries all orders for the i-th number of microbatches. Orders with few sites come first, because
  // they bound the others. A coarse search gives each order an equal part of the budget.
  const auto search_all = [&](std::size_t i, bool coarse) {
    if (coarse) watch.begin_part(counts.size() - i);
    if (watch.ended()) return;
    impl::SiteStages stages(table, sites, counts[i], window, least_memory, watch);
    if (coarse) stages.set_coarse();
    for (std::size_t o = 0; o < orders; ++o) {
      if (coarse) watch.begin_part((counts.size() - i) * orders - o);
      if (watch.ended()) continue;
      auto plan = stages.best(sites.orders()[o], found.plan ? &best : nullptr);
      if (!plan) continue;
      const Seconds time = least_memory ? stages.value() : formula(*plan, problem);
      if (found.plan && !(time < best)) continue;
      best = time;
      found.plan = std::move(plan);
      watch.note(found.candidates + stages.candidates(), best);
    }
    found.candidates += stages.candidates();
  };
  // The whole search may take half of the budget, if it is likely to end within it.
  watch.begin_part(2);
  double steps = 0, bytes = 0;
  for (std::size_t i = 0; i < counts.size() && watch.enough(steps, bytes); ++i) {
    impl::SiteStages stages(table, sites, counts[i], window, least_memory, watch);
    for (std::size_t o = 0; o < orders && watch.enough(steps, bytes); ++o) {
      const impl::SiteEffort effort = stages.effort(sites.orders()[o]);
      steps += effort.steps;
      bytes = std::max(bytes, effort.bytes);
    }
  }
  bool whole = watch.enough(steps, bytes);
  for (std::size_t i = 0; i < counts.size() && whole; ++i) {
    search_all(i, false);
    whole = !watch.ended();
  }
  if (!whole) {
    watch.cut_off();
    for (std::size_t i = 0; i < counts.size(); ++i) search_all(i, true);
  }
  found.end = watch.result();
  if (found.plan) {
    found.formula = best;
    return found;
  }
  least_memory = true;
  watch.begin_part(1);
  for (std::size_t i = 0; i < counts.size(); ++i) search_all(i, !whole);
  found.end = watch.result();
  plan::impl::LeastShortage shortage;
  if (found.plan)
    static_cast<void>(shortage.note(plan::plan_memory(*found.plan, problem), problem.machine()));
  found.plan.reset();
  found.shortage = shortage.worst();
  found.infeasible =
      shortage.any() ? shortage.reason()
      : watch.ended()
          ? std::string("cut off before it found a plan")
          : text("the schedule '", problem.options().schedule, "' has no plan for a batch of ",
                 problem.options().batch, " samples on ", problem.machine().ranks(), " ranks");
  return found;
}

HEDDLE_INLINE Seconds HGTrainer::formula(const Plan& plan, const plan::PlanProblem& problem) const {
  Seconds slowest = 0, sum = 0, gradient_sum = 0;
  for (const plan::StagePrice& price : plan::stage_prices(plan, problem)) {
    const Seconds time = price.forward + price.backward;
    slowest = std::max({slowest, time, price.send_forward, price.send_backward});
    sum += time + (price.send_forward + price.send_backward);
    gradient_sum = std::max(gradient_sum, price.gradient_sum);
  }
  return (plan.microbatches - 1) * slowest + sum + gradient_sum;
}

}  // namespace heddle::inline v0::systems
