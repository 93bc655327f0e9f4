// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// share_memory(): every action reads the values that it read before, in place or copied by the
// receiver, and no message stays within a domain. The lists are executed over threads that see each
// other's progress, and compared with the oracle.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/execution.hpp"
#include "support/random_schedule.hpp"

namespace test_share_memory {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::difference_from_oracle;

namespace {

using Domains = std::vector<std::uint32_t>;

/// What every action but moves has read, in list order, in two steps; then what persists.
std::vector<std::uint64_t> readings(const Schedule& schedule) {
  test::Storage storage(schedule, std::byte{0x3c});
  std::vector<std::uint64_t> found;
  for (const auto& [key, hash] : interpret(schedule, storage, 2))
    if (schedule[ActionId{key.second}].kind != Kind::move) found.push_back(hash);
  for (std::size_t b = 0; b < schedule.buffers().size(); ++b) {
    const Buffer& buffer = schedule[BufferId{b}];
    if (buffer.transient) continue;
    for (std::uint32_t part = 0; part < buffer.parts; ++part) {
      std::uint64_t state = fnv1a("part");
      for (const std::byte byte : storage.part(schedule, BufferId{b}, part))
        state = (state ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
      found.push_back(state);
    }
  }
  return found;
}

struct Moves {
  int messages = 0;
  int copies = 0;
};

Moves moves_of(const Schedule& schedule, const Domains& domains) {
  Moves moves;
  for (const Action& action : schedule.actions()) {
    if (action.kind != Kind::move) continue;
    const Queue& queue = schedule[action.queue];
    if (queue.local())
      ++moves.copies;
    else
      ++moves.messages;
    REQUIRE((queue.local() || domains[+queue.from] != domains[+queue.to]));
  }
  return moves;
}

/// `schedule` shared in several ways, with what must hold of each.
void check(const Schedule& schedule) {
  INFO(schedule.name());
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  Domains pairs, alternate;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    pairs.push_back(r / 2);
    alternate.push_back(r % 2);
  }
  for (const auto& [domains, copier] : {std::pair{Domains(ranks, 7), CopiedBy::receiver},
                                        {Domains(ranks, 7), CopiedBy::sender},
                                        {pairs, CopiedBy::receiver},
                                        {alternate, CopiedBy::sender}}) {
    const Schedule shared = schedule::share_memory(schedule, domains, copier);
    REQUIRE(readings(shared) == readings(schedule));
    (void)moves_of(shared, domains);
    for (const bool record : {false, true})
      REQUIRE(difference_from_oracle(shared, 3, {.record = record}) == "");
    REQUIRE(difference_from_oracle(schedule::fold(shared), 3) == "");
    REQUIRE(hash(shared) != hash(schedule));
  }
}

}  // namespace

TEST_CASE("a ring all-reduce within a domain has no scratch and no messages") {
  for (int ranks = 2; ranks <= 4; ++ranks)
    for (const int chunks : {1, 3})
      for (const Bytes elements : {0, 1, 7, 1009}) {
        const Schedule ring = schedule::collective(
            schedule::Collective::all_reduce, schedule::Algorithm::ring,
            {.ranks = ranks, .bytes = 8 * elements, .type = Scalar::i64, .chunks = chunks});
        check(ring);
        const Domains all(static_cast<std::size_t>(ranks), 0);
        const Schedule shared = schedule::share_memory(ring, all);
        // What is added is read where it is; what is gathered is copied by who wants it.
        const Moves moves = moves_of(shared, all);
        CHECK(moves.messages == 0);
        // A part of no bytes is neither.
        const int parts =
            static_cast<int>(std::min<Bytes>(elements, static_cast<Bytes>(ranks * chunks)));
        CHECK(moves.copies == (ranks - 1) * parts);
        for (const Buffer& buffer : shared.buffers())
          CHECK((!buffer.transient || buffer.bytes == 0));
      }
}

TEST_CASE("pipelines share what passes between their stages") {
  const auto sized = [](const Schedule& schedule) {
    return test::with_memory(schedule, 16, Scalar::i64);
  };
  for (int stages = 2; stages <= 4; ++stages) {
    check(sized(schedule::one_f_one_b({.stages = stages, .microbatches = 5})));
    check(sized(schedule::gpipe({.stages = stages, .microbatches = 3})));
    check(sized(schedule::stream({.stages = stages, .microbatches = 4})));
  }
  const Domains all(3, 0);
  const Moves moves = moves_of(
      schedule::share_memory(sized(schedule::stream({.stages = 3, .microbatches = 4})), all), all);
  CHECK((moves.messages == 0 && moves.copies == 0));
}

TEST_CASE("random lists mean the same with shared memory") {
  int copies = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const int ranks = 2 + static_cast<int>(seed % 3);
    const Schedule random =
        test::random_schedule(seed, ranks, 40 + static_cast<int>(seed % 7), false);
    const Domains domains =
        seed % 2 == 0 ? Domains(static_cast<std::size_t>(ranks), 0) : Domains{0, 1, 0, 1};
    const Schedule shared =
        schedule::share_memory(random, {domains.begin(), domains.begin() + ranks});
    INFO(random.name());
    REQUIRE(readings(shared) == readings(random));
    REQUIRE(difference_from_oracle(shared, 3) == "");
    copies += moves_of(shared, domains).copies;
  }
  CHECK(copies > 0);
}

