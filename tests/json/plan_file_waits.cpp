// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The error of predictions that come from files: a profile and a machine are written, read and
// searched, the plans of all planners are written and read, and ranks (threads) that wait execute
// them. Prints the rows of docs/systems.md, and leaves the files for the program `plan`.
// alone: yes

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/json.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/systems/planners.hpp>
#include <heddle/trace.hpp>

#include "support/waiting_plans.hpp"

namespace test_plan_file_waits {

using namespace heddle;
using heddle::test::WaitingPlan;

namespace {

constexpr int layers = 24;
constexpr std::int64_t batch = 448;  // 16 microbatches of 28 samples

/// Writes a model of which 6 layers take 5 ms forward on a fast rank, and twice as long backward.
void write_profile(const std::string& file) {
  constexpr Seconds sample = 5e-3 / 6 / 28;
  plan::Profile profile{.model = "waits", .input = 40, .layers = {}, .reference = "fast"};
  profile.layers.assign(layers, {.name = "layer",
                                 .output = 40,
                                 .saved = 40,
                                 .parameters = 40'000,
                                 .measured = {{"fast", 1, 1, {sample, sample, sample, 0}}}});
  json::write_profile(file, profile);
}

/// Writes two fast and two slow ranks with slow links.
void write_machine(const std::string& file) {
  std::vector<Device> devices(2, {.name = "fast"});
  devices.resize(4, {.name = "slow", .speed = 0.4});
  json::write_machine(file, Machine::from_links(devices, std::vector<Link>(16, {0, 4e6})));
}

}  // namespace

TEST_CASE("steps of planners' plans take what their files predict") {
  const std::filesystem::path folder = std::filesystem::current_path() / "plan_file_waits_files";
  std::filesystem::create_directories(folder);
  const auto file = [&](const std::string& name) { return (folder / name).string(); };
  write_profile(file("profile.json"));
  write_machine(file("machine.json"));

  std::vector<std::string> names;  // of the planners of each different plan
  std::vector<std::string> plans;  // their files
  {
    const plan::Profile profile = json::read_profile(file("profile.json"));
    const Machine machine = json::read_machine(file("machine.json"));
    const plan::PlanSearch found =
        plan::search(profile, machine, {.batch = batch, .microbatches = {16}}, systems::planners());
    std::vector<Plan> different;
    for (const plan::PricedPlan& each : found.plans()) {
      REQUIRE(each.found.plan);
      const auto same = std::ranges::find(different, *each.found.plan);
      if (same != different.end()) {
        names[static_cast<std::size_t>(same - different.begin())] += ", " + each.found.planner;
        continue;
      }
      different.push_back(*each.found.plan);
      names.push_back(each.found.planner);
      plans.push_back(file("plan" + std::to_string(plans.size()) + ".json"));
      json::write_plan(plans.back(), different.back());
    }
  }
  const plan::Profile profile = json::read_profile(file("profile.json"));
  const Machine machine = json::read_machine(file("machine.json"));
  std::vector<WaitingPlan> cases;
  for (std::size_t i = 0; i < plans.size(); ++i)
    cases.push_back(test::waiting_plan(names[i], json::read_plan(plans[i]), profile, machine));
  const auto near = [](const WaitingPlan& each) {
    return std::abs(each.error()) <= 0.05 &&
           std::abs(trace::plan_error(each.timeline, each.measured()).step()) <= 0.05;
  };
  const auto holds = [&] { return std::ranges::all_of(cases, near); };
  const bool result = test::execute_on_threads(cases, holds, {.limit = 60});

  if (!result) SKIP(test::no_result);
  std::cout << "| plan of | predicted | measured | error |\n|---|---|---|---|\n";
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const WaitingPlan& each = cases[i];
    std::cout << std::fixed << "| " << each.name << " | " << std::setprecision(1)
              << each.predicted * 1e3 << " ms | " << each.took.median() * 1e3 << " ms | "
              << std::showpos << each.error() * 100 << " % |\n"
              << std::noshowpos << std::defaultfloat << std::setprecision(6);
    trace::write(file("run" + std::to_string(i) + ".json"), each.measured());
    INFO(each.name << ": " << each.plan);
    CHECK(near(each));
  }
}

}  // namespace test_plan_file_waits
