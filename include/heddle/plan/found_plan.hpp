// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FoundPlan: the result of one planner. Planner: the concept of what finds it.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <heddle/core/units.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan {

/// How the search of a planner has ended.
enum class SearchEnd : std::uint8_t {
  complete,  ///< it has seen all plans that it wanted to see
  cut_off,   ///< a limit has ended it, such as one of PlanBudget; a better plan may exist
  failed     ///< it has thrown an exception; FoundPlan::infeasible has the message
};

/// The result of one planner.
struct FoundPlan {
  std::string planner = {};       ///< the planner's name
  std::optional<Plan> plan = {};  ///< the plan, or nothing if it is infeasible
  Seconds formula = 0;            ///< the time of a step by the planner's own formula
  std::size_t candidates = 0;     ///< plans, or parts of plans, that the planner priced
  std::string infeasible = {};    ///< why there is no plan: which rank lacks how many bytes
  std::optional<MemoryShortage> shortage = {};  ///< without a plan, of the one that lacks least
  SearchEnd end = SearchEnd::complete;          ///< how the search has ended
};

/// A type that finds plans. `search` returns the best plan by its own formula; `formula` prices any
/// plan by it. Equal problems give equal plans on every rank.
template <class P>
concept Planner = requires(const P& planner, const Plan& plan, const PlanProblem& problem) {
  { P::name } -> std::convertible_to<std::string_view>;
  { planner.search(problem) } -> std::same_as<FoundPlan>;
  { planner.formula(plan, problem) } -> std::same_as<Seconds>;
};

}  // namespace heddle::inline v0::plan
