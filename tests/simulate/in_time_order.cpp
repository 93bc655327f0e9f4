// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// in_time_order: the same values, the same times, and a list that a rank can walk.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/interpreter.hpp"
#include "support/random_schedule.hpp"

namespace test_in_time_order {

namespace hd = heddle;
using hd::ActionId;
using hd::BufferId;
using hd::Bytes;
using hd::Rank;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

namespace {

/// What all persistent buffers hold after two steps.
std::vector<std::vector<std::byte>> results(const hd::Schedule& schedule) {
  hd::test::Storage storage(schedule, std::byte{0xa5});
  hd::test::interpret(schedule, storage, 2);
  std::vector<std::vector<std::byte>> found;
  for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
    const hd::Buffer& buffer = schedule[BufferId{b}];
    if (buffer.transient) continue;
    const std::byte* const begin = storage.begin(BufferId{b});
    found.emplace_back(begin, begin + buffer.bytes);
  }
  return found;
}

/// Costs under which much happens out of the order of the list.
struct Uneven {
  using Time = hd::Seconds;
  [[nodiscard]] hd::Seconds time(const hd::Schedule& schedule, ActionId id) const {
    return 1 + static_cast<double>((+schedule[id].item * 7 + +schedule[id].queue * 3) % 5);
  }
  [[nodiscard]] hd::Transfer<hd::Seconds> transfer(const hd::Schedule& schedule,
                                                   ActionId id) const {
    return {1, static_cast<double>((+schedule[id].queue * 13) % 11)};
  }
};

void same_but_sorted(const hd::Schedule& schedule) {
  const hd::Timeline before = hd::simulate(schedule, Uneven{});
  const hd::Schedule sorted = hd::schedule::in_time_order(before);
  INFO(schedule.name());
  REQUIRE(sorted.size() == schedule.size());
  CHECK(results(sorted) == results(schedule));
  const hd::Timeline after = hd::simulate(sorted, Uneven{});
  CHECK(after.makespan() == before.makespan());
  // Twice is once: the list is in that order.
  const hd::Schedule again = hd::schedule::in_time_order(after);
  for (std::size_t i = 0; i < sorted.size(); ++i)
    CHECK(again[ActionId{i}].queue == sorted[ActionId{i}].queue);
}

}  // namespace

TEST_CASE("in the order of time a schedule makes the same values in the same time") {
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    same_but_sorted(hd::test::random_schedule(seed, 1 + static_cast<int>(seed % 4), 80));
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::direct})
    for (const int ranks : {1, 2, 3, 5, 8})
      same_but_sorted(hd::schedule::collective(
          Collective::all_reduce, algorithm,
          {.ranks = ranks, .bytes = 8 * 131, .type = hd::Scalar::f64, .chunks = 3}));
}

TEST_CASE("fused pairs stay neighbours") {
  const hd::Schedule schedule = hd::schedule::dualpipe({.ranks = 4, .microbatches = 8});
  const hd::Timeline timeline =
      hd::simulate(schedule, {.forward = 1, .backward = 2, .forward_backward = 2.5});
  const hd::Schedule sorted = hd::schedule::in_time_order(timeline);
  CHECK(hd::simulate(sorted, {.forward = 1, .backward = 2, .forward_backward = 2.5}).makespan() ==
        timeline.makespan());
}

TEST_CASE("what is early comes first, also from a later round") {
  // Rank 1 sends three parts to rank 0, which passes them on to rank 2 in a second round.
  hd::Builder builder("relay", 3);
  std::vector<BufferId> data;
  for (std::uint32_t r = 0; r < 3; ++r)
    data.push_back(builder.add_buffer(
        {.rank = Rank{r}, .parts = 3, .type = hd::Scalar::f64, .transient = false, .bytes = 24}));
  for (std::uint32_t hop = 0; hop < 2; ++hop) {
    const std::uint32_t from = 1 - hop, to = 2 * hop;
    for (std::uint32_t part = 0; part < 3; ++part)
      builder.add(
          {hd::Kind::move, builder.queue(Rank{from}, Rank{to}), hd::Stage{0}, hd::Item{part}},
          {hd::schedule::read(data[from], part), hd::schedule::write(data[to], part)});
  }
  const hd::Schedule schedule = std::move(builder).build();
  const auto senders = [](const hd::Schedule& list) {
    std::string found;
    for (const hd::Action& action : list.actions()) found += hd::text(list[action.queue].from);
    return found;
  };
  CHECK(senders(schedule) == "111000");
  // Starts at 0, 8, 16 and at 10, 18, 26.
  CHECK(senders(hd::schedule::in_time_order(
            hd::simulate(schedule, {.latency = 2, .per_byte = 1}))) == "110100");
}

}  // namespace test_in_time_order
