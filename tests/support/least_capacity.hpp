// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// check_named_capacities(): the smallest capacity that a planner names is the smallest with which
/// it finds a plan.

#include <cstddef>
#include <cstdint>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>

#include "plan/planner_battery.hpp"

namespace heddle::test {

/// Returns the number behind "smallest capacity that would do is".
[[nodiscard]] inline Bytes named_capacity(const std::string& reason) {
  const std::string words = "smallest capacity that would do is ";
  const std::size_t place = reason.find(words);
  INFO(reason);
  REQUIRE(place != std::string::npos);
  return std::stoull(reason.substr(place + words.size()));
}

/// Checks the capacities that a planner names for random problems whose ranks have 1 byte each.
template <plan::Planner P>
void check_named_capacities(const P& planner, std::uint64_t cases) {
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    PlanCase one = random_plan_case(seed);
    const auto search = [&](Bytes capacity) {
      for (Device& device : one.devices) device.memories[0].capacity = capacity;
      const Machine machine = one.machine();
      return planner.search(plan::PlanProblem(one.profile, machine, one.options));
    };
    INFO(P::name << ", case " << seed);
    const plan::FoundPlan found = search(1);
    REQUIRE_FALSE(found.plan.has_value());
    const Bytes enough = named_capacity(found.infeasible);
    REQUIRE(search(enough).plan.has_value());
    REQUIRE_FALSE(search(enough - 1).plan.has_value());
    REQUIRE(named_capacity(search(enough - 1).infeasible) == enough);
  }
}

}  // namespace heddle::test
