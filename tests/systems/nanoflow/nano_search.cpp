// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The search of nano-batches against all plans, and the layer of NanoFlow: pieces alone lose,
// overlapped pieces gain.
// optimised: yes

#include <cstdint>
#include <iostream>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/nanoflow/nano_batches.hpp>
#include <heddle/systems/nanoflow/nano_search.hpp>

#include "support/all_nano_plans.hpp"
#include "support/serving_layer.hpp"

namespace test_nano_search {

using namespace heddle;
using systems::NanoLayer;
using systems::NanoPlan;

namespace {

Seconds makespan(const NanoLayer& layer, const NanoPlan& plan) {
  return simulate(systems::nano_schedule(layer, plan), systems::InterferenceCosts(layer))
      .makespan();
}

}  // namespace

TEST_CASE("the search is within 2% of all plans, for 2 and 3 pieces of 5 operations") {
  const NanoLayer layer = test::serving_layer();
  for (const auto& [division, units] :
       {std::pair<std::vector<std::int64_t>, std::vector<std::vector<int>>>{
            {640, 1408}, {{6, 7, 8, 10}, {2, 4, 10}, {2, 3, 4, 10}}},
        {{1024, 1024}, {{6, 8, 10}, {4, 6, 10}, {2, 4, 10}}},
        {{640, 704, 704}, {{8, 10}, {4, 10}, {2, 10}}},
        {{256, 768, 1024}, {{6, 10}, {4, 10}, {4, 10}}}}) {
    const auto found = systems::search_nano_plan(layer, {.divisions = {division}, .units = units});
    const test::AllNanoPlans all(layer, division, units, found.makespan);
    std::cout << division.size() << " pieces, first " << division[0] << ": all " << all.simulated
              << " plans " << all.best * 1e3 << " ms, search " << found.simulated << " plans "
              << found.makespan * 1e3 << " ms\n";
    CHECK(all.simulated > 100);
    CHECK(found.makespan <= 1.02 * all.best);
    CHECK(found.makespan == makespan(layer, found.plan));
  }
}

TEST_CASE("pieces of the serving layer lose alone and gain at least 1.07 overlapped") {
  const NanoLayer layer = test::serving_layer();
  const Seconds serial = makespan(layer, systems::serial_nano_plan(layer, {2048}));
  for (const std::vector<std::int64_t>& division :
       {std::vector<std::int64_t>{640, 1408}, {1024, 1024}, {640, 704, 704}}) {
    const double alone = serial / makespan(layer, systems::serial_nano_plan(layer, division));
    const auto found = systems::search_nano_plan(layer, {.divisions = {division}});
    std::cout << division.size() << " pieces, first " << division[0] << ": alone " << alone
              << ", overlapped " << serial / found.makespan << " of serial\n";
    CHECK(alone < 1);
    CHECK(serial / found.makespan >= 1.07);
  }
}

TEST_CASE("the search keeps a layer whole if pieces do not help, and repeats itself") {
  NanoLayer layer = test::serving_layer();
  for (systems::NanoOperation& operation : layer.operations) operation.resource = test::compute;
  const auto whole = systems::search_nano_plan(layer, {.divisions = {{1024, 1024}}});
  CHECK(whole.plan.pieces.stages[0].size() == 1);
  const NanoLayer mixed = test::serving_layer();
  const auto first = systems::search_nano_plan(mixed, {.divisions = {{640, 1408}}, .seed = 3});
  const auto again = systems::search_nano_plan(mixed, {.divisions = {{640, 1408}}, .seed = 3});
  CHECK(first.plan.order == again.plan.order);
  CHECK(first.simulated == again.simulated);
}

}  // namespace test_nano_search
