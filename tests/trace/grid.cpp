// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace/grid.hpp>

#include "support/moves_only.hpp"

namespace test_grid {

using namespace heddle;

TEST_CASE("the slot grid of small schedules is exact") {
  CHECK(to_grid(schedule::one_f_one_b({.stages = 2, .microbatches = 3})) ==
        "1F1B P=2 M=3: 2 ranks, 20 actions\n"
        "rank 0  0F0 0F1 .   0B0 0F2 0B1 .   0B2\n"
        "rank 1  .   1F0 1B0 1F1 1B1 1F2 1B2 .\n"
        "8 slots, 4 of 16 cells idle\n");
  CHECK(to_grid(schedule::gpipe({.stages = 3, .microbatches = 2})) ==
        "GPipe P=3 M=2: 3 ranks, 23 actions\n"
        "rank 0  0F0 0F1 .   .   .   .   0B0 0B1\n"
        "rank 1  .   1F0 1F1 .   .   1B0 1B1 .\n"
        "rank 2  .   .   2F0 2F1 2B0 2B1 .   .\n"
        "8 slots, 12 of 24 cells idle\n");
  CHECK(to_grid(schedule::one_f_one_b({.stages = 1, .microbatches = 1})) ==
        "1F1B P=1 M=1: 1 rank, 3 actions\n"
        "rank 0  0F0 0B0\n"
        "2 slots, 0 of 2 cells idle\n");
}

TEST_CASE("the cells of the slot grid are of equal width and the ranks right-aligned") {
  const std::string grid = to_grid(schedule::one_f_one_b({.stages = 11, .microbatches = 12}));
  CHECK(grid.find("\nrank  0  0F0   0F1   0F2 ") != std::string::npos);
  CHECK(grid.find("\nrank 10  .     .     .  ") != std::string::npos);
  CHECK(grid.find("10F11 10B11") != std::string::npos);
  // (M + P - 1) slots for F and as many for B; each rank works 2 M of them.
  CHECK(grid.find("\n44 slots, 220 of 484 cells idle\n") != std::string::npos);
}

TEST_CASE("the slot grid of hundreds of slots has them all") {
  const std::string grid = to_grid(schedule::stream({.stages = 1, .microbatches = 501}));
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

TEST_CASE("the time grid is to scale") {
  const auto schedule = schedule::one_f_one_b({.stages = 2, .microbatches = 2});
  const Timeline timeline = simulate(schedule, {.forward = 1, .backward = 2});
  CHECK(to_grid(timeline, 18) ==
        "1F1B P=2 M=2: makespan 9 s, bubble ratio 33.3%\n"
        "rank 0  F0F1....B0--..B1--\n"
        "rank 1  ..F0B0--F1B1--....\n"
        "        0 s            9 s\n");
  // No room for numbers, and cells that two actions share.
  CHECK(to_grid(timeline, 9) ==
        "1F1B P=2 M=2: makespan 9 s, bubble ratio 33.3%\n"
        "rank 0  FF..B0.B1\n"
        "rank 1  .FB0FB1..\n"
        "        0 s   9 s\n");
  CHECK(to_grid(timeline, 1) ==
        "1F1B P=2 M=2: makespan 9 s, bubble ratio 33.3%\n"
        "rank 0  B\n"
        "rank 1  B\n"
        "        0 s 9 s\n");
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

TEST_CASE("the time grid of nothing is idle") {
  CHECK(to_grid(Timeline{}, 10) == "timeline: makespan 0 s, bubble ratio 0%\n        0 s    0 s\n");
  const auto schedule = schedule::one_f_one_b({.stages = 2, .microbatches = 1});
  CHECK(to_grid(simulate(schedule, {}), 5) ==
        "1F1B P=2 M=1: makespan 0 s, bubble ratio 0%\n"
        "rank 0  .....\nrank 1  .....\n        0 s 0 s\n");
}

TEST_CASE("the time grid refuses what it cannot draw") {
  const auto schedule = schedule::one_f_one_b({.stages = 1, .microbatches = 1});
  Timeline timeline = simulate(schedule, {.forward = 1, .backward = 2});
  CHECK_THROWS_AS(to_grid(timeline, 0), contract_error);
  timeline.spans()[1].end = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(to_grid(timeline), contract_error);
  CHECK_THROWS_AS(to_grid(Timeline(schedule, {})), contract_error);
}

}  // namespace test_grid
