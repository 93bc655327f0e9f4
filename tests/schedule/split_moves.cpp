// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_split_moves {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::MovePiece;
using schedule::split_moves;

namespace {

/// Three pieces of 7 units: 1, 4 and 2, in lanes 5, 0 and 5.
std::vector<MovePiece> three(ActionId) {
  return {{Lane{5}, 0, 1}, {Lane{0}, 1, 4}, {Lane{5}, 5, 2}};
}

Bytes moved(const Schedule& schedule) {
  Bytes sum = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (schedule[ActionId{i}].kind == Kind::move)
      sum += schedule.bytes(schedule.uses(ActionId{i})[0]);
  return sum;
}

}  // namespace

TEST_CASE("pieces of messages carry the same bytes, and the parts keep their boundaries") {
  // 4 blocks of 11, 11, 11 and 10 elements, none of which 7 divides.
  const Schedule ring = schedule::collective(
      schedule::Collective::all_reduce, schedule::Algorithm::ring, {.ranks = 4, .bytes = 8 * 43});
  const Schedule split = split_moves(ring, 7, three);
  CHECK(moved(split) == moved(ring));
  CHECK(split.size() == ring.size() + 2 * 4 * 2 * 3);
  const Buffer& data = split[BufferId{0}];
  CHECK(data.parts == 28);
  for (std::uint32_t block = 0; block <= 4; ++block)
    CHECK(schedule::part_offset(data, 7 * block) ==
          schedule::part_offset(ring[BufferId{0}], block));
  for (std::size_t i = 0; i < split.size(); ++i) {
    const auto uses = split.uses(ActionId{i});
    if (split[ActionId{i}].kind == Kind::move) CHECK(split.bytes(uses[0]) == split.bytes(uses[1]));
  }
}

TEST_CASE("a whole message may take another lane; a move without pieces stays") {
  const Schedule ring = schedule::collective(schedule::Collective::all_reduce,
                                             schedule::Algorithm::ring, {.ranks = 3, .bytes = 24});
  const Schedule same = split_moves(ring, 4, [](ActionId) { return std::vector<MovePiece>{}; });
  CHECK(same.size() == ring.size());
  CHECK(same[BufferId{0}].parts == ring[BufferId{0}].parts);
  const Schedule other =
      split_moves(ring, 1, [](ActionId) { return std::vector{MovePiece{.lane = Lane{9}}}; });
  CHECK(other.size() == ring.size());
  for (const Action& action : other.actions())
    if (action.kind == Kind::move) CHECK(other[action.queue].lane == Lane{9});
}

TEST_CASE("pieces that leave a gap, overlap or do not cover a message are refused") {
  const Schedule ring = schedule::collective(schedule::Collective::all_reduce,
                                             schedule::Algorithm::ring, {.ranks = 2, .bytes = 16});
  const auto refusal = [&](std::uint32_t units, const std::vector<MovePiece>& pieces) {
    return test::message_of<contract_error>(
        [&] { (void)split_moves(ring, units, [&](ActionId) { return pieces; }); });
  };
  CHECK_THAT(refusal(0, {}),
             ContainsSubstring("heddle::schedule::split_moves: a message must have at "
                               "least one unit"));
  CHECK_THAT(refusal(3, {{Lane{0}, 0, 1}, {Lane{1}, 2, 1}}),
             ContainsSubstring(
                 "the pieces of a move must be consecutive (a piece of 1 units at 2 after 1 in "
                 "action 0)"));
  CHECK_THAT(refusal(3, {{Lane{0}, 0, 2}, {Lane{1}, 1, 2}}), ContainsSubstring("at 1 after 2"));
  CHECK_THAT(refusal(3, {{Lane{0}, 0, 0}}), ContainsSubstring("a piece of 0 units"));
  CHECK_THAT(
      refusal(3, {{Lane{0}, 0, 2}}),
      ContainsSubstring("the pieces of a move must cover all units (2 of 3 units of action 0)"));
  CHECK_THAT(refusal(1, {{Lane{0}, 0, 2}}), ContainsSubstring("2 of 1 units"));
  Builder builder("scaled", 2);
  const BufferId from = builder.add_buffer({.transient = false, .bytes = 68, .block = 64});
  const BufferId to = builder.add_buffer({.rank = Rank{1}, .bytes = 68, .block = 64});
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
              {schedule::read(from), schedule::write(to)});
  const Schedule scaled = std::move(builder).build();
  CHECK_THAT(test::message_of<contract_error>([&] { (void)split_moves(scaled, 7, three); }),
             ContainsSubstring("parts that begin with scales cannot be cut (buffer 0 of action "
                               "0)"));
}

}  // namespace test_split_moves
