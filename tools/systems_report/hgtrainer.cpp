// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// HGTrainer: messages of 8 bits between two sites, and its plans against those of Metis.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iomanip>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/systems/hgtrainer/hgtrainer.hpp>
#include <heddle/systems/metis/metis.hpp>

#include "comparison.hpp"
#include "support/two_sites.hpp"

namespace hd = heddle;

namespace report {

namespace {

using hd::test::TwoSites;

constexpr double gigabits[] = {1, 2.5, 5, 10};

/// One number for each bandwidth.
struct ByBandwidth {
  std::vector<double> numbers;

  [[nodiscard]] std::string to_text() const {
    std::ostringstream out;
    out << std::fixed << std::setprecision(2);
    for (std::size_t i = 0; i < numbers.size(); ++i) out << (i == 0 ? "" : " / ") << numbers[i];
    return std::move(out).str();
  }
  [[nodiscard]] double least() const { return *std::ranges::min_element(numbers); }
  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double number : numbers) sum += number;
    return sum / static_cast<double>(numbers.size());
  }
};

/// What 8 bits gain over 16 bits at the cut of a plan, if the work is divided exactly by speed (312
/// of 437 layers) or in whole layers (17 of 24). `price(plan, problem)` against
/// `reference(first, second, line)`.
template <class Price, class Reference>
Comparison cast_gain(const std::string& what, const char* schedule, const Price& price,
                     const Reference& reference) {
  ByBandwidth exact, rounded, expected;
  bool equal = true;
  for (const auto& [layers, cut, gains] :
       {std::tuple{437, 312, &exact}, std::tuple{24, 17, &rounded}}) {
    const hd::plan::Profile profile = TwoSites::profile(layers, {8});
    const double part = static_cast<double>(cut) / layers;
    const double first = TwoSites::stage_time(part, TwoSites::fast);
    const double second = TwoSites::stage_time(1 - part, TwoSites::slow);
    for (const double line : gigabits) {
      const hd::Machine machine = TwoSites::machine(line);
      const hd::plan::PlanProblem problem(profile, machine, TwoSites::options(schedule, true));
      const auto gain = [](const auto& of) { return of(16) / of(8); };
      gains->numbers.push_back(gain([&, layers = layers, cut = cut](int bits) {
        return price(TwoSites::plan(layers, cut, schedule, bits == 8), problem);
      }));
      const double wanted =
          gain([&](int bits) { return reference(first, second, TwoSites::line_time(line, bits)); });
      if (layers == 437) expected.numbers.push_back(wanted);
      equal = equal && std::abs(gains->numbers.back() - wanted) < 1e-6;
    }
  }
  return {what, "", hd::text(exact.to_text(), " (in whole layers of 24: ", rounded.to_text(), ")"),
          hd::text("equal to a reference without Heddle: ", expected.to_text()), verdict(equal)};
}

}  // namespace

std::vector<Comparison> hgtrainer() {
  using hd::systems::HGTrainer;
  std::vector<Comparison> lines;
  const std::string setting = "2.7B on 8 + 8 unequal accelerators, 1 / 2.5 / 5 / 10 Gbit/s: ";
  const auto simulated = [](const hd::Plan& plan, const hd::plan::PlanProblem& problem) {
    return simulated_step(plan, problem);
  };
  lines.push_back(cast_gain(
      setting + "8-bit over 16-bit cuts by its formula", "1f1b",
      [](const hd::Plan& plan, const hd::plan::PlanProblem& problem) {
        return HGTrainer{}.formula(plan, problem);
      },
      TwoSites::closed_form));
  lines.push_back(cast_gain("the same, simulated under 1F1B", "1f1b", simulated,
                            [](double first, double second, double line) {
                              return TwoSites::two_stages(first, second, line, 2);
                            }));
  lines.push_back(cast_gain("the same, simulated under DAPPLE's policy B", "dapple", simulated,
                            [](double first, double second, double line) {
                              return TwoSites::two_stages(first, second, line, 3);
                            }));
  const hd::plan::Profile profile = TwoSites::profile(24);
  ByBandwidth gains, schedules, casts, divisions, alone;
  bool leaves_out = false;
  for (const double line : gigabits) {
    const hd::Machine machine = TwoSites::machine(line);
    const hd::plan::PlanProblem problem(profile, machine, TwoSites::options("dapple", true));
    const hd::plan::PlanProblem plain(profile, machine, TwoSites::options("dapple", false));
    const hd::Plan plan = *HGTrainer{}.search(problem).plan;
    hd::Plan metis = *hd::systems::Metis{}.search(plain).plan;
    const double step = simulated_step(plan, problem), other = simulated_step(metis, plain);
    gains.numbers.push_back(other / step);
    alone.numbers.push_back(TwoSites::microbatches * TwoSites::stage_time(1, TwoSites::fast) /
                            step);
    hd::Plan cast = metis;
    for (std::size_t s = 0; s + 1 < cast.stages.size(); ++s)
      cast.casts.push_back((cast.stages[s].ranks.back() < 8) !=
                                   (cast.stages[s + 1].ranks.front() < 8)
                               ? std::optional(TwoSites::narrow)
                               : std::nullopt);
    const double narrow = simulated_step(cast, plain);
    casts.numbers.push_back(other / narrow);
    divisions.numbers.push_back(narrow / step);
    metis.schedule = "1f1b";
    schedules.numbers.push_back(simulated_step(metis, plain) / other);
    if (line == 1) leaves_out = plan.stages.back().ranks.back() < 8;
  }
  lines.push_back({"simulated, both under DAPPLE's policy B, over our Metis with 16-bit cuts",
                   "1.49x over Metis (mean)", hd::text(gains.to_text(), ", mean ", gains.mean()),
                   "at least 1 at each", verdict(gains.least() >= 1)});
  lines.push_back({"of this, 8-bit cuts of Metis' plan", "",
                   hd::text(casts.to_text(), ", mean ", casts.mean()), "none",
                   not_judged("a part of the line above")});
  lines.push_back({"of this, another division than Metis' plan", "",
                   hd::text(divisions.to_text(), ", mean ", divisions.mean()), "none",
                   not_judged("a part of the line above")});
  lines.push_back({"Metis' plan under policy B over the same under 1F1B, which is no part of it",
                   "", hd::text(schedules.to_text(), ", mean ", schedules.mean()), "none",
                   not_judged("policy B is of DAPPLE")});
  lines.push_back({"simulated, over the faster site alone", "", alone.to_text(), "at least 1",
                   verdict(alone.least() >= 1 - 1e-9)});
  lines.push_back({"its plan at 1 Gbit/s", "", leaves_out ? "leaves a site out" : "has both sites",
                   "leaves a site out: 1.89 s, and both need 2.83 s by the formula",
                   verdict(leaves_out)});
  lines.push_back({"measured gain over Metis on mixed clusters", "1.49x", "", "none",
                   "not reproducible: only the abstract was available, and models, clusters and "
                   "bandwidths are unknown"});
  return lines;
}

}  // namespace report
