// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>

#include "support/complaint.hpp"

namespace test_builder_contract {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::read;
using schedule::update;
using schedule::write;

namespace {

/// Two ranks; a persistent buffer of 3 parts on rank 0, a transient one of 2 on each rank.
struct Fixture {
  Builder builder{"fixture", 2};
  BufferId kept = builder.add_buffer(
      {.rank = Rank{0}, .parts = 3, .label = builder.label("kept"), .transient = false});
  BufferId here = builder.add_buffer(
      {.rank = Rank{0}, .parts = 2, .stage = Stage{4}, .label = builder.label("here")});
  BufferId there =
      builder.add_buffer({.rank = Rank{1}, .parts = 2, .label = builder.label("there")});
  QueueId local = builder.local(Rank{0});
  QueueId channel = builder.queue(Rank{0}, Rank{1});

  std::string refusal(const ActionSpec& spec, std::initializer_list<Use> uses) {
    std::string message =
        test::message_of<contract_error>([&] { builder.add(spec, std::span(uses)); });
    // Refused means unchanged: the same number of actions, and a next one is taken.
    const ActionId next = builder.add({.kind = Kind::user, .queue = local}, {read(kept)});
    CHECK(next == ActionId{m_added++});
    return message;
  }

 private:
  std::uint32_t m_added = 0;
};

}  // namespace

TEST_CASE("the builder names the rank, buffer or queue that does not exist") {
  const auto message = [](auto call) { return test::message_of<contract_error>(call); };
  CHECK_THAT(message([] { Builder("none", 0); }),
             ContainsSubstring("at least one rank") && ContainsSubstring("ranks = 0"));
  Fixture f;
  CHECK_THAT(message([&] { f.builder.add_buffer({.rank = Rank{2}}); }),
             ContainsSubstring("rank 2 of 2"));
  CHECK_THAT(message([&] { f.builder.add_buffer({.parts = 0}); }), ContainsSubstring("0 parts"));
  CHECK_THAT(message([&] { f.builder.add_buffer({.parts = parts_limit}); }),
             ContainsSubstring("at most 1073741822, got 1073741823"));
  const auto ends = [&](std::vector<Bytes> where) {
    return message([&] {
      f.builder.add_buffer({.parts = 2,
                            .bytes = 8,
                            .ends = std::make_shared<const std::vector<Bytes>>(std::move(where))});
    });
  };
  CHECK_THAT(ends({8}), ContainsSubstring("1 ends for 2 parts"));
  CHECK_THAT(ends({3, 7}), ContainsSubstring("the last at 7 of 8 bytes"));
  CHECK_THAT(ends({9, 8}), ContainsSubstring("do not match the buffer"));
  CHECK_THAT(message([&] { f.builder.queue(Rank{0}, Rank{2}); }),
             ContainsSubstring("to rank 2") && ContainsSubstring("with 2 ranks"));
  CHECK_THAT(message([&] { f.builder.local(Rank{7}); }), ContainsSubstring("from rank 7"));
  CHECK_THAT(message([&] { f.builder.local(Rank{0}, Lane{32767}); }),
             ContainsSubstring("lane 32767"));
  CHECK_NOTHROW(f.builder.local(Rank{0}, Lane{32766}));
  CHECK_THAT(message([&] { f.builder.add_buffer({.label = LabelId{99}}); }),
             ContainsSubstring("no such label"));
  CHECK_NOTHROW(f.builder.add_buffer({}));  // storage without a role
}

TEST_CASE("the builder refuses an action that does not fit, and is unchanged then") {
  Fixture f;
  const ActionSpec work{
      .kind = Kind::forward, .queue = f.local, .stage = Stage{2}, .item = Item{3}};
  const ActionSpec move{.kind = Kind::move, .queue = f.channel};
  CHECK_THAT(f.refusal({.queue = QueueId{9}}, {}), ContainsSubstring("no such queue (queue 9)"));
  CHECK_THAT(f.refusal({.kind = Kind::forward, .queue = f.channel}, {}),
             ContainsSubstring("only moves can run in a channel") &&
                 ContainsSubstring("from rank 0 to rank 1"));
  CHECK_THAT(f.refusal(work, {read(BufferId{8})}),
             ContainsSubstring("add(2F3)") && ContainsSubstring("no such buffer (buffer 8)"));
  CHECK_THAT(f.refusal(work, {read(f.kept, 3)}), ContainsSubstring("[3, 4) of 3"));
  CHECK_THAT(f.refusal(work, {read(f.kept, 1, 3)}), ContainsSubstring("[1, 4) of 3"));
  CHECK_THAT(f.refusal(work, {read(f.kept, 0, 0)}), ContainsSubstring("[0, 0) of 3"));
  // The end of the range would wrap around to 0.
  CHECK_THAT(f.refusal(work, {read(f.kept, 0xffffffffu)}),
             ContainsSubstring("[4294967295, 4294967296) of 3"));
  // A Use holds 30 bits of it: 1 part would be left of 2^30 + 1.
  CHECK_THAT(f.refusal(work, {read(f.kept, 0, (1u << 30) + 1)}),
             ContainsSubstring("[0, 1073741823) of 3"));
  CHECK_THAT(f.refusal(work, {write(f.there)}),
             ContainsSubstring("another rank than the action's queue") &&
                 ContainsSubstring("buffer on rank 1, queue on rank 0"));
  CHECK_THAT(f.refusal(work, {read(f.here, 1)}),
             ContainsSubstring("no action has written in this step") &&
                 ContainsSubstring("part 1 of 'here' of stage 4 on rank 0"));
  CHECK_THAT(f.refusal(work, {update(f.here)}), ContainsSubstring("no action has written"));
  CHECK_THAT(f.refusal(work, {read(f.kept), read(f.here)}), ContainsSubstring("no action has"));
  const std::string two = "a move must read one range and write another";
  CHECK_THAT(f.refusal(move, {}), ContainsSubstring(two));
  CHECK_THAT(f.refusal(move, {read(f.kept)}), ContainsSubstring(two));
  CHECK_THAT(f.refusal(move, {write(f.there), read(f.kept)}), ContainsSubstring(two));
  CHECK_THAT(f.refusal(move, {read(f.kept), update(f.there)}), ContainsSubstring(two));
  CHECK_THAT(f.refusal(move, {read(f.kept), write(f.there), write(f.there, 1)}),
             ContainsSubstring(two));
  CHECK_THAT(f.refusal(move, {read(f.kept), write(f.here)}),
             ContainsSubstring("buffer on rank 0, queue on rank 1"));
}

TEST_CASE("what is written earlier in the step may be read; a group may touch any rank") {
  Fixture f;
  f.builder.add({.kind = Kind::forward, .queue = f.local}, {write(f.here, 0, 2)});
  CHECK_NOTHROW(f.builder.add({.kind = Kind::backward, .queue = f.local}, {read(f.here, 1)}));
  CHECK_NOTHROW(
      f.builder.add({.kind = Kind::move, .queue = f.channel}, {read(f.here), write(f.there)}));
  CHECK_NOTHROW(
      f.builder.add({.kind = Kind::group, .queue = f.local}, {update(f.here), update(f.there)}));
  const Schedule list = std::move(f.builder).build();
  CHECK(list.size() == 4);
  CHECK(list.uses(ActionId{2}).size() == 2);
  CHECK(list.name() == "fixture");
  CHECK(list.ranks() == 2);
}

TEST_CASE("labels and queues are made once") {
  Builder builder("once", 3);
  CHECK(builder.label("a") == builder.label("a"));
  CHECK(builder.label("a") != builder.label("b"));
  CHECK(builder.queue(Rank{0}, Rank{2}) == builder.queue(Rank{0}, Rank{2}));
  CHECK(builder.queue(Rank{0}, Rank{2}) != builder.queue(Rank{2}, Rank{0}));
  CHECK(builder.queue(Rank{0}, Rank{2}, Lane{1}) != builder.queue(Rank{0}, Rank{2}));
  const Schedule empty = std::move(builder).build();
  CHECK(empty.empty());
  CHECK(empty.queues().size() == 3);
  CHECK(schedule::impl::carried(empty).empty());
}

}  // namespace test_builder_contract
