// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of search.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
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
#include <heddle/plan/internal/device_work.hpp>
#include <heddle/plan/internal/search_watch.hpp>
#include <heddle/plan/internal/stage_shape.hpp>
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
    priced.found.shortage = shortage;
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

HEDDLE_INLINE const PricedPlan& PlanSearch::best_priced() const {
  const PricedPlan* best = nullptr;
  const FoundPlan* nearest = nullptr;  // that lacks least
  std::string reasons;
  const auto lack = [](const FoundPlan& found) {
    return found.shortage->needed - found.shortage->capacity;
  };
  for (const PricedPlan& priced : m_plans) {
    const FoundPlan& found = priced.found;
    if (!found.plan) {
      reasons += text(reasons.empty() ? "" : "; ", found.planner, ": ", found.infeasible);
      if (found.shortage && (nearest == nullptr || lack(found) < lack(*nearest))) nearest = &found;
    } else if (best == nullptr || priced.simulated < best->simulated) {
      best = &priced;
    }
  }
  if (best != nullptr) return *best;
  if (nearest != nullptr && m_plans.size() > 1)
    reasons += text("; the least shortage is that of ", nearest->planner, ": rank ",
                    nearest->shortage->rank, " lacks ", lack(*nearest), " of ",
                    nearest->shortage->needed, " bytes");
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
      const bool all_seen = priced.found.end == SearchEnd::complete;
      row.push_back(text(all_seen ? "infeasible: " : "", priced.found.infeasible));
      continue;
    }
    const Bytes most = priced.memory.empty() ? 0 : std::ranges::max(priced.memory);
    row.insert(row.end(),
               {text(priced.found.formula, " s"), text(priced.simulated, " s"),
                text(static_cast<double>(most) / 1e9, " GB"), text(priced.found.candidates)});
  }
  out << heddle::impl::in_columns(rows);
  std::string cut_off;
  for (const PricedPlan& priced : search.plans())
    if (priced.found.end == SearchEnd::cut_off)
      cut_off += text(cut_off.empty() ? "" : ", ", priced.found.planner);
  if (cut_off.empty()) return out;
  out << "\ncut off: " << cut_off << "; better plans of these planners may exist";
  if (search.bound() > 0) out << "\nno plan is faster than " << search.bound() << " s";
  return out;
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
  return PlanSearch(impl::ask_planners(problem, planners), least_step(problem));
}

HEDDLE_INLINE Seconds least_step(const PlanProblem& problem) {
  const PlanOptions& options = problem.options();
  if (std::ranges::any_of(options.sequence_degrees, [](int degree) { return degree > 1; }))
    return 0;
  impl::LayerTable table(problem);
  const impl::DeviceWork work(table);
  double speed = 0;
  for (const double each : work.speed) speed += each;
  constexpr double rounding = 1 - 1e-12;
  return static_cast<double>(options.batch) * work.first.back() / speed * rounding;
}

namespace impl {

/// Returns the best plan of a planner. With a limit of time, the planner searches with few steps
/// first, and then again with more of them: a plan of a short search is never lost to a long one.
/// One of these searches has the steps of PlanBudget. The search ends if `stopped` becomes true.
inline PricedPlan ask_in_passes(const SortedSearch& sorted, const NamedPlanner& planner,
                                const PlanBudget& budget, const PlanProblem& problem,
                                const bool& stopped) {
  constexpr std::uint64_t growth = 8;
  const Seconds begin = steady_seconds();
  PlanBudget pass = budget;
  if (std::isfinite(budget.seconds))
    pass.steps = std::min(budget.steps, PlanBudget{}.steps / (growth * growth));
  PricedPlan best = priced_plan(sorted.ask(planner, pass), problem);
  std::size_t candidates = best.found.candidates;
  for (std::size_t last = candidates; best.found.end == SearchEnd::cut_off && !stopped;) {
    pass.seconds = budget.seconds - (steady_seconds() - begin);
    if (pass.steps == budget.steps || !(pass.seconds > 0)) break;
    pass.steps = pass.steps > budget.steps / growth ? budget.steps : pass.steps * growth;
    PricedPlan next;
    try {
      next = priced_plan(sorted.ask(planner, pass), problem);
    } catch (const std::exception&) {
      if (!best.found.plan) throw;
      break;
    }
    // It was not the steps that ended the search if more of them change nothing.
    const bool same = next.found.candidates > 0 && next.found.candidates == last;
    last = next.found.candidates;
    candidates += last;
    const SearchEnd end = next.found.end;
    if (!best.found.plan || (next.found.plan && next.simulated < best.simulated))
      best = std::move(next);
    best.found.end = end;
    if (same) break;
  }
  best.found.candidates = candidates;
  return best;
}

HEDDLE_INLINE std::vector<PricedPlan> ask_planners(const PlanProblem& problem,
                                                   std::span<const NamedPlanner> planners) {
  const Seconds begin = steady_seconds();
  const PlanOptions& options = problem.options();
  bool stopped = false;
  std::optional<PlanProblem> watched;
  if (options.progress) {
    PlanOptions same = options;
    same.progress = [&](const PlanProgress& progress) {
      stopped = stopped || !options.progress(progress);
      return !stopped;
    };
    watched.emplace(problem.profile(), problem.machine(), std::move(same));
  }
  const SortedSearch sorted(watched ? *watched : problem);
  std::exception_ptr failure;
  std::size_t failed = 0;
  std::vector<PricedPlan> plans;
  for (std::size_t p = 0; p < planners.size(); ++p) {
    PricedPlan& priced = plans.emplace_back();
    const auto fail = [&](std::string why, SearchEnd end) {
      priced = {.found = {.planner = std::string(planners[p].name),
                          .infeasible = std::move(why),
                          .end = end}};
    };
    if (stopped) {
      fail("not asked, because the search was stopped", SearchEnd::cut_off);
      continue;
    }
    PlanBudget budget = options.budget;
    budget.seconds = std::max(0.0, budget.seconds - (steady_seconds() - begin)) /
                     static_cast<double>(planners.size() - p);
    try {
      priced = ask_in_passes(sorted, planners[p], budget, problem, stopped);
      continue;
    } catch (const std::bad_alloc&) {
      fail("failed: there is no memory left", SearchEnd::failed);
      if (!failure) failure = std::current_exception();
    } catch (const std::exception& error) {
      fail(text("failed: ", error.what()), SearchEnd::failed);
      if (!failure) failure = std::current_exception();
    }
    ++failed;
  }
  if (failed == planners.size() && failure) std::rethrow_exception(failure);
  return plans;
}

}  // namespace impl

}  // namespace heddle::inline v0::plan
