// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Branches on workers, against all partitions of their times, on rationals.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/plan/place_branches.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/output_sizes.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/branch_times.hpp"
#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_place_branches {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::BranchTimes;
using test::ForkedStages;
using test::Rational;

namespace {

/// Returns the bytes of all moves.
Bytes moved(const Schedule& schedule) {
  Bytes bytes = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const auto uses = schedule.uses(ActionId{i});
    if (schedule[ActionId{i}].kind != Kind::move) continue;
    CHECK(schedule.bytes(uses.front()) == schedule.bytes(uses.back()));
    bytes += schedule.bytes(uses.front());
  }
  return bytes;
}

}  // namespace

TEST_CASE("branches take their least time on any workers, exactly") {
  std::mt19937_64 random(21);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  test::Coverage seen("forks");
  for (std::uint64_t c = 0; c < test::cases(200, 20'000); ++c) {
    const int branches = 1 + below(6);
    const int workers = 1 + below(4);
    ForkedStages stages({.branches = branches, .stem = below(2), .most_stages = 3}, random);
    const BranchTimes costs{stages.times};
    std::vector<Rational> times;
    for (const auto& branch : stages.branches) times.push_back(stages.time_of(branch));
    const Rational least = test::least_largest_sum(times, workers);
    const Rational around = stages.time_of(stages.stem) + stages.times.back();
    const auto placed = plan::place_branches(stages.graph, costs, {.workers = workers});
    const auto longest_first =
        plan::place_branches(stages.graph, costs, {.workers = workers, .steps = 0});
    INFO("case " << c << ": " << branches << " branches, " << workers << " workers");
    REQUIRE(placed.optimal);
    REQUIRE(placed.makespan == around + least);
    REQUIRE(simulate(placed.schedule, costs).makespan() == placed.makespan);
    if (workers >= branches)
      REQUIRE(placed.makespan == around + *std::max_element(times.begin(), times.end()));
    // Graham's bound of longest first.
    REQUIRE_FALSE(longest_first.makespan < placed.makespan);
    REQUIRE_FALSE(around + least * (Rational(4, 3) - Rational(1, 3 * workers)) <
                  longest_first.makespan);
    seen.count("longest first is not the optimum", placed.makespan < longest_first.makespan);
    seen.count("three branches, two workers", branches == 3 && workers == 2);
    seen.count("more workers than branches", workers > branches);
    if (branches == 3 && workers == 2) REQUIRE(longest_first.makespan == placed.makespan);
    if (c % 10 == 0) test::schedule_battery(placed.schedule);
  }
  CHECK(seen.rarer_than(4).empty());
}

TEST_CASE("no order and no workers are better in any graph") {
  std::mt19937_64 random(23);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  test::Coverage seen("graphs");
  for (std::uint64_t c = 0; c < test::cases(150, 15'000); ++c) {
    StageGraph graph{2 + below(7)};
    BranchTimes costs;
    for (int s = 0; s < graph.stages; ++s) {
      costs.times.emplace_back(below(10), 3);
      for (int from = 0; from < s; ++from)
        if (below(4) == 0) graph.edges.push_back({Stage{from}, Stage{s}});
    }
    const int workers = 2 + below(2);
    const auto branches = plan::impl::branches_of(graph);
    if (branches.size() > 6) continue;
    std::vector<Rational> times;
    std::vector<std::vector<std::size_t>> inputs;
    for (const auto& branch : branches) {
      times.emplace_back();
      for (const Stage stage : branch.stages) times.back() = times.back() + costs.times[+stage];
      inputs.push_back(branch.inputs);
    }
    const auto placed = plan::place_branches(graph, costs, {.workers = workers});
    INFO("case " << c << ": " << to_string(placed.orders));
    REQUIRE(placed.optimal);
    REQUIRE(placed.makespan == test::least_makespan(times, inputs, workers));
    const auto first = plan::place_branches(graph, costs, {.workers = workers, .steps = 0});
    seen.count("longest first is not the optimum", placed.makespan < first.makespan);
    seen.count("branches of several stages",
               branches.size() < static_cast<std::size_t>(graph.stages));
    seen.count("five or six branches", branches.size() >= 5);
    // A few steps give an answer between both.
    const auto some = plan::place_branches(graph, costs, {.workers = workers, .steps = 20});
    REQUIRE_FALSE(first.makespan < some.makespan);
    REQUIRE_FALSE(some.makespan < placed.makespan);
    if (some.optimal) REQUIRE(some.makespan == placed.makespan);
  }
  CHECK(seen.rarer_than(4).empty());
}

TEST_CASE("messages carry the outputs at fusions, and the fusion stands where the largest is") {
  std::mt19937_64 random(22);
  for (std::uint64_t c = 0; c < test::cases(50, 5'000); ++c) {
    const int branches = 2 + static_cast<int>(random() % 3);
    ForkedStages stages({.branches = branches, .stem = 0, .most_stages = 3}, random);
    std::vector<Bytes> outputs;
    for (int s = 0; s < stages.graph.stages; ++s) outputs.push_back(8 * (1 + random() % 100));
    const auto placed = plan::place_branches(stages.graph, BranchTimes{stages.times},
                                             {.workers = branches, .outputs = outputs});
    Bytes all = 0, largest = 0;
    for (const auto& branch : stages.branches) {
      all += outputs[+branch.back()];
      largest = std::max(largest, outputs[+branch.back()]);
    }
    INFO("case " << c);
    // With a worker for each branch, the fastest placement need not have one, if two branches
    // together are not longer than the longest. Then fewer outputs travel.
    Bytes here = 0;
    const auto& list_of_fusion = *std::ranges::find_if(placed.orders.ranks, [&](const auto& list) {
      return std::ranges::any_of(list, [&](const Order& o) { return o.stage == stages.fusion(); });
    });
    for (const Order& order : list_of_fusion)
      for (const auto& branch : stages.branches)
        if (order.stage == branch.back()) here += outputs[+order.stage];
    CHECK(moved(placed.schedule) == all - here);
    CHECK(here >= largest);
  }
}

TEST_CASE("branches on one chain of workers are found by hand") {
  // Two streams behind two steps of a stem, of which the second feeds the second stream alone:
  // 0 -> 1 -> 2 -> 3, 0 -> 4 -> 5, and 3, 5 -> 6.
  const StageGraph graph{7,
                         {{Stage{0}, Stage{1}},
                          {Stage{1}, Stage{2}},
                          {Stage{2}, Stage{3}},
                          {Stage{0}, Stage{4}},
                          {Stage{4}, Stage{5}},
                          {Stage{3}, Stage{6}},
                          {Stage{5}, Stage{6}}}};
  const BranchTimes costs{{1, 1, 1, 1, 2, 2, 1}};
  const auto placed = plan::place_branches(graph, costs, {.workers = 2});
  // Stage 0, the longer branch 4, 5 and the fusion on one worker; 1, 2, 3 on the other.
  CHECK(to_string(placed.orders) == "0F0,4F0,5F0,6F0\n1F0,2F0,3F0\n");
  CHECK(placed.makespan == Rational(6));
  // 5 workers: what is not needed stays empty.
  const auto many = plan::place_branches(graph, costs, {.workers = 5});
  CHECK(many.makespan == Rational(6));
  test::schedule_battery(many.schedule);
  CHECK(plan::place_branches(graph, costs, {.workers = 1}).makespan == Rational(9));
}

TEST_CASE("what cannot be placed is rejected") {
  const StageGraph chain = StageGraph::chain(3);
  const BranchTimes costs{{1, 1, 1}};
  const auto complaint = [&](const StageGraph& graph, const plan::BranchOptions& options) {
    return test::message_of<contract_error>(
        [&] { (void)plan::place_branches(graph, costs, options); });
  };
  CHECK_THAT(complaint(chain, {.workers = 0}), ContainsSubstring("workers = 0"));
  CHECK_THAT(complaint({}, {.workers = 2}), ContainsSubstring("stages = 0"));
  CHECK_THAT(complaint(chain, {.workers = 2, .outputs = {8, 8}}),
             ContainsSubstring("2 sizes for 3 stages"));
  CHECK_THAT(
      test::message_of<contract_error>([] {
        (void)heddle::impl::with_output_sizes(
            weave({"", {{{Kind::forward, 0, 0}, {Kind::forward, 1, 0}}}, StageGraph::chain(2)}),
            {});
      }),
      ContainsSubstring("stage 0 has an output, and there are 0 sizes"));
  const StageGraph cycle{3, {{Stage{0}, Stage{1}}, {Stage{1}, Stage{2}}, {Stage{2}, Stage{1}}}};
  CHECK_THAT(complaint(cycle, {.workers = 2}), ContainsSubstring("cycle"));
}

}  // namespace test_place_branches
