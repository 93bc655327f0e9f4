// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/complaint.hpp"
#include "support/execution.hpp"

namespace test_folding {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

BufferId find(const Schedule& schedule, std::string_view label, int rank) {
  for (std::size_t b = 0; b < schedule.buffers().size(); ++b)
    if (schedule[BufferId{b}].rank == Rank{rank} && schedule[schedule[BufferId{b}].label] == label)
      return BufferId{b};
  FAIL("no buffer " << label << " on rank " << rank);
  return {};
}

/// Every part is written and then read, one after the other, on one rank.
Schedule window(std::uint32_t parts, std::uint32_t ahead, Bytes bytes) {
  Builder builder("window", 1);
  const BufferId buffer =
      builder.add_buffer({.parts = parts, .label = builder.label("block"), .bytes = bytes});
  const QueueId queue = builder.local(Rank{0});
  for (std::uint32_t i = 0; i < parts + ahead; ++i) {
    if (i < parts)
      builder.add({.kind = Kind::user, .queue = queue, .item = Item{i}},
                  {schedule::write(buffer, i)});
    if (i >= ahead)
      builder.add({.kind = Kind::forward, .queue = queue, .item = Item{i - ahead}},
                  {schedule::read(buffer, i - ahead)});
  }
  return std::move(builder).build();
}

}  // namespace

TEST_CASE("1F1B keeps min(M, P - r) activations in as many slots, and not in one fewer") {
  for (const int p : {2, 3, 5, 8}) {
    for (const int m : {2, 3, 8, 11}) {
      const Schedule pipeline =
          schedule::one_f_one_b({.ranks = p, .microbatches = m, .sizes = {.saved = 10}});
      const Schedule folded = schedule::fold(pipeline);
      for (int r = 0; r < p; ++r) {
        const BufferId saved = find(pipeline, role::saved, r);
        const auto live = static_cast<std::uint32_t>(std::min(m, p - r));
        CHECK(folded[saved].parts == live);
        CHECK(folded[saved].bytes == 10 * live);
        CHECK_NOTHROW(schedule::fold(pipeline, saved, live));
        if (live > 1) CHECK_THROWS_AS(schedule::fold(pipeline, saved, live - 1), infeasible);
      }
    }
  }
}

TEST_CASE("too few slots name the read, its part and the part that is there") {
  const Schedule pipeline = schedule::one_f_one_b({.ranks = 4, .microbatches = 8});
  const std::string message = test::message_of<infeasible>(
      [&] { (void)schedule::fold(pipeline, find(pipeline, role::saved, 0), 3); });
  // Four forwards come before the first backward: F3 takes the slot of part 0.
  CHECK_THAT(message,
             ContainsSubstring("heddle::schedule::fold: 3 slots are too few for 'saved' of stage 0 "
                               "on rank 0") &&
                 ContainsSubstring("0B0 reads part 0, but its slot holds part 3") &&
                 ContainsSubstring("fold() without a buffer"));
}

TEST_CASE("a hand-made window that loads one block too early is refused") {
  for (const std::uint32_t ahead : {0, 1, 2, 5}) {
    const Schedule list = window(13, ahead, 13 * 8);
    for (std::uint32_t slots = 1; slots <= 13; ++slots) {
      // In step i block i is loaded, before block i - ahead is used.
      if (slots > ahead)
        CHECK_NOTHROW(schedule::fold(list, BufferId{0}, slots));
      else
        CHECK_THROWS_AS(schedule::fold(list, BufferId{0}, slots), infeasible);
    }
    CHECK(schedule::fold(list)[BufferId{0}].parts == ahead + 1);
  }
}

TEST_CASE("what cannot fold is refused with its numbers") {
  const auto refusal = [](const Schedule& list, BufferId buffer, std::uint32_t slots) {
    return test::message_of<contract_error>([&] { (void)schedule::fold(list, buffer, slots); });
  };
  const Schedule list = window(7, 1, 70);
  CHECK_THAT(refusal(list, BufferId{0}, 0), ContainsSubstring("7 parts, 70 bytes, 0 slots"));
  CHECK_THAT(refusal(list, BufferId{0}, 8), ContainsSubstring("8 slots"));
  CHECK_THAT(refusal(window(7, 1, 71), BufferId{0}, 7), ContainsSubstring("71 bytes"));
  CHECK(schedule::fold(window(7, 1, 71))[BufferId{0}].parts == 7);
  const Schedule pipeline = schedule::one_f_one_b({.ranks = 2, .microbatches = 2});
  CHECK_THAT(refusal(pipeline, find(pipeline, role::weights, 1), 1),
             ContainsSubstring("cannot fold 'weights' of stage 1 on rank 1") &&
                 ContainsSubstring("persistent"));
  Builder builder("ranges", 1);
  const BufferId wide = builder.add_buffer({.parts = 4, .label = builder.label("wide")});
  builder.add({.kind = Kind::user, .queue = builder.local(Rank{0})}, {schedule::write(wide, 1, 2)});
  const Schedule ranges = std::move(builder).build();
  CHECK_THAT(refusal(ranges, wide, 2),
             ContainsSubstring("0USER0 uses several parts of 'wide' of stage 0 on rank 0 at once"));
  CHECK(schedule::fold(ranges)[wide].parts == 4);
}

TEST_CASE("folded slots make later writes wait for earlier reads") {
  // One slot, an action that writes in one queue and one that reads in another: strictly in turn.
  Builder builder("turns", 1);
  const BufferId buffer = builder.add_buffer({.parts = 4, .label = builder.label("block")});
  for (std::uint32_t i = 0; i < 4; ++i) {
    builder.add({.kind = Kind::user, .queue = builder.local(Rank{0})},
                {schedule::write(buffer, i)});
    builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0}, Lane{1})},
                {schedule::read(buffer, i)});
  }
  const Schedule list = std::move(builder).build();
  const StageCosts costs{.forward = 3, .user = 2};
  CHECK(simulate(list, costs).makespan() == 2 + 4 * 3);
  CHECK(simulate(schedule::fold(list, buffer, 2), costs).makespan() == 2 + 4 * 3);
  CHECK(simulate(schedule::fold(list, buffer, 1), costs).makespan() == 4 * (2 + 3));
}

TEST_CASE("slack is given where messages travel, and nowhere else") {
  const Schedule pipeline =
      schedule::one_f_one_b({.ranks = 3, .microbatches = 9, .sizes = {.activation = 8}});
  const auto parts = [&](std::uint32_t slack, std::string_view label, int rank) {
    const Schedule folded = schedule::fold(pipeline, slack);
    return folded[find(folded, label, rank)].parts;
  };
  CHECK(parts(0, role::saved, 0) == 3);
  CHECK(parts(2, role::saved, 0) == 3);
  for (const auto& [label, rank] : {std::pair{role::output, 0},
                                    {role::input, 1},
                                    {role::input_grad, 2},
                                    {role::output_grad, 1}}) {
    CHECK(parts(1, label, rank) == parts(0, label, rank) + 1);
    CHECK(parts(100, label, rank) == 9);
  }
}

}  // namespace test_folding
