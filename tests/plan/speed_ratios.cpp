// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/plan.hpp>

#include "support/complaint.hpp"
#include "support/simulated_workers.hpp"

namespace test_speed_ratios {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;
using hd::test::run_round;
using hd::test::SimulatedWorkers;

namespace {

using Ranges = std::vector<hd::plan::ItemRange>;
using Times = std::vector<hd::Seconds>;

/// Ratios learned exactly: the speeds, after rounds enough for the smoothing to fade.
hd::plan::SpeedRatios learned(const std::vector<double>& speeds, std::int64_t tile = 1) {
  hd::plan::SpeedRatios ratios(static_cast<int>(speeds.size()), tile);
  SimulatedWorkers workers(speeds, 0, 0);
  for (int round = 0; round < 60; ++round) run_round(ratios, workers, 1'000'000);
  return ratios;
}

/// Every item of [0, items) is in exactly one range, and ranges begin at whole tiles.
void check_division(const Ranges& ranges, std::int64_t items, std::int64_t tile) {
  std::int64_t next = 0;
  for (const hd::plan::ItemRange& range : ranges) {
    CHECK(range.first == next);
    CHECK(range.last >= range.first);
    CHECK((range.first % tile == 0 || range.first == items));
    next = range.last;
  }
  CHECK(next == items);
}

/// The time that the counts of tiles `counts` take by `ratios`.
double time_of(const std::vector<std::int64_t>& counts, const std::vector<double>& ratios) {
  double longest = 0;
  for (std::size_t w = 0; w < counts.size(); ++w)
    longest = std::max(longest, static_cast<double>(counts[w]) / ratios[w]);
  return longest;
}

/// The least such time of all divisions of `tiles` where each worker has `least` at least.
double best_time(std::int64_t tiles, std::int64_t least, const std::vector<double>& ratios,
                 std::vector<std::int64_t> counts = {}) {
  if (counts.size() + 1 == ratios.size()) {
    if (tiles < least) return std::numeric_limits<double>::infinity();
    counts.push_back(tiles);
    return time_of(counts, ratios);
  }
  double best = std::numeric_limits<double>::infinity();
  for (std::int64_t count = least; count <= tiles; ++count) {
    counts.push_back(count);
    best = std::min(best, best_time(tiles - count, least, ratios, counts));
    counts.pop_back();
  }
  return best;
}

}  // namespace

TEST_CASE("a range is divided without losing or doubling an item") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const auto& speeds :
       {std::vector<double>{1}, {3, 1}, {1, 2, 5}, {1, 1e-7, 1, 4, 0.3, 2, 1}}) {
    for (const std::int64_t tile : {1, 4, 7, 64}) {
      const hd::plan::SpeedRatios ratios = learned(speeds, tile);
      for (const std::int64_t items :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{6},
            std::int64_t{7}, std::int64_t{8}, std::int64_t{63}, std::int64_t{97},
            std::int64_t{10'007}, std::int64_t{1} << 33, most - 1, most})
        check_division(ratios.split(items), items, tile);
    }
  }
}

TEST_CASE("no division into tiles ends sooner by the ratios, each worker having one if it can") {
  for (const auto& speeds : {std::vector<double>{3, 1}, {1, 10}, {1, 2, 5}, {5, 1, 1}}) {
    const hd::plan::SpeedRatios ratios = learned(speeds);
    const auto workers = static_cast<std::int64_t>(speeds.size());
    for (std::int64_t items = 0; items <= 23; ++items) {
      std::vector<std::int64_t> counts;
      for (const hd::plan::ItemRange& range : ratios.split(items)) counts.push_back(range.size());
      const std::int64_t least = items >= workers ? 1 : 0;
      CHECK(*std::min_element(counts.begin(), counts.end()) >= least);
      // Equal up to the rounding of one division.
      CHECK(time_of(counts, ratios.values()) <=
            best_time(items, least, ratios.values()) * (1 + 1e-15));
    }
  }
}

TEST_CASE("workers of unknown speed share equally, and the first have the remainder") {
  CHECK(hd::plan::SpeedRatios(3).split(11) == Ranges{{0, 4}, {4, 8}, {8, 11}});
  CHECK(hd::plan::SpeedRatios(3).split(2) == Ranges{{0, 1}, {1, 2}, {2, 2}});
  CHECK(hd::plan::SpeedRatios(2, 8).split(20) == Ranges{{0, 16}, {16, 20}});
}

TEST_CASE("where there are fewer tiles than workers, the slow ones have none") {
  CHECK(learned({1, 5, 3}).split(1) == Ranges{{0, 0}, {0, 1}, {1, 1}});
  CHECK(learned({1, 5, 2}).split(2) == Ranges{{0, 0}, {0, 2}, {2, 2}});  // 2/5 is less than 1/2
  CHECK(learned({1, 5, 4}).split(2) == Ranges{{0, 0}, {0, 1}, {1, 2}});
}

TEST_CASE("ratios are smoothed as published: the efficiencies of 3:1 from 1:1") {
  hd::plan::SpeedRatios ratios(2);
  SimulatedWorkers workers({3, 1}, 0, 0);
  // The ratio is 1, 2.4, 2.82, 2.946, 2.9838; the slow worker's part is 1 / (1 + ratio), and 1/4 of
  // the time would do.
  for (const double ratio : {1.0, 2.4, 2.82, 2.946, 2.9838}) {
    const double efficiency = workers.efficiency(run_round(ratios, workers, 100'000'000));
    // Whole items: 1e-8 of the range, at most four times that in the efficiency.
    CHECK(std::abs(efficiency - 0.25 * (1 + ratio)) < 1e-7);
  }
  CHECK(std::abs(ratios.values()[0] + ratios.values()[1] - 1) < 1e-15);
}

TEST_CASE("workers at 3:1 with 5 % noise, and a change of their speeds") {
  constexpr int runs = 500;
  for (const auto& speeds : {std::vector<double>{3, 1}, {1, 3}, {1, 1, 3, 3}, {3, 3, 3, 1}}) {
    hd::test::SimulatedRun mean, least{1, 1, 1, 1};
    for (std::uint64_t seed = 0; seed < runs; ++seed) {
      const auto run = hd::test::simulate_run(speeds, 0.05, seed);
      mean.after_three += run.after_three / runs;
      mean.recovered += run.recovered / runs;
      mean.gain += run.gain / runs;
      least.least_after = std::min(least.least_after, run.least_after);
      least.recovered = std::min(least.recovered, run.recovered);
    }
    CHECK(mean.after_three >= 0.95);
    CHECK(least.least_after >= 0.90);
    CHECK(mean.recovered >= 0.95);
    CHECK(least.recovered >= 0.90);
    // What an equal division loses is the mean speed over the least.
    const double bound =
        std::accumulate(speeds.begin(), speeds.end(), 0.0) / static_cast<double>(speeds.size());
    CHECK(mean.gain >= 0.95 * bound);
    CHECK(mean.gain <= bound);
  }
}

TEST_CASE("a worker that stood still comes back") {
  hd::plan::SpeedRatios ratios(2, 16);
  SimulatedWorkers workers({1, 1e-12}, 0, 0);
  for (int round = 0; round < 40; ++round) run_round(ratios, workers, 16'000);
  CHECK(ratios.split(16'000) == Ranges{{0, 15'984}, {15'984, 16'000}});
  workers.become({1, 1});
  for (int round = 0; round < 4; ++round) run_round(ratios, workers, 16'000);
  CHECK(workers.efficiency(ratios.split(16'000)) >= 0.95);
}

TEST_CASE("who had no items keeps its ratio, and the others share theirs anew") {
  hd::plan::SpeedRatios ratios(3);
  // Twice as fast as worker 1, so 0.7 * 2 + 0.3 * 1 = 1.7 to 1 of the two thirds that they had.
  ratios.observe(Ranges{{0, 10}, {10, 20}, {20, 20}}, Times{1, 2, 0});
  CHECK(std::abs(ratios.values()[0] - 2.0 / 3 * 1.7 / 2.7) < 1e-15);
  CHECK(std::abs(ratios.values()[1] - 2.0 / 3 * 1.0 / 2.7) < 1e-15);
  CHECK(ratios.values()[2] == 1.0 / 3);
  const auto before = ratios.values();
  ratios.observe(Ranges{{0, 0}, {0, 0}, {0, 0}}, Times{0, -1, 0});  // nothing was measured
  CHECK(ratios.values() == before);
}

TEST_CASE("absurd but possible times leave ratios that divide") {
  hd::plan::SpeedRatios ratios(2);
  for (const double fast : {1e-300, 1e-9, 1e250})
    for (int round = 0; round < 5; ++round)
      ratios.observe(Ranges{{0, 5}, {5, 10}}, round % 2 == 0 ? Times{fast, 1} : Times{1, fast});
  check_division(ratios.split(1'000'003), 1'000'003, 1);
  CHECK(std::abs(ratios.values()[0] + ratios.values()[1] - 1) < 1e-12);
}

TEST_CASE("what is no measurement is refused, and nothing is learned from it") {
  CHECK_THAT(message_of<hd::contract_error>([] { hd::plan::SpeedRatios ratios(0); }),
             ContainsSubstring("at least one worker") && ContainsSubstring("workers = 0"));
  CHECK_THAT(message_of<hd::contract_error>([] { hd::plan::SpeedRatios ratios(1, 0); }),
             ContainsSubstring("one item per tile") && ContainsSubstring("tile = 0"));
  hd::plan::SpeedRatios ratios(2);
  CHECK_THAT(message_of<hd::contract_error>([&] { (void)ratios.split(-1); }),
             ContainsSubstring("the number of items must be at least 0") &&
                 ContainsSubstring("items = -1"));

  const Ranges ranges{{0, 5}, {5, 10}};
  constexpr double infinite = std::numeric_limits<double>::infinity();
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {0.0, -1.0, none, infinite, -infinite, 1e-320})
    CHECK_THAT(message_of<hd::contract_error>([&] {
                 ratios.observe(ranges, Times{1, bad});
               }),
               ContainsSubstring("times must be positive and finite") &&
                   ContainsSubstring("worker 1 took") && ContainsSubstring("for 5 items"));
  CHECK_THAT(message_of<hd::contract_error>([&] {
               ratios.observe(Ranges{{0, 5}, {5, 4}}, Times{1, 1});
             }),
             ContainsSubstring("ranges must not end before they begin"));
  CHECK_THAT(message_of<hd::contract_error>([&] { ratios.observe(ranges, Times{1}); }),
             ContainsSubstring("2 ranges and 1 times for 2 workers"));
  CHECK(ratios.values() == std::vector<double>{0.5, 0.5});
}

TEST_CASE("too many workers, and an object that was moved from, are refused") {
  for (const int workers : {(1 << 22) + 1, std::numeric_limits<int>::max()})
    CHECK_THAT(message_of<hd::contract_error>([&] { hd::plan::SpeedRatios ratios(workers); }),
               ContainsSubstring("workers = " + std::to_string(workers)) &&
                   ContainsSubstring("use 1 to 4194304 workers"));
  CHECK(hd::plan::SpeedRatios(1 << 22).values().size() == 1 << 22);

  hd::plan::SpeedRatios from(2), to(std::move(from));
  CHECK(to.split(2).size() == 2);
  CHECK_THAT(message_of<hd::contract_error>([&] { (void)from.split(2); }),
             ContainsSubstring("moved from"));
  CHECK_THAT(message_of<hd::contract_error>([&] { from.observe(Ranges{}, Times{}); }),
             ContainsSubstring("moved from"));
  from = to;
  CHECK(from.split(2).size() == 2);
}

}  // namespace test_speed_ratios
