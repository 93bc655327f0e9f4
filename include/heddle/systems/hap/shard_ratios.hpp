// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Shard ratios: the shares of unequal devices in the dimensions that they divide, by a linear
/// program.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/solver/linear_program.hpp>

namespace heddle::inline v0::systems {

/// A multiple of one device's share in one group of dimensions.
template <class Number = double>
struct ShareTerm {
  std::size_t group = 0;    ///< dimensions that are divided alike
  std::size_t device = 0;   ///< the device that has the share
  Number coefficient = {};  ///< seconds, or bytes, of the whole
};

/// Work that ends when its slowest device ends: it takes the greatest of its terms.
template <class Number = double>
struct RatioStep {
  std::string name;                      ///< shown to people
  std::vector<ShareTerm<Number>> terms;  ///< each at least 0
};

/// A limit: the sum of its terms is at most `bound`. So are the bytes of a device.
template <class Number = double>
struct RatioLimit {
  std::string name;                      ///< shown to people
  std::vector<ShareTerm<Number>> terms;  ///< that are added
  Number bound = {};                     ///< the greatest value of the sum
};

/// The input of solve_ratios().
template <class Number = double>
struct RatioProblem {
  std::size_t devices = 1;                      ///< devices that divide every group
  std::vector<Number> least = {};               ///< by group: the least share of a device
  std::vector<RatioStep<Number>> steps = {};    ///< run one after another
  std::vector<RatioLimit<Number>> limits = {};  ///< hold together
};

/// The result of solve_ratios().
template <class Number = double>
struct RatioSolution {
  std::vector<std::vector<Number>> shares;  ///< by group and device; a group's sum is 1
  Number time = {};                         ///< the sum of all steps
  std::vector<Number> prices;  ///< by limit: change of the time for each unit more of it
};

/// Returns the linear program of shard ratios: the least sum of the steps' times, over all shares
/// that add up to 1 in each group, are at least `least`, and keep the limits. Variable
/// group * devices + device is a share; the times of the steps follow. This is HAP's program (Zhang
/// et al., EuroSys 2024).
/// @throws contract_error if a term names a group or device that does not exist.
template <class Number>
[[nodiscard]] plan::LinearProgram<Number> ratio_program(const RatioProblem<Number>& problem) {
  using Terms = std::vector<std::pair<std::size_t, Number>>;
  plan::LinearProgram<Number> program;
  expects(problem.devices >= 1, [] {
    return ErrorInfo{"heddle::systems::ratio_program", "there must be at least one device",
                     "devices = 0"};
  });
  const auto share = [&](const ShareTerm<Number>& term) {
    expects(term.group < problem.least.size() && term.device < problem.devices, [&] {
      return ErrorInfo{"heddle::systems::ratio_program", "a term has no such group or device",
                       text("group ", term.group, " of ", problem.least.size(), ", device ",
                            term.device, " of ", problem.devices)};
    });
    return term.group * problem.devices + term.device;
  };
  for (std::size_t g = 0; g < problem.least.size(); ++g)
    for (std::size_t d = 0; d < problem.devices; ++d)
      program.add_variable(text("share of device ", d, " in group ", g), Number{},
                           problem.least[g]);
  for (std::size_t g = 0; g < problem.least.size(); ++g) {
    Terms all;
    for (std::size_t d = 0; d < problem.devices; ++d)
      all.push_back({g * problem.devices + d, Number(1)});
    program.add_constraint(text("shares of group ", g), std::move(all), plan::Relation::equal,
                           Number(1));
  }
  for (const RatioStep<Number>& step : problem.steps) {
    const std::size_t time = program.add_variable(step.name, Number(1));
    for (const ShareTerm<Number>& term : step.terms)
      expects(!(term.coefficient < Number{}), [&] {
        return ErrorInfo{"heddle::systems::ratio_program", "a time is below 0",
                         text("step '", step.name, "', coefficient ", term.coefficient)};
      });
    for (const ShareTerm<Number>& term : step.terms)
      program.add_constraint(step.name,
                             {{time, Number(1)}, {share(term), Number{} - term.coefficient}},
                             plan::Relation::at_least, Number{});
  }
  for (const RatioLimit<Number>& limit : problem.limits) {
    Terms sum;
    for (const ShareTerm<Number>& term : limit.terms)
      sum.push_back({share(term), term.coefficient});
    program.add_constraint(limit.name, std::move(sum), plan::Relation::at_most, limit.bound);
  }
  return program;
}

/// Returns the shares of the least time, and that time.
/// @throws contract_error as ratio_program() and optimum(): so if no shares keep the limits.
template <class Number>
[[nodiscard]] RatioSolution<Number> solve_ratios(const RatioProblem<Number>& problem) {
  const plan::LinearSolution<Number> found = plan::optimum(ratio_program(problem));
  RatioSolution<Number> out;
  out.time = found.cost;
  for (std::size_t g = 0; g < problem.least.size(); ++g) {
    const auto first = found.values.begin() + static_cast<std::ptrdiff_t>(g * problem.devices);
    out.shares.emplace_back(first, first + static_cast<std::ptrdiff_t>(problem.devices));
  }
  out.prices.assign(found.prices.end() - static_cast<std::ptrdiff_t>(problem.limits.size()),
                    found.prices.end());
  return out;
}

}  // namespace heddle::inline v0::systems
