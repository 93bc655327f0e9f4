// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The generators, and coordinate() for given costs, against the zero-bubble authors' generators in
// the authors' memory, rank by rank.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/plan/solver/coordinate.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/authors_steps.hpp"
#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_authors_steps {

using namespace heddle;
using Costs = BasicStageCosts<std::int64_t>;
using Live = std::vector<std::int64_t>;

namespace {

/// An order of the authors.
struct Record {
  std::string schedule;
  int ranks = 0, microbatches = 0;
  std::size_t costs = 0;
  std::int64_t step = 0;
  Live live = {};

  [[nodiscard]] Orders orders() const {
    return schedule::find_schedule(schedule).orders(
        {.ranks = ranks, .microbatches = microbatches, .stages_per_rank = 2});
  }
  [[nodiscard]] Costs prices() const {
    const auto& [f, i, w, latency] = test::authors_costs[costs];
    return {.forward = f,
            .backward_input = i,
            .backward_weight = w,
            .backward = i + w,
            .latency = latency};
  }
};

std::vector<Record> records() {
  std::vector<Record> all;
  for (const auto& [name, text] : test::authors_steps) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines >> std::ws, line, ';');) {
      std::istringstream words(line);
      Record record{.schedule = name};
      words >> record.ranks >> record.microbatches >> record.costs >> record.step;
      for (std::string live; words >> live;) {
        const std::size_t times = live.find('x');
        record.live.insert(record.live.end(),
                           times == std::string::npos ? 1 : std::stoul(live.substr(times + 1)),
                           std::stoll(live));
      }
      REQUIRE(record.live.size() == static_cast<std::size_t>(record.ranks));
      all.push_back(std::move(record));
    }
  }
  return all;
}

bool within(const Live& live, const Live& caps) {
  return std::ranges::equal(live, caps, std::ranges::less_equal());
}

std::int64_t step(const Orders& orders, const Costs& costs) {
  return simulate(weave(orders), costs).makespan();
}

}  // namespace

TEST_CASE("coordinate() is no longer than the zero-bubble authors, and no rank keeps more") {
  const std::vector<Record> all = records();
  CHECK(all.size() == 840);
  std::map<std::string, int> needed;  // by schedule: the generator alone does not reach the authors
  int searched = 0, longer = 0, shorter = 0;
  const auto stride = 84 / std::min<std::size_t>(84, test::cases(14, 84));
  for (const Record& each : all) {
    const Orders orders = each.orders();
    const Costs costs = each.prices();
    if (step(orders, costs) <= each.step && within(schedule::live_activations(orders), each.live))
      continue;
    if (static_cast<std::size_t>(needed[each.schedule]++) % stride != 0) continue;
    const auto found =
        plan::coordinate(orders, costs, {.rules = {}, .swaps = 5'000, .caps = each.live});
    INFO(orders.name << ", costs " << each.costs << ": " << found.makespan << " against "
                     << each.step << ", " << found.rule);
    CHECK(found.makespan <= each.step);
    CHECK(found.extra == 0);
    CHECK(within(schedule::live_activations(found.orders), each.live));
    CHECK(found.makespan == step(found.orders, costs));
    CHECK(found.bound <= found.makespan);
    ++searched;
    longer += found.makespan > each.step;
    shorter += found.makespan < each.step;
  }
  std::cout << "zero-bubble authors: " << all.size() << " orders; ";
  for (const auto& [name, count] : needed) std::cout << name << ' ' << count << ", ";
  std::cout << "not reached by the generator; of these " << searched << " searched, " << longer
            << " longer, " << shorter << " shorter\n";
  CHECK(needed.size() >= 3);
  CHECK(searched >= 5);
}

TEST_CASE("for given costs, orders get shorter in the memory of every rank") {
  const Costs costs{.forward = 10, .backward_input = 14, .backward_weight = 10, .latency = 1};
  for (const std::string_view name : {"zb-v", "v-min", "zb-h1"}) {
    const Orders orders =
        schedule::find_schedule(name).orders({.ranks = 4, .microbatches = 6, .stages_per_rank = 2});
    const Live live = schedule::live_activations(orders);
    const auto found = plan::coordinate(orders, costs, {.rules = {}, .swaps = 2'000, .caps = live});
    INFO(orders.name << ": " << found.rule);
    CHECK(found.makespan <= step(orders, costs));
    CHECK(within(schedule::live_activations(found.orders), live));
    CHECK(found.extra == 0);
  }
  // Caps that differ: the first rank may keep no more than one microbatch.
  const auto uneven = plan::coordinate(schedule::zb_h1(3, 4), costs, {.caps = {1, 2, 3}});
  CHECK(within(schedule::live_activations(uneven.orders), {1, 2, 3}));
  CHECK(uneven.extra == 0);
  // With the caps of the first rank alone, every microbatch goes alone through it.
  CHECK(uneven.makespan >= 4 * (10 + 14 + 10));
  // A microbatch of a V keeps two activations on each rank: the caps are raised until it fits.
  const auto raised = plan::coordinate(schedule::zb_v(2, 2), costs, {.caps = {1, 2}});
  CHECK(raised.extra >= 1);
}

TEST_CASE("equal caps of the ranks are a cap") {
  const Costs costs{.forward = 3, .backward_input = 4, .backward_weight = 2, .latency = 1};
  const Orders orders = schedule::zb_h1(3, 4);
  for (const std::int64_t cap : {1, 2, 3}) {
    const auto one =
        plan::coordinate(orders, costs, {.cap = cap, .swaps = 500, .branches = 100'000});
    const auto each =
        plan::coordinate(orders, costs, {.swaps = 500, .branches = 100'000, .caps = Live(3, cap)});
    CHECK(one.orders.ranks == each.orders.ranks);
    CHECK(one.makespan == each.makespan);
    CHECK(one.bound == each.bound);
  }
}

TEST_CASE("caps are one for each rank, and stand alone") {
  const Orders orders = schedule::zb_h1(2, 2);
  const StageCosts costs{.forward = 1, .backward_input = 1, .backward_weight = 1};
  const auto complaint = [&](plan::CoordinateOptions options) {
    return test::message_of<contract_error>(
        [&] { (void)plan::coordinate(orders, costs, options); });
  };
  CHECK(complaint({.caps = {1}}).find("expected one cap for each of 2 ranks, and cap = 0") !=
        std::string::npos);
  CHECK(complaint({.cap = 1, .caps = {1, 1}}).find("got 2 caps and cap = 1") != std::string::npos);
  CHECK(complaint({.caps = {1, -1}}).find("must be at least 0") != std::string::npos);
}

}  // namespace test_authors_steps
