// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Structs of simulate/, trace/ and tier/ that programs fill by hand: every door rejects a broken
// entry and names it.

#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule/generator.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_svg.hpp>
#include <heddle/systems/pim_gpt/bank_costs.hpp>
#include <heddle/systems/pim_gpt/bank_gemv.hpp>
#include <heddle/tier.hpp>
#include <heddle/trace.hpp>

#include "support/broken_entries.hpp"

namespace test_simulate_broken_entries {

using namespace heddle;
using test::BrokenEntry;
using test::check_broken;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("costs reject times that are none, and ranks, stages and banks that do not exist") {
  const Schedule schedule = schedule::gpipe({.ranks = 2, .microbatches = 2});
  const std::vector<systems::Gemv> one{{.outputs = 4, .inputs = 4}};
  const std::vector<systems::Gemv> two{{.outputs = 4, .inputs = 4}, {.outputs = 4, .inputs = 4}};
  const Schedule banks = systems::bank_gemv({}, two);
  TableCosts table_costs(Machine::uniform(2, {}, {}), 1);
  std::vector<BrokenEntry> table;
  for (const double time : {nan, -1.0, infinity}) {
    const auto add = [&](const char* name, StageCosts costs) {
      table.push_back({name, [=, &schedule] { (void)simulate(schedule, costs); }, {name}});
    };
    add("forward", {.forward = time});
    add("backward", {.backward = time});
    add("update", {.update = time});
    add("latency", {.latency = time});
    add("per_byte", {.per_byte = time});
    table.push_back({"activate",
                     [=, &banks, &two] {
                       (void)simulate(banks, systems::BankCosts({}, two, {.activate = time}));
                     },
                     {"activate"}});
  }
  table.push_back({"products",
                   [&] { (void)simulate(banks, systems::BankCosts({}, one, {})); },
                   {"product 1", "1 products"}});
  table.push_back({"stages", [] { TableCosts(Machine::uniform(2, {}, {}), -1); }, {"stages = -1"}});
  table.push_back(
      {"rank", [&] { (void)table_costs.at(Rank{9}, Kind::forward, Stage{0}); }, {"rank 9 of 2"}});
  table.push_back({"stage", [&] { (void)table_costs.at(Kind::forward, Stage{5}); }, {"5"}});
  check_broken(table);
}

TEST_CASE("pictures and reports reject plans and predictions with broken entries") {
  const systems::SequencePlan good{
      {3, 4}, {{{{Rank{0}, 1, {0}, 3, 1}, {Rank{1}, 1, {1}, 4, 1}}, 1}}, 2, 1};
  std::vector<BrokenEntry> table;
  const auto add = [&](const char* word,
                       const std::function<void(systems::SequencePlan&)>& change) {
    table.push_back({word,
                     [=] {
                       systems::SequencePlan plan = good;
                       change(plan);
                       (void)to_svg(plan);
                     },
                     {word}});
  };
  using Plan = systems::SequencePlan;
  const auto first = [](Plan& p) -> systems::SequenceGroup& { return p.microbatches[0].groups[0]; };
  add("-1 ranks", [](Plan& p) { p.ranks = -1; });
  add("1 ranks from rank 9", [=](Plan& p) { first(p).first = Rank{9}; });
  add("0 ranks from rank 0", [=](Plan& p) { first(p).degree = 0; });
  add("99 ranks from rank 0", [=](Plan& p) { first(p).degree = 99; });
  add("sequence 7 of 2", [=](Plan& p) { first(p).sequences = {7}; });
  add("SequencePlan::time = nan", [](Plan& p) { p.time = nan; });
  add("SequenceMicrobatch::time = nan", [](Plan& p) { p.microbatches[0].time = nan; });
  add("SequenceGroup::time = nan", [=](Plan& p) { first(p).time = nan; });
  add("lengths[0] = -3", [](Plan& p) { p.lengths[0] = -3; });
  const Schedule schedule = schedule::gpipe({.ranks = 2, .microbatches = 2});
  const Timeline timeline = simulate(schedule, StageCosts{.forward = 1, .backward = 2});
  for (const double step : {nan, -1.0, infinity})
    table.push_back({"prediction",
                     [=] { (void)trace::plan_error(PlanPrediction{.step = step}, timeline); },
                     {"PlanPrediction::step"}});
  check_broken(table);
}

TEST_CASE("tiers reject symbols and stores with broken entries") {
  constexpr Bytes all = std::numeric_limits<Bytes>::max();
  const auto spill = [](std::vector<tier::Symbol> symbols) {
    return [symbols = std::move(symbols)] { (void)tier::spill(symbols, 4); };
  };
  check_broken({
      {"steps", spill({{"a", 8, 2, 1, 1}}), {"'a'", "steps 2 to 1"}},
      {"bytes", spill({{"a", all, 0, 1, 1}, {"b", 2, 0, 1, 1}}), {"'b'", "2 bytes"}},
      {"transferred", spill({{"a", 8, 0, 1, all}, {"b", 8, 0, 1, 3}}), {"'b'", "3 transferred"}},
      {"source", [] { tier::Store(nullptr, {}); }, {"the pointer is null"}},
  });
}

}  // namespace test_simulate_broken_entries
