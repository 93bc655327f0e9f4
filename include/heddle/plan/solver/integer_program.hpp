// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// solve_integer(): the solution of a LinearProgram some of whose variables are whole numbers, by
/// branch and bound.

#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/solver/linear_program.hpp>

namespace heddle::inline v0::plan {

/// The solution of an integer program. `cost` and `values` are set if it is optimal, or if
/// `bound` < `cost`: then the search ended early.
template <class Number = double>
struct IntegerSolution {
  Outcome outcome = Outcome::infeasible;  ///< `inaccurate` also if the search ended early
  Number cost = {};                       ///< the least cost that was found
  std::vector<Number> values;             ///< by variable; whole ones are exactly whole
  Number bound = {};                      ///< no solution costs less
  std::size_t programs = 0;               ///< linear programs that were solved
};

namespace impl {

/// Returns the greatest whole number that is not above `x`, up to rounding, and whether x is whole.
template <class Number>
std::pair<Number, bool> whole_part(const Number& x) {
  using std::floor;
  if constexpr (std::floating_point<Number>) {
    const Number nearest = std::round(x);
    if (std::abs(x - nearest) <= Number(1e-6) * std::max(Number(1), std::abs(x)))
      return {nearest, true};
  }
  const Number below = floor(x);
  return {below, below == x};
}

}  // namespace impl

/// Returns the solution of `program` in which the variables `whole` are whole numbers. The search
/// takes the open part with the least bound first and halves it at the variable that is farthest
/// from a whole number. An exact type needs a function floor(Number).
///
/// @param program        the program without the condition that variables are whole
/// @param whole          the numbers of the variables that are whole
/// @param most_programs  linear programs to solve at most; the search then ends with the best
///                       solution that it has, and `inaccurate`
/// @throws contract_error if `whole` names a variable that does not exist.
template <class Number>
[[nodiscard]] IntegerSolution<Number> solve_integer(LinearProgram<Number> program,
                                                    const std::vector<std::size_t>& whole,
                                                    std::size_t most_programs = 1'000'000) {
  for (const std::size_t variable : whole)
    expects(variable < program.variables().size(), [&] {
      return ErrorInfo{"heddle::plan::solve_integer", "there is no such variable",
                       text("variable ", variable, " of ", program.variables().size())};
    });
  struct Bounds {
    std::size_t variable;
    std::optional<Number> lower, upper;
  };
  struct Part {
    Number bound;
    std::vector<Bounds> bounds;  // of the variables at which it was halved, the latest last
    std::vector<Number> values;
  };
  const auto later = [](const Part& a, const Part& b) { return b.bound < a.bound; };
  std::priority_queue<Part, std::vector<Part>, decltype(later)> open(later);
  const LinearProgram<Number> original = program;
  IntegerSolution<Number> best;
  bool found = false;
  const auto worse = [&](const Number& bound) {
    if (!found) return false;
    if constexpr (std::floating_point<Number>)
      return bound >= best.cost - Number(1e-9) * std::max(Number(1), std::abs(best.cost));
    else
      return !(bound < best.cost);
  };
  // Solves the part with these bounds. False if nothing is known of it.
  const auto examine = [&](std::vector<Bounds> bounds) {
    for (const Bounds& each : bounds) program.set_bounds(each.variable, each.lower, each.upper);
    ++best.programs;
    LinearSolution<Number> relaxed = solve(program);
    for (const Bounds& each : bounds)
      program.set_bounds(each.variable, original.variables()[each.variable].lower,
                         original.variables()[each.variable].upper);
    if (relaxed.outcome == Outcome::infeasible) return Outcome::optimal;
    if (relaxed.outcome == Outcome::optimal && !worse(relaxed.cost))
      open.push({relaxed.cost, std::move(bounds), std::move(relaxed.values)});
    return relaxed.outcome;
  };
  const Outcome root = examine({});
  best.outcome = root;
  if (root != Outcome::optimal) return best;
  if (open.empty()) {
    best.outcome = Outcome::infeasible;
    return best;
  }
  bool exact = true;
  while (!open.empty()) {
    Part part = open.top();
    open.pop();
    best.bound = part.bound;
    if (worse(part.bound)) break;
    if (best.programs >= most_programs) {
      exact = false;
      break;
    }
    std::optional<std::size_t> branch;
    Number branch_floor{};
    Number farthest{};
    for (const std::size_t variable : whole) {
      const Number value = part.values[variable];
      const auto [below, is_whole] = impl::whole_part(value);
      if (is_whole) {
        part.values[variable] = below;
        continue;
      }
      const Number up = below + Number(1) - value;
      const Number distance = up < value - below ? up : value - below;
      if (!branch || farthest < distance) {
        branch = variable;
        branch_floor = below;
        farthest = distance;
      }
    }
    if (!branch) {
      found = true;
      best.cost = part.bound;
      best.values = std::move(part.values);
      continue;
    }
    std::optional<Number> lower = original.variables()[*branch].lower;
    std::optional<Number> upper = original.variables()[*branch].upper;
    std::vector<Bounds> bounds;
    for (Bounds& each : part.bounds) {
      if (each.variable == *branch) {
        lower = each.lower;
        upper = each.upper;
      } else {
        bounds.push_back(std::move(each));
      }
    }
    for (const bool down : {true, false}) {
      Bounds half{*branch, lower, upper};
      (down ? half.upper : half.lower) = down ? branch_floor : branch_floor + Number(1);
      if (half.lower && half.upper && *half.upper < *half.lower) continue;
      std::vector<Bounds> halved = bounds;
      halved.push_back(half);
      if (examine(std::move(halved)) == Outcome::inaccurate) exact = false;
    }
  }
  if (found && exact) best.bound = best.cost;
  best.outcome = !exact ? Outcome::inaccurate : found ? Outcome::optimal : Outcome::infeasible;
  return best;
}

}  // namespace heddle::inline v0::plan
