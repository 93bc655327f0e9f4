// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of search.hpp, and the list of the library's planners.

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/impl/columns.hpp>
#include <heddle/core/impl/near_miss.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/impl/rank_order.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/planner/dapple.hpp>
#include <heddle/plan/planner/frontier.hpp>
#include <heddle/plan/planner/hgtrainer.hpp>
#include <heddle/plan/planner/holmes.hpp>
#include <heddle/plan/planner/metis.hpp>
#include <heddle/plan/planner/pipedream.hpp>
#include <heddle/plan/planner/replicas.hpp>
#include <heddle/plan/planner/search.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan {

namespace impl {

/// Returns the names, separated by commas.
[[nodiscard]] inline std::string listed_planners() {
  std::string all;
  for (const NamedPlanner& planner : planners()) all += text(all.empty() ? "" : ", ", planner.name);
  return all;
}

}  // namespace impl

HEDDLE_INLINE std::span<const NamedPlanner> planners() {
  // A new planner is one line here: named_planner<P>("what it does, and its source").
  static const std::vector<NamedPlanner> all = {
      named_planner<Dapple>("layers, ranks and their placement by dynamic programming, for "
                            "synchronous steps (Fan et al., PPoPP'21)"),
      named_planner<PipeDream>("layers and replicas, level by level over the machine "
                               "(Narayanan et al., SOSP'19)"),
      named_planner<Metis>("groups of unequal devices, with balanced layers and samples "
                           "(Um et al., USENIX ATC'24)"),
      named_planner<HGTrainer>("orders of sites that slow links join, with compressed cuts "
                               "(Zong et al., 2025)"),
      named_planner<Holmes>("stages within one kind of network each (Yang et al., 2023)"),
      named_planner<Frontier3D>("tensor, sequence, pipeline and data degrees of equal stages "
                                "(Dash et al., 2023)"),
      named_planner<Replicas>("the fastest ranks as replicas of all layers, for comparison")};
  return all;
}

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

HEDDLE_INLINE const NamedPlanner& find_planner(std::string_view name) {
  std::vector<std::string_view> names;
  for (const NamedPlanner& planner : planners()) {
    if (planner.name == name) return planner;
    names.push_back(planner.name);
  }
  const std::string meant = heddle::impl::did_you_mean(name, names);
  throw contract_error(
      {"heddle::plan::find_planner",
       text("no planner '", name, "'"),
       {},
       text(meant, meant.empty() ? "" : " ", "there are ", impl::listed_planners())});
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
                                const PlanOptions& options, const std::vector<std::string>& names) {
  const PlanProblem problem(profile, machine, options);
  const std::span<const NamedPlanner> all = planners();
  std::vector<const NamedPlanner*> asked;
  for (const std::string& name : names) asked.push_back(&find_planner(name));
  if (names.empty())
    for (const NamedPlanner& planner : all) asked.push_back(&planner);
  // In the order of planners(), each once.
  std::ranges::sort(asked);
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  const impl::SortedSearch sorted(problem);
  std::vector<PricedPlan> plans;
  for (const NamedPlanner* planner : asked)
    plans.push_back(priced_plan(sorted.ask(*planner), problem));
  return PlanSearch(std::move(plans));
}

}  // namespace heddle::inline v0::plan
