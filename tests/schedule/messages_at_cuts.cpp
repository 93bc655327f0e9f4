// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What cast_at_cut() makes of schedules with a codec: sizes, who decodes, what is kept.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/layout.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/meaning.hpp"

namespace test_messages_at_cuts {

using namespace heddle;
using test::meaning;
using test::message_of;

namespace {

constexpr auto everywhere = [](Rank, Rank) { return true; };

std::size_t count(const Schedule& schedule, Kind kind) {
  return static_cast<std::size_t>(
      std::ranges::count_if(schedule.actions(), [&](const Action& a) { return a.kind == kind; }));
}

/// The part of meaning() that was there before a pass added buffers of its own.
std::vector<std::uint64_t> first(std::vector<std::uint64_t> all, std::size_t size) {
  all.resize(size);
  return all;
}

}  // namespace

TEST_CASE("with a codec every all-reduce computes the same up to rounding") {
  using namespace schedule;
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::direct, Algorithm::recursive_doubling, Algorithm::star,
        Algorithm::binomial_tree, Algorithm::double_tree}) {
    for (const int ranks : {1, 2, 3, 4, 7, 8}) {
      const CollectiveOptions options{.ranks = ranks, .bytes = 97 * 4, .type = Scalar::f32};
      if (!schedule::why_not(Collective::all_reduce, algorithm, options).empty()) continue;
      const Schedule before = collective(Collective::all_reduce, algorithm, options);
      INFO(before.name());
      for (const bool feedback : {false, true}) {
        const Schedule after = schedule::cast_at_cut(
            before, {.type = Scalar::i8, .block = 32, .feedback = feedback, .agree = true},
            everywhere);
        const auto expected = meaning(before);
        CHECK(first(meaning(after), expected.size()) == expected);
        CHECK((meaning(after).size() > expected.size()) == (feedback && ranks > 1));
        CHECK(count(after, Kind::move) == count(before, Kind::move));
        CHECK(count(after, Kind::combine) == count(before, Kind::combine));
        for (std::size_t i = 0; i < after.size(); ++i) {
          const auto uses = after.uses(ActionId{i});
          if (after[ActionId{i}].kind != Kind::move) continue;
          REQUIRE(after.bytes(uses[0]) == after.bytes(uses[1]));
          REQUIRE(after[uses[0].buffer].block == 32);
        }
      }
    }
  }
}

TEST_CASE("a sum decodes what it adds, unless somebody else reads it, too") {
  using namespace schedule;
  const Schedule ring = collective(Collective::all_reduce, Algorithm::ring,
                                   {.ranks = 4, .bytes = 400, .type = Scalar::f32});
  const Schedule after = schedule::cast_at_cut(ring, {.type = Scalar::i8, .block = 32}, everywhere);
  const std::size_t moves = count(ring, Kind::move);
  // Each move is encoded; only those that hand the sum around are decoded by casts.
  CHECK(count(after, Kind::cast) == moves + moves / 2);
  for (std::size_t i = 0; i < after.size(); ++i)
    if (after[ActionId{i}].kind == Kind::combine)
      CHECK(after[after[after.uses(ActionId{i})[0].buffer].label] == role::narrow);

  for (const Buffer& buffer : after.buffers())
    if (after[buffer.label] == "scratch") CHECK(buffer.bytes == 0);

  const auto arrival = [](bool read_again, bool whole) {
    Builder builder("arrival", 2);
    const auto buffer = [&](int rank, bool transient) {
      return builder.add_buffer({.rank = Rank{rank},
                                 .parts = 2,
                                 .type = Scalar::f32,
                                 .transient = transient,
                                 .bytes = 80});
    };
    const BufferId data = buffer(0, false), got = buffer(1, true), sum = buffer(1, false);
    const QueueId queue = builder.local(Rank{1});
    builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
                {read(data, 0, 2), write(got, 0, 2)});
    const std::uint32_t parts = whole ? 2 : 1;
    builder.add({.kind = Kind::combine, .queue = queue},
                {read(got, 0, parts), update(sum, 0, parts)});
    if (read_again) builder.add({.kind = Kind::user, .queue = queue}, {read(got, 0)});
    return schedule::cast_at_cut(std::move(builder).build(), {Scalar::f16}, everywhere);
  };
  CHECK(count(arrival(false, true), Kind::cast) == 1);
  CHECK(count(arrival(true, true), Kind::cast) == 2);
  CHECK(count(arrival(false, false), Kind::cast) == 2);
}

TEST_CASE("records are not cast at a cut") {
  Builder builder("records", 2);
  const auto buffer = [&](int rank) {
    return builder.add_buffer({.rank = Rank{rank},
                               .label = builder.label("state"),
                               .type = Scalar::f64,
                               .transient = false,
                               .bytes = 40,
                               .record = 5});
  };
  const BufferId from = buffer(0), to = buffer(1);
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
              {schedule::read(from), schedule::write(to)});
  const Schedule list = std::move(builder).build();
  const std::string refusal = test::message_of<contract_error>(
      [&] { (void)schedule::cast_at_cut(list, {Scalar::f32}, everywhere); });
  CHECK(refusal.find("records cannot be cast") != std::string::npos);
  CHECK(refusal.find("'state'") != std::string::npos);
}

