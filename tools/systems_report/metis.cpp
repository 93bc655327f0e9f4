// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// Metis: its plans for nodes of two speeds against the best plans that divide everything equally.

#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/systems/metis/metis.hpp>

#include "comparison.hpp"
#include "support/two_speeds.hpp"

namespace hd = heddle;

namespace report {

std::vector<Comparison> metis() {
  using hd::test::TwoSpeeds;
  const hd::plan::Profile profile = TwoSpeeds::profile();
  const hd::Machine machine = TwoSpeeds::machine();
  const hd::plan::PlanProblem problem(profile, machine, TwoSpeeds::options());
  const hd::systems::Metis planner;
  const hd::plan::FoundPlan found = planner.search(problem);
  const auto gain = [&](int used, bool simulated) {
    const auto price = [&](const hd::Plan& plan) {
      return simulated ? simulated_step(plan, problem) : planner.formula(plan, problem);
    };
    return TwoSpeeds::best_uniform(problem, used, price) / price(*found.plan);
  };
  const auto line = [&](const std::string& what, int used, double bar, double bound) {
    const double formula = gain(used, false), simulated = gain(used, true);
    return Comparison{what, "1.05-8.43x (measured, three kinds of GPU)",
                      hd::text(formula, "x by its formula, ", simulated, "x simulated"),
                      hd::text("at least ", bar, " (bound ", bound, ")"),
                      verdict(formula >= bar && simulated >= bar && formula <= bound)};
  };
  return {
      line("24 layers on 2 fast nodes and 2 with 0.4 of the speed, over the best uniform plan", 8,
           1.5, 1.75),
      line("the same, over the best uniform plan on the fast nodes only", 4, 1.2, 1.4),
      {"measured gains with GPT-3, MoE and Wide-ResNet", "1.05-8.43x", "", "none",
       "not reproducible: three kinds of GPU and their profiles, which have a licence for "
       "non-commercial use"},
  };
}

}  // namespace report
