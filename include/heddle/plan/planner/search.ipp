// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of search.hpp.

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/internal/columns.hpp>
#include <heddle/core/internal/near_miss.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/impl/rank_order.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/planner/search.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan {

HEDDLE_INLINE PricedPlan priced_plan(FoundPlan found, const PlanProblem& problem) {
  PricedPlan priced{.found = std::move(found)};
  if (!priced.found.plan) return priced;
  if (const auto shortage = memory_shortage(*priced.found.plan, problem)) {
    priced.found.infeasible = text("rank ", shortage->rank, " needs ", shortage->needed,
                                   " bytes and has ", shortage->capacity);
    priced.found.plan.reset();
    return priced;
  }
  const PlanPrediction prediction = predict(*priced.found.plan, problem);
  priced.simulated = prediction.step;
  priced.memory = prediction.memory;
  priced.found.plan->prediction = prediction;
  return priced;
}

HEDDLE_INLINE const NamedPlanner& find_planner(std::span<const NamedPlanner> planners,
                                               std::string_view name) {
  std::vector<std::string_view> names;
  std::string all;
  for (const NamedPlanner& planner : planners) {
    if (planner.name == name) return planner;
    names.push_back(planner.name);
    all += text(all.empty() ? "" : ", ", planner.name);
  }
  const std::string meant = heddle::impl::did_you_mean(name, names);
  throw contract_error({"heddle::plan::find_planner",
                        text("no planner '", name, "'"),
                        {},
                        text(meant, meant.empty() ? "" : " ", "there are ", all)});
}

HEDDLE_INLINE std::vector<NamedPlanner> select_planners(std::span<const NamedPlanner> planners,
                                                        const std::vector<std::string>& names) {
  std::vector<bool> chosen(planners.size(), false);
  for (const std::string& name : names)
    chosen[static_cast<std::size_t>(&find_planner(planners, name) - planners.data())] = true;
  std::vector<NamedPlanner> selected;
  for (std::size_t p = 0; p < planners.size(); ++p)
    if (chosen[p]) selected.push_back(planners[p]);
  return selected;
}

HEDDLE_INLINE const Plan& PlanSearch::best() const {
  const PricedPlan* best = nullptr;
  std::string reasons;
  for (const PricedPlan& priced : m_plans) {
    if (!priced.found.plan) {
      reasons +=
          text(reasons.empty() ? "" : "; ", priced.found.planner, ": ", priced.found.infeasible);
    } else if (best == nullptr || priced.simulated < best->simulated) {
      best = &priced;
    }
  }
  if (best != nullptr) return *best->found.plan;
  throw infeasible({"heddle::plan::PlanSearch::best", "no planner found a plan",
                    reasons.empty() ? "no planner was asked" : reasons,
                    "use more ranks, ranks with more memory, or smaller microbatches"});
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const PlanSearch& search) {
  std::vector<std::vector<std::string>> rows = {
      {"planner", "formula", "simulated", "memory of the fullest rank", "candidates"}};
  for (const PricedPlan& priced : search.plans()) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(priced.found.planner);
    if (!priced.found.plan) {
      row.push_back(text("infeasible: ", priced.found.infeasible));
      continue;
    }
    const Bytes most = priced.memory.empty() ? 0 : std::ranges::max(priced.memory);
    row.insert(row.end(),
               {text(priced.found.formula, " s"), text(priced.simulated, " s"),
                text(static_cast<double>(most) / 1e9, " GB"), text(priced.found.candidates)});
  }
  return out << heddle::impl::in_columns(rows);
}

HEDDLE_INLINE PlanSearch search(const Profile& profile, const Machine& machine,
                                const PlanOptions& options,
                                std::span<const NamedPlanner> planners) {
  expects(!planners.empty(), [&] {
    return ErrorInfo{"heddle::plan::search",
                     "there are no planners to ask",
                     {},
                     "give systems::planners(), or named_planner<P>() of a planner of your own"};
  });
  const PlanProblem problem(profile, machine, options);
  const impl::SortedSearch sorted(problem);
  std::vector<PricedPlan> plans;
  for (const NamedPlanner& planner : planners)
    plans.push_back(priced_plan(sorted.ask(planner), problem));
  return PlanSearch(std::move(plans));
}

}  // namespace heddle::inline v0::plan