TEST_CASE("messages between hosts are encoded where the ranks of each read in place") {
  using namespace schedule;
  const Schedule before = collective(
      Collective::all_reduce, Algorithm::hierarchical,
      {.ranks = 4, .bytes = 404, .type = Scalar::f32, .levels = {{.ranks = 2}, {.ranks = 2}}});
  const std::vector<std::uint32_t> hosts = {0, 0, 1, 1};
  const auto expected = meaning(before);
  for (const bool agree : {false, true}) {
    const Schedule narrow = schedule::cast_at_cut(
        before, {.type = Scalar::i8, .block = 32, .feedback = true, .agree = agree},
        [&](Rank a, Rank b) { return hosts[+a] != hosts[+b]; });
    const Schedule after = schedule::share_memory(narrow, hosts);
    CHECK(first(meaning(after), expected.size()) == expected);
    CHECK(count(after, Kind::cast) == count(narrow, Kind::cast));
    for (std::size_t i = 0; i < after.size(); ++i) {
      const Action& action = after[ActionId{i}];
      if (action.kind == Kind::move && !after[action.queue].local())
        CHECK(after[after.uses(ActionId{i})[0].buffer].block == 32);
    }
  }
}

TEST_CASE("what a place sends twice in a step loses in two places") {
  const Schedule ring =
      schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                           {.ranks = 3, .bytes = 120, .type = Scalar::f32});
  const Schedule after =
      schedule::cast_at_cut(ring, {.type = Scalar::f16, .feedback = true}, everywhere);
  std::vector<std::pair<BufferId, std::uint32_t>> places;
  std::size_t casts = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto uses = after.uses(ActionId{i});
    if (after[ActionId{i}].kind != Kind::cast || uses.size() < 3) continue;
    ++casts;
    const Buffer& residual = after[uses[2].buffer];
    CHECK(after[residual.label] == role::residual);
    CHECK((!residual.transient && uses[2].access() == Access::update));
    CHECK(after.bytes(uses[2]) == after.bytes(uses[0]));
    CHECK(uses[0].access() == Access::read);
    for (std::uint32_t part = 0; part < uses[2].count; ++part)
      places.emplace_back(uses[2].buffer, uses[2].first + part);
  }
  CHECK(casts == count(ring, Kind::move));
  std::ranges::sort(places);
  CHECK(std::ranges::adjacent_find(places) == places.end());
}

TEST_CASE("sizes bound after a cut are those bound before it") {
  const auto shape = [](Bytes activation, Scalar type) {
    return schedule::one_f_one_b(
        {.stages = 3, .microbatches = 4, .sizes = {.activation = activation, .type = type}});
  };
  for (const Codec& codec :
       {Codec{Scalar::f16}, Codec{.type = Scalar::i8, .block = 64, .feedback = true}}) {
    const Schedule before = schedule::cast_at_cut(shape(404, Scalar::f32), codec, everywhere);
    const Schedule unbound = schedule::cast_at_cut(shape(0, Scalar::byte), codec, everywhere);
    CHECK(hash(unbound) != hash(before));
    std::size_t next = 0;
    const Schedule wide = unbound.with_sizes([&](Buffer& buffer) {
      const Buffer& sized = before.buffers()[next++];
      const std::string& label = before[sized.label];
      if (label == role::narrow || label == role::residual) return;
      buffer.type = sized.type;
      buffer.bytes = sized.bytes;
    });
    CHECK(hash(heddle::impl::with_message_sizes(wide)) == hash(before));
  }
  const Schedule narrow = schedule::cast_at_cut(shape(0, Scalar::byte), {Scalar::f32}, everywhere);
  const std::string why = message_of<contract_error>([&] {
    (void)heddle::impl::with_message_sizes(narrow.with_sizes([](Buffer& buffer) {
      if (buffer.type == Scalar::byte) buffer.type = Scalar::f32;
      buffer.bytes = 16 * buffer.parts;
    }));
  });
  CHECK(why.find("elements of f32, the cut of f32") != std::string::npos);
}

TEST_CASE("uneven parts have messages of their own sizes") {
  Builder builder("uneven", 2);
  const auto ends = std::make_shared<const std::vector<Bytes>>(std::vector<Bytes>{0, 4, 264, 528});
  const auto buffer = [&](int rank) {
    return builder.add_buffer({.rank = Rank{rank},
                               .parts = 4,
                               .type = Scalar::f32,
                               .transient = false,
                               .bytes = 528,
                               .ends = ends});
  };
  const BufferId from = buffer(0), into = buffer(1);
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
              {schedule::read(from, 0, 4), schedule::write(into, 0, 4)});
  const Schedule after = schedule::cast_at_cut(std::move(builder).build(),
                                               {.type = Scalar::i8, .block = 64}, everywhere);
  const Buffer& message = after.buffers().back();
  REQUIRE(message.ends != nullptr);
  CHECK(*message.ends == std::vector<Bytes>{0, 2, 2 + 65 + 2, 2 + 67 + 66 + 2});
}

TEST_CASE("a codec takes numbers that it knows") {
  const auto why = [](Scalar type, const Codec& codec) {
    const Schedule schedule = schedule::stream(
        {.stages = 2, .microbatches = 1, .sizes = {.activation = 80, .type = type}});
    return message_of<contract_error>(
        [&] { (void)schedule::cast_at_cut(schedule, codec, everywhere); });
  };
  CHECK(why(Scalar::i32, {Scalar::i8}).find("a codec needs elements of f32 or f64") !=
        std::string::npos);
  CHECK(why(Scalar::i64, {.type = Scalar::i32, .agree = true})
            .find("has elements of i64, the cut of i32") != std::string::npos);
  CHECK(why(Scalar::f16, {Scalar::i8}).find("a codec needs elements") != std::string::npos);
  CHECK(why(Scalar::f32, {.type = Scalar::f16, .block = 2}).find("only one-byte types") !=
        std::string::npos);
}

}  // namespace test_messages_at_cuts
