// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace/grid.hpp>

#include "support/moves_only.hpp"

namespace test_grid {

using namespace heddle;

TEST_CASE("the slot grid of small schedules is exact") {
  CHECK(to_grid(schedule::one_f_one_b({.ranks = 2, .microbatches = 3})) ==
        "1F1B P=2 M=3: 2 ranks, 20 actions\n"
        "rank 0  0F0 0F1 .   0B0 0F2 0B1 .   0B2\n"
        "rank 1  .   1F0 1B0 1F1 1B1 1F2 1B2 .\n"
        "8 slots, 4 of 16 cells idle\n");
  CHECK(to_grid(schedule::gpipe({.ranks = 3, .microbatches = 2})) ==
        "GPipe P=3 M=2: 3 ranks, 23 actions\n"
        "rank 0  0F0 0F1 .   .   .   .   0B0 0B1\n"
        "rank 1  .   1F0 1F1 .   .   1B0 1B1 .\n"
        "rank 2  .   .   2F0 2F1 2B0 2B1 .   .\n"
        "8 slots, 12 of 24 cells idle\n");
  CHECK(to_grid(schedule::one_f_one_b({.ranks = 1, .microbatches = 1})) ==
        "1F1B P=1 M=1: 1 rank, 3 actions\n"
        "rank 0  0F0 0B0\n"
        "2 slots, 0 of 2 cells idle\n");
}

TEST_CASE("the cells of the slot grid are of equal width and the ranks right-aligned") {
  const std::string grid = to_grid(schedule::one_f_one_b({.ranks = 11, .microbatches = 12}));
  CHECK(grid.find("\nrank  0  0F0   0F1   0F2 ") != std::string::npos);
  CHECK(grid.find("\nrank 10  .     .     .  ") != std::string::npos);
  CHECK(grid.find("10F11 10B11") != std::string::npos);
  // (M + P - 1) slots for F and as many for B; each rank works 2 M of them.
  CHECK(grid.find("\n44 slots, 220 of 484 cells idle\n") != std::string::npos);
}

TEST_CASE("the slot grid of hundreds of slots has them all") {
  const std::string grid = to_grid(schedule::stream({.ranks = 1, .microbatches = 501}));
  CHECK(grid.find(" 0F500\n501 slots, 0 of 501 cells idle\n") != std::string::npos);
}

TEST_CASE("a rank that computes in two lanes has two rows") {
  Builder builder("lanes", 2);
  builder.add({.kind = Kind::forward, .queue = builder.local(Rank{1}, Lane{3}), .stage = Stage{5}},
              {});
  builder.add({.kind = Kind::backward_weight, .queue = builder.local(Rank{1}), .stage = Stage{5}},
              {});
  CHECK(to_grid(std::move(builder).build()) ==
        "lanes: 2 ranks, 2 actions\n"
        "rank 0         .\n"
        "rank 1         5W0\n"
        "rank 1 lane 3  5F0\n"
        "1 slot, 1 of 3 cells idle\n");
}

TEST_CASE("the slot grid of nothing, and of nothing computed, is empty") {
  CHECK(to_grid(Schedule{}) == "schedule: 0 ranks, 0 actions\n0 slots, 0 of 0 cells idle\n");
  CHECK(to_grid(Builder("none", 2).build()) ==
        "none: 2 ranks, 0 actions\nrank 0\nrank 1\n0 slots, 0 of 0 cells idle\n");
  CHECK(to_grid(test::moves_only(3, 8)) ==
        "moves only: 2 ranks, 3 actions\nrank 0\nrank 1\n0 slots, 0 of 0 cells idle\n");
}

TEST_CASE("the slot grid is cut into bands where it is too wide") {
  const auto schedule = schedule::one_f_one_b({.ranks = 2, .microbatches = 2});
  CHECK(to_grid(schedule, 24) == to_grid(schedule));
  const std::string bands =
      "1F1B P=2 M=2: 2 ranks, 14 actions\n"
      "rank 0  0F0 0F1 .   0B0\n"
      "rank 1  .   1F0 1B0 1F1\n"
      "        slots 0 to 3\n"
      "rank 0  .   0B1\n"
      "rank 1  1B1 .\n"
      "        slots 4 to 5\n"
      "6 slots, 4 of 12 cells idle\n";
  CHECK(to_grid(schedule, 16) == bands);
  CHECK(to_grid(schedule, 19) == bands);
  // Never less than a slot.
  CHECK(to_grid(schedule, 1).find("        slots 5 to 5\n") != std::string::npos);
  CHECK_THROWS_AS(to_grid(schedule, -1), contract_error);
}

TEST_CASE("the time grid is to scale") {
  const auto schedule = schedule::one_f_one_b({.ranks = 2, .microbatches = 2});
  const Timeline timeline = simulate(schedule, {.forward = 1, .backward = 2});
  CHECK(to_grid(timeline, 18) ==
        "1F1B P=2 M=2: makespan 9 s, bubble ratio 33.3%\n"
        "rank 0  F0F1....B0--..B1--\n"
        "rank 1  ..F0B0--F1B1--....\n"
        "        0 s            9 s\n");
  // No room for numbers, and cells that two actions share.
  // A name needs two columns: of 9, two bands would cut one in two.
  CHECK(to_grid(timeline, 9) ==
        "1F1B P=2 M=2: makespan 9 s, bubble ratio 33.3%\n"
        "rank 0  F0F1..\n"
        "rank 1  ..F0B0\n"
        "        0 s 3 s\n"
        "rank 0  ..B0--\n"
        "rank 1  B0F1B1\n"
        "        3 s 6 s\n"
        "rank 0  ..B1--\n"
        "rank 1  B1....\n"
        "        6 s 9 s\n");
  CHECK(to_grid(timeline, 1) ==
        "1F1B P=2 M=2: makespan 9 s, bubble ratio 33.3%\n"
        "rank 0  B\n"
        "rank 1  B\n"
        "        0 s 9 s\n"
        "names are shortened: 18 columns have room for them\n");
}

TEST_CASE("the time grid shows updates, other kinds and small units") {
  Builder builder("kinds", 1);
  const QueueId queue = builder.local(Rank{0});
  std::vector<Span> spans;
  // An I, a W, an update, a user action, a group: 2 us each, the last ones after a pause.
  for (const Kind kind :
       {Kind::backward_input, Kind::backward_weight, Kind::update, Kind::user, Kind::group}) {
    builder.add({.kind = kind, .queue = queue, .item = Item{7}}, {});
    const Seconds start =
        5 + (2e-6 * static_cast<double>(spans.size())) + (kind == Kind::group ? 2e-6 : 0);
    spans.push_back({start, start + 2e-6, start + 2e-6});
  }
  const Timeline timeline(std::move(builder).build(), spans);
  CHECK(to_grid(timeline, 24) ==
        "kinds: makespan 12 us, bubble ratio 33.3%\n"
        "rank 0  I7--W7--u---x7--....g7--\n"
        "        0 us               12 us\n");
}

TEST_CASE("the time grid shows a group on every rank that it takes place on") {
  Builder builder("group", 3);
  builder.label("data");
  std::vector<Use> uses;
  for (const int rank : {0, 2})
    uses.push_back(schedule::write(builder.add_buffer({.rank = Rank{rank}})));
  builder.add({.kind = Kind::group, .queue = builder.local(Rank{0})}, uses);
  const std::string grid = to_grid(simulate(std::move(builder).build(), {.group = 1}), 4);
  CHECK(grid.find("\nrank 0  g0--\nrank 1  ....\nrank 2  g0--\n") != std::string::npos);
}

TEST_CASE("a rank's several stages are named in the time grid, which has bands for them") {
  const Timeline small = simulate(weave(schedule::zb_v(2, 2, true)),
                                  {.forward = 1, .backward_input = 1, .backward_weight = 1});
  CHECK(to_grid(small, 56) ==
        "ZB-V P=2 M=2: makespan 14 s, bubble ratio 14.3%\n"
        "rank 0  0F0-0F1-....3F0-3I0-3W0-3F1-3I1-3W1-0I0-0W0-....0I1-0W1-\n"
        "rank 1  ....1F0-2F0-1F1-2F1-2I0-2W0-1I0-1W0-2I1-2W1-1I1-1W1-....\n"
        "        0 s                                                 14 s\n");
  // Without its stage a name would be another one's: a letter is left.
  const std::string narrow = to_grid(small, 5);
  CHECK(narrow.find("rank 0  F") != std::string::npos);
  CHECK(narrow.find("F0") == std::string::npos);
  CHECK(narrow.find("names are shortened: 56 columns have room for them\n") != std::string::npos);
  // ZB-V of 4 ranks and 8 microbatches: each of 51 slots is a name and a blank wide.
  const Timeline timeline =
      simulate(schedule::zb_v({.ranks = 4, .microbatches = 8}),
               {.forward = 0.5, .backward_input = 0.5, .backward_weight = 0.5});
  const std::string grid = to_grid(timeline);
  std::size_t names = 0;
  for (int stage = 0; stage < 8; ++stage)
    for (int item = 0; item < 8; ++item)
      for (const char kind : {'F', 'I', 'W'})
        names += grid.find(text(stage, kind, item, '-')) != std::string::npos;
  CHECK(names == 8 * 8 * 3);
  std::istringstream lines(grid);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100 + 8);
  CHECK(std::count(grid.begin(), grid.end(), '\n') == 1 + 3 * 5);
}