TEST_CASE("a value that its source loses is copied, one that is kept is not") {
  for (const bool lost : {false, true}) {
    Builder builder("kept or lost", 2);
    const BufferId here = builder.add_buffer({.rank = Rank{0}, .transient = false, .bytes = 8});
    const BufferId there = builder.add_buffer({.rank = Rank{1}, .bytes = 8});
    builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
                {schedule::read(here), schedule::write(there)});
    if (lost) builder.add({.queue = builder.local(Rank{0})}, {schedule::write(here)});
    builder.add({.queue = builder.local(Rank{1})}, {schedule::read(there)});
    if (!lost) builder.add({.queue = builder.local(Rank{0})}, {schedule::write(here)});
    const Schedule schedule = std::move(builder).build();
    check(schedule);
    CHECK(moves_of(schedule::share_memory(schedule, {0, 0}), {0, 0}).copies == (lost ? 1 : 0));
  }
}

TEST_CASE("parts of other sizes at the two ends are copied") {
  const auto ends = [](std::vector<Bytes> where) {
    return std::make_shared<const std::vector<Bytes>>(std::move(where));
  };
  Builder builder("uneven", 2);
  const BufferId here = builder.add_buffer(
      {.rank = Rank{0}, .parts = 3, .transient = false, .bytes = 8, .ends = ends({4, 6, 8})});
  const BufferId there =
      builder.add_buffer({.rank = Rank{1}, .parts = 3, .bytes = 8, .ends = ends({2, 4, 8})});
  builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
              {schedule::read(here, 0, 3), schedule::write(there, 0, 3)});
  builder.add({.queue = builder.local(Rank{1})}, {schedule::read(there, 1)});
  const Schedule schedule = std::move(builder).build();
  const Schedule shared = schedule::share_memory(schedule, {0, 0});
  CHECK(readings(shared) == readings(schedule));
  CHECK(moves_of(shared, {0, 0}).copies == 1);
}

TEST_CASE("a value that comes back is continued where it is, and not where it was") {
  for (const bool overlaps : {false, true}) {
    Builder builder("there and back", 2);
    const BufferId a = builder.add_buffer({.rank = Rank{0}, .parts = 3, .bytes = 24});
    const BufferId b = builder.add_buffer({.rank = Rank{1}, .parts = 2, .bytes = 16});
    const BufferId c = builder.add_buffer({.rank = Rank{0}, .parts = 2, .bytes = 16});
    const QueueId local = builder.local(Rank{0});
    builder.add({.queue = local}, {schedule::write(a, 0, 3)});
    builder.add({.kind = Kind::move, .queue = builder.queue(Rank{0}, Rank{1})},
                {schedule::read(a, 0, 2), schedule::write(b, 0, 2)});
    builder.add({.kind = Kind::move, .queue = builder.queue(Rank{1}, Rank{0})},
                {schedule::read(b, 0, 2), schedule::write(overlaps ? c : a, overlaps ? 0 : 1, 2)});
    if (overlaps)  // what it reads stands where it writes
      builder.add({.queue = local}, {schedule::read(c, 0, 2), schedule::write(a, 1, 2)});
    else
      builder.add({.queue = local}, {schedule::update(a, 1, 2)});
    builder.add({.queue = local}, {schedule::read(a, 0, 3)});
    const Schedule schedule = std::move(builder).build();
    const Schedule shared = schedule::share_memory(schedule, {0, 0});
    CHECK(readings(shared) == readings(schedule));
    CHECK(difference_from_oracle(shared, 3) == "");
    for (std::size_t i = 0; i < shared.size(); ++i) {
      const auto uses = shared.uses(ActionId{i});
      if (uses.size() == 2) CHECK(uses[0].buffer != uses[1].buffer);
    }
  }
}

TEST_CASE("shared memory that cannot be is refused") {
  const Schedule stream = schedule::stream({.stages = 3, .microbatches = 2});
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)schedule::share_memory(stream, {0, 0});
             }),
             ContainsSubstring("every rank needs one memory domain") &&
                 ContainsSubstring("2 domains for 3 ranks"));
  const Schedule shared = schedule::share_memory(stream, {0, 0, 0});
  CHECK_THAT(
      test::message_of<contract_error>([&] {
        (void)slice(shared, Rank{0}, [](BufferId, const Buffer&) -> std::byte* { return nullptr; });
      }),
      ContainsSubstring("the program of ranks that share memory needs their progress counters"));
  Builder groups("groups", 2);
  groups.share_memory({0, 0});
  const BufferId mine = groups.add_buffer({.rank = Rank{0}, .transient = false});
  const BufferId other = groups.add_buffer({.rank = Rank{1}, .transient = false});
  groups.add({.kind = Kind::group, .queue = groups.local(Rank{0})},
             {schedule::update(mine), schedule::update(other)});
  const Schedule grouped = std::move(groups).build();
  std::vector<heddle::impl::ProgressCounter> progress(2);
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)slice(
                   grouped, Rank{0}, [](BufferId, const Buffer&) -> std::byte* { return nullptr; },
                   [&](Rank rank) { return &progress[+rank]; });
             }),
             ContainsSubstring("cannot see the progress of a group action") &&
                 ContainsSubstring("replace the group by its moves with expand()"));
  Builder builder("domains", 2);
  CHECK_THAT(test::message_of<contract_error>([&] {
               builder.share_memory({1, 2, 3});
             }),
             ContainsSubstring("3 domains for 2 ranks"));
}

}  // namespace test_share_memory
