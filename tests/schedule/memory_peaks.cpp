// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

namespace test_memory_peaks {

using namespace heddle;

namespace {

/// One action per entry on rank 0, in one queue: it writes part `writes` of a buffer of 4 parts of
/// 10 bytes, or reads it; the times are given, not simulated.
struct Touch {
  bool writes;
  std::uint32_t part;
  double start;
  double end;
};

Timeline timeline_of(const std::vector<Touch>& touches) {
  Builder builder("touches", 1);
  const BufferId buffer =
      builder.add_buffer({.parts = 4, .label = builder.label("data"), .bytes = 40});
  std::vector<Span> spans;
  for (const auto& [writes, part, start, end] : touches) {
    builder.add({.kind = Kind::user, .queue = builder.local(Rank{0})},
                {writes ? schedule::write(buffer, part) : schedule::read(buffer, part)});
    spans.push_back({start, end, end});
  }
  return {std::move(builder).build(), std::move(spans)};
}

}  // namespace

TEST_CASE("a value lives from the start of its writer to the end of its last reader") {
  const Timeline timeline = timeline_of(
      {{true, 0, 0, 1}, {true, 1, 1, 2}, {false, 0, 2, 3}, {true, 0, 5, 6}, {false, 0, 6, 7}});
  auto found = schedule::live_intervals(timeline, [](const Buffer&) { return true; });
  REQUIRE(found.size() == 3);
  std::ranges::sort(found, {}, [](const auto& life) { return life.begin; });
  CHECK((found[0].part == 0 && found[0].begin == 0 && found[0].end == 3));
  CHECK((found[1].part == 1 && found[1].begin == 1 && found[1].end == 2));
  CHECK((found[2].part == 0 && found[2].begin == 5 && found[2].end == 7));
  CHECK(schedule::peak(timeline, Rank{0}, "data").parts == 2);
  CHECK(schedule::peak(timeline, Rank{0}).bytes == 20);
  CHECK(schedule::peak(timeline, Rank{0}, "other").parts == 0);
  CHECK(schedule::live_intervals(timeline, [](const Buffer&) { return false; }).empty());
}

TEST_CASE("what is freed at a time can be used at that time") {
  CHECK(schedule::peak(timeline_of({{true, 0, 0, 1}, {true, 1, 1, 2}, {true, 2, 2, 3}}), Rank{0},
                       "data")
            .parts == 1);
}

TEST_CASE("a life that takes no time still needs a place") {
  // Alone; beside one that lasts; beside one that ends and one that begins at the same time.
  CHECK(schedule::peak(timeline_of({{true, 0, 1, 1}}), Rank{0}, "data").parts == 1);
  CHECK(schedule::peak(timeline_of({{true, 0, 0, 2}, {true, 1, 1, 1}}), Rank{0}, "data").parts ==
        2);
  CHECK(schedule::peak(timeline_of({{true, 0, 0, 1}, {true, 1, 1, 1}, {true, 2, 1, 2}}), Rank{0},
                       "data")
            .parts == 2);
  CHECK(schedule::peak(timeline_of({{true, 0, 1, 1}, {true, 1, 1, 1}, {true, 2, 2, 2}}), Rank{0},
                       "data")
            .parts == 2);
  // It must not make room for another: one value lives before, two from 1 on.
  CHECK(schedule::peak(timeline_of({{true, 0, 0, 3}, {true, 1, 1, 1}, {true, 2, 2, 3}}), Rank{0},
                       "data")
            .parts == 2);
  CHECK(schedule::peak(timeline_of({{true, 0, 0, 0}}), Rank{0}).bytes == 10);
}

TEST_CASE("what persists is not transient, and nothing is live in nothing") {
  CHECK(schedule::peak(Timeline{}, Rank{0}).bytes == 0);
  CHECK(schedule::memory_use(Timeline{}).empty());
  const Schedule ring = schedule::collective(schedule::Collective::all_reduce,
                                             schedule::Algorithm::ring, {.ranks = 2, .bytes = 160});
  const Timeline timeline = simulate(ring, {.latency = 1, .per_byte = 0.1});
  CHECK(schedule::peak(timeline, Rank{0}, "data").parts == 2);
  CHECK(schedule::peak(timeline, Rank{0}, "scratch").parts == 1);
  CHECK(schedule::peak(timeline, Rank{0}).bytes == 80);
}

TEST_CASE("the peak in bytes is the sum over the roles that are live together") {
  // One stage, GPipe: all M saved activations are live when the last forward ends, and the
  // gradients from the first backward on.
  const Schedule pipeline = schedule::gpipe(
      {.ranks = 1, .microbatches = 3, .sizes = {.activation = 7, .saved = 100, .parameters = 11}});
  const Timeline timeline = simulate(pipeline, {.forward = 1, .backward = 2});
  CHECK(schedule::peak(timeline, Rank{0}, role::saved).parts == 3);
  CHECK(schedule::peak(timeline, Rank{0}, role::gradients).parts == 1);
  CHECK(schedule::peak(timeline, Rank{0}).bytes == 311);
}

}  // namespace test_memory_peaks