TEST_CASE("times of the time grid are in the unit that is given, or in none") {
  const auto schedule = schedule::one_f_one_b({.ranks = 2, .microbatches = 2});
  const Timeline timeline = simulate(schedule, {.forward = 1, .backward = 2});
  CHECK(to_grid(timeline, 18, "F") ==
        "1F1B P=2 M=2: makespan 9 F, bubble ratio 33.3%\n"
        "rank 0  F0F1....B0--..B1--\n"
        "rank 1  ..F0B0--F1B1--....\n"
        "        0 F            9 F\n");
  CHECK(to_grid(timeline, 18, "").find("makespan 9, bubble") != std::string::npos);
}

TEST_CASE("the time grid of nothing is idle") {
  CHECK(to_grid(Timeline{}, 10) == "timeline: makespan 0 s, bubble ratio 0%\n        0 s    0 s\n");
  const auto schedule = schedule::one_f_one_b({.ranks = 2, .microbatches = 1});
  CHECK(to_grid(simulate(schedule, {}), 5) ==
        "1F1B P=2 M=1: makespan 0 s, bubble ratio 0%\n"
        "rank 0  .....\nrank 1  .....\n        0 s 0 s\n");
}

TEST_CASE("the time grid refuses what it cannot draw") {
  const auto schedule = schedule::one_f_one_b({.ranks = 1, .microbatches = 1});
  Timeline timeline = simulate(schedule, {.forward = 1, .backward = 2});
  CHECK_THROWS_AS(to_grid(timeline, 0), contract_error);
  timeline.spans()[1].end = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(to_grid(timeline), contract_error);
  CHECK_THROWS_AS(to_grid(Timeline(schedule, {})), contract_error);
}

}  // namespace test_grid
