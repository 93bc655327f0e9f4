// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Every algorithm of every collective leaves what the collective says, bit by bit, and its list
// executed over threads does what it does in one.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/schedule/collective/group_level.hpp>

#include "support/complaint.hpp"
#include "support/execution.hpp"

namespace test_collective_results {

using namespace heddle;
using schedule::Algorithm;
using schedule::Collective;
using schedule::CollectiveOptions;
using test::Storage;

namespace {

using Bits = std::vector<std::byte>;

Bits part_of(Storage& storage, BufferId id, Bytes from, Bytes bytes) {
  const std::byte* const begin = storage.begin(id) + from;
  return {begin, begin + bytes};
}

Bits sum_of(Bits a, const Bits& b) {
  for (std::size_t i = 0; i + 8 <= a.size(); i += 8) {
    std::uint64_t x, y;
    std::memcpy(&x, &a[i], 8);
    std::memcpy(&y, &b[i], 8);
    x += y;
    std::memcpy(&a[i], &x, 8);
  }
  return a;
}

/// Sizes of the blocks of the P ranks (of all_to_all P * P), as the options give or imply them.
std::vector<Bytes> blocks_of(Collective collective, const CollectiveOptions& options) {
  if (!options.blocks.empty()) return options.blocks;
  const auto p = static_cast<Bytes>(options.ranks);
  const Bytes element = options.element != 0 ? options.element : size_of(options.type);
  std::vector<Bytes> blocks;
  for (Bytes row = 0; row < (collective == Collective::all_to_all ? p : 1); ++row)
    for (Bytes b = 0; b < p; ++b)
      blocks.push_back((options.bytes / element / p + (b < options.bytes / element % p)) * element);
  return blocks;
}

Bytes sum(const std::vector<Bytes>& sizes, std::size_t begin, std::size_t end) {
  Bytes all = 0;
  for (std::size_t i = begin; i < end; ++i) all += sizes[i];
  return all;
}

/// Where a run of the whole list in one thread leaves other bytes than the collective shall.
std::string wrong(Collective collective, const Schedule& schedule,
                  const CollectiveOptions& options) {
  Storage before(schedule, std::byte{0x5a});
  Storage after(schedule, std::byte{0xa5});
  test::interpret(schedule, after, 1);
  const auto p = static_cast<std::size_t>(options.ranks);
  const std::size_t root = +options.root;
  const std::vector<Bytes> blocks = blocks_of(collective, options);
  const Bytes all = sum(blocks, 0, p);
  const auto data = [&](Storage& storage, std::size_t rank) {
    return part_of(storage, BufferId{rank}, 0, all);
  };
  Bits total;
  if (collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
      collective == Collective::reduce) {
    total = data(before, 0);
    for (std::size_t r = 1; r < p; ++r) total = sum_of(total, data(before, r));
  }
  const auto is = [&](BufferId id, Bytes from, const Bits& expected) {
    return part_of(after, id, from, expected.size()) == expected;
  };
  for (std::size_t r = 0; r < p; ++r) {
    const Bytes at = sum(blocks, 0, r);
    const auto block = [&](const Bits& bits, std::size_t b) {
      const auto from = static_cast<std::ptrdiff_t>(sum(blocks, 0, b));
      return Bits(bits.begin() + from,
                  bits.begin() + from + static_cast<std::ptrdiff_t>(blocks[b]));
    };
    bool right = true;
    switch (collective) {
      case Collective::all_reduce: right = is(BufferId{r}, 0, total); break;
      case Collective::reduce_scatter: right = is(BufferId{r}, at, block(total, r)); break;
      case Collective::all_gather:
        for (std::size_t b = 0; b < p; ++b)
          right = right &&
                  (options.apart ? is(BufferId{p + r}, sum(blocks, 0, b),
                                      part_of(before, BufferId{b}, 0, blocks[b]))
                                 : is(BufferId{r}, sum(blocks, 0, b), block(data(before, b), b)));
        break;
      case Collective::all_to_all:
        for (std::size_t q = 0, to = 0; q < p; to += blocks[q * p + r], ++q)
          right = right && is(BufferId{p + r}, to,
                              part_of(before, BufferId{q}, sum(blocks, q * p, q * p + r),
                                      blocks[q * p + r]));
        break;
      case Collective::broadcast: right = is(BufferId{r}, 0, data(before, root)); break;
      case Collective::reduce: right = r != root || is(BufferId{r}, 0, total); break;
      case Collective::gather:
        right = is(BufferId{p}, at, part_of(before, BufferId{r}, 0, blocks[r]));
        break;
      case Collective::scatter:
        right = is(BufferId{1 + r}, 0, part_of(before, BufferId{0}, at, blocks[r]));
        break;
      case Collective::barrier: break;
      case Collective::inclusive_scan:
      case Collective::exclusive_scan: {
        const std::size_t last = collective == Collective::inclusive_scan ? r + 1 : r;
        Bits merged = data(before, 0);
        for (std::size_t q = 1; q < last; ++q) merged = sum_of(merged, data(before, q));
        right = is(BufferId{r}, 0, merged);
        break;
      }
    }
    if (!right) return text(schedule.name(), ": rank ", r, " has something else");
  }
  return {};
}

template <class Check>
void for_all(Check&& check) {
  for (std::size_t c = 0; c < schedule::collective_count; ++c)
    for (std::size_t a = 0; a < schedule::algorithm_count; ++a)
      check(static_cast<Collective>(c), static_cast<Algorithm>(a));
}

/// Options of such sizes; none where the algorithm does not perform the collective. Inputs of an
/// all-gather lie in the outputs, and apart.
void expect_right(Collective collective, Algorithm algorithm, const CollectiveOptions& options) {
  if (!schedule::why_not(collective, algorithm, options).empty()) return;
  if (collective == Collective::all_gather && !options.apart) {
    CollectiveOptions apart = options;
    apart.apart = true;
    expect_right(collective, algorithm, apart);
  }
  const Schedule schedule = schedule::collective(collective, algorithm, options);
  INFO(schedule.name() << ", " << options.bytes << " bytes, root " << options.root);
  REQUIRE(wrong(collective, schedule, options) == "");
  REQUIRE(test::difference_from_oracle(schedule, 2) == "");
}

}  // namespace

TEST_CASE("every algorithm leaves what its collective says") {
  for_all([](Collective collective, Algorithm algorithm) {
    for (const int p : {1, 2, 3, 4, 7, 8})
      for (const Bytes elements : {0, 1, 5, 101})
        for (const int chunks : {1, 3})
          expect_right(collective, algorithm,
                       {.ranks = p,
                        .bytes = 8 * elements,
                        .type = Scalar::i64,
                        .chunks = chunks,
                        .root = Rank{(p - 1) / 2}});
  });
}

TEST_CASE("so it does with much data") {
  for_all([](Collective collective, Algorithm algorithm) {
    for (const int p : {7, 8})
      expect_right(collective, algorithm,
                   {.ranks = p,
                    .bytes = Bytes{8} * 20011,
                    .type = Scalar::i64,
                    .chunks = 3,
                    .root = Rank{p - 2}});
  });
}

TEST_CASE("levels of groups leave the same, each by any algorithm that can") {
  using schedule::GroupLevel;
  const auto all = [](auto&& check) {
    for (std::size_t a = 0; a < schedule::algorithm_count; ++a) check(static_cast<Algorithm>(a));
  };
  int performed = 0;
  const auto expect_levels = [&](std::vector<GroupLevel> levels) {
    int p = 1;
    for (const GroupLevel& level : levels) p *= level.ranks;
    for (std::size_t c = 0; c < schedule::collective_count; ++c) {
      const CollectiveOptions options{.ranks = p,
                                      .bytes = Bytes{8 * 61},
                                      .type = Scalar::i64,
                                      .chunks = 2,
                                      .root = Rank{p - 2},
                                      .levels = levels};
      performed +=
          schedule::why_not(static_cast<Collective>(c), Algorithm::hierarchical, options).empty();
      expect_right(static_cast<Collective>(c), Algorithm::hierarchical, options);
    }
  };
  all([&](Algorithm inner) {
    all([&](Algorithm outer) {
      for (const auto& [n, groups] : {std::pair{2, 2}, {3, 2}, {2, 4}, {4, 2}})
        expect_levels({{n, inner}, {groups, outer}});
    });
  });
  CHECK(performed == 4 * (7 * 9 + 5 * 5 + 6 * 6 + 4 * 4 + 3 * 3));
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::recursive_halving, Algorithm::star,
                                    Algorithm::bidirectional_ring})
    expect_levels({{2, Algorithm::direct}, {1, algorithm}, {2, algorithm}, {2, Algorithm::ring}});
  expect_levels({{3, Algorithm::ring}, {2, Algorithm::binomial_tree}, {2, Algorithm::double_tree}});
}

TEST_CASE("groups of several sizes, and in turns, leave the same") {
  using Groups = std::vector<std::uint32_t>;
  const auto number = [](Groups groups) { return static_cast<int>(std::ranges::max(groups)) + 1; };
  const auto each_size = [](auto&& check) {
    for (const Bytes elements : {0, 1, 13, 1009})
      for (const int chunks : {1, 3}) check(8 * elements, chunks);
  };
  int performed = 0;
  const auto expect_levels = [&](std::vector<schedule::GroupLevel> levels, int ranks, Rank root,
                                 Bytes bytes, int chunks) {
    for (std::size_t c = 0; c < schedule::collective_count; ++c) {
      const CollectiveOptions options{.ranks = ranks,
                                      .bytes = bytes,
                                      .type = Scalar::i64,
                                      .chunks = chunks,
                                      .root = root,
                                      .levels = levels};
      const auto collective = static_cast<Collective>(c);
      if (!schedule::why_not(collective, Algorithm::hierarchical, options).empty()) continue;
      ++performed;
      if (chunks == 2 && root == Rank{ranks - 1})
        expect_right(collective, Algorithm::hierarchical, options);
      const Schedule made = schedule::collective(collective, Algorithm::hierarchical, options);
      INFO(made.name() << " of " << levels[0] << ", root " << root);
      REQUIRE(wrong(collective, made, options) == "");
      const Schedule cut =
          schedule::impl::collective_in_segments(collective, Algorithm::hierarchical, options);
      REQUIRE(wrong(collective, cut, options) == "");
    }
  };
  constexpr int uneven = 7 * 9 + 4 * 4 + 3 * 3, even = uneven + 5 * 5 + 6 * 6;
  int expected = 0;
  for (const auto& [groups, ways] : {std::pair{Groups{0, 0, 0, 1}, uneven},
                                     {{0, 0, 1, 2}, uneven},
                                     {{0, 0, 0, 1, 1, 1, 2}, uneven},
                                     {{0, 0, 0, 0, 0, 1, 1}, uneven},
                                     {{0, 1, 0, 1}, even},
                                     {{0, 1, 2, 0, 1, 2}, even},
                                     {{0, 1, 1, 0}, even},
                                     {{0, 1, 0, 0, 2, 1, 0}, uneven},
                                     {{0, 1, 2}, even},
                                     {{0, 0, 0}, even},
                                     {{0, 1, 1, 0, 1, 2, 1, 1, 2}, uneven}}) {
    const auto ranks = static_cast<int>(groups.size());
    const auto last = Rank{ranks - 1};
    for (std::size_t a = 0; a < schedule::algorithm_count; ++a)
      for (std::size_t b = 0; b < schedule::algorithm_count; ++b)
        expect_levels({schedule::level_of(groups, static_cast<Algorithm>(a)),
                       {number(groups), static_cast<Algorithm>(b)}},
                      ranks, last, 8 * 61, 2);
    CHECK(performed == (expected += ways));
    for (const Algorithm inner : {Algorithm::direct, Algorithm::binomial_tree, Algorithm::ring})
      for (int root = 0; root < ranks; ++root)
        each_size([&](Bytes bytes, int chunks) {
          expect_levels(
              {schedule::level_of(groups, inner), {number(groups), Algorithm::binomial_tree}},
              ranks, Rank{root}, bytes, chunks);
        });
    expected = performed;
  }
  // Of three levels each may be such.
  using schedule::level_of;
  for (const Algorithm a : {Algorithm::direct, Algorithm::star, Algorithm::bidirectional_ring})
    for (const Algorithm b : {Algorithm::ring, Algorithm::binomial_tree, Algorithm::double_tree})
      for (const Groups& middle : {Groups{0, 1, 0, 1}, {0, 0, 1, 1}, {0, 1, 1, 1}})
        for (int root = 0; root < 12; ++root) {
          expect_levels({level_of({0, 1, 0, 2, 2, 3, 0}, a), level_of(middle, a), {2, b}}, 7,
                        Rank{root % 7}, 8 * 61, 2);
          expect_levels({level_of({0, 1, 2, 3, 0, 1, 2, 3, 3, 2, 1, 0}, a),
                         level_of(middle, Algorithm::ring),
                         {2, b}},
                        12, Rank{root}, 8 * 61, 1);
        }
}

TEST_CASE("what groups in turns have is each rank's own block, of any size") {
  using Groups = std::vector<std::uint32_t>;
  for (const Groups& groups : {Groups{0, 1, 0, 1}, {0, 1, 1, 0}, {0, 1, 2, 2, 0, 1}}) {
    const auto ranks = static_cast<int>(groups.size());
    CollectiveOptions options{
        .ranks = ranks,
        .type = Scalar::i64,
        .levels = {schedule::level_of(groups, Algorithm::ring), {ranks / 2, Algorithm::direct}}};
    for (int b = 0; b < ranks; ++b) options.blocks.push_back(8 * static_cast<Bytes>(b * b % 5));
    for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
      REQUIRE(schedule::why_not(collective, Algorithm::hierarchical, options).empty());
      expect_right(collective, Algorithm::hierarchical, options);
    }
  }
}

TEST_CASE("a level of any numbers, as it is written") {
  using schedule::GroupLevel;
  const auto level = [](std::vector<std::uint32_t> numbers) {
    return schedule::level_of(numbers, Algorithm::star);
  };
  CHECK(level({7, 7, 3, 3}) == GroupLevel{2, Algorithm::star});
  CHECK(level({4}) == GroupLevel{1, Algorithm::star});
  CHECK(level({9, 2, 9, 2}) == GroupLevel{2, Algorithm::star, {0, 1, 0, 1}});
  CHECK(level({9, 9, 9, 2}) == GroupLevel{3, Algorithm::star, {0, 0, 0, 1}});
  CHECK(level({9, 2, 2}) == GroupLevel{2, Algorithm::star, {0, 1, 1}});
  CHECK(text(level({7, 7, 3, 3})) == "2 by star");
  CHECK(text(level({9, 9, 9, 2})) == "3 by star in groups 3x0 1");
  CHECK(text(level({9, 2, 9, 2})) == "2 by star in groups 0 1 0 1");
}

TEST_CASE("blocks may be uneven, and empty") {
  for_all([](Collective collective, Algorithm algorithm) {
    for (const int p : {1, 2, 3, 4, 7}) {
      CollectiveOptions options{.ranks = p, .type = Scalar::i64, .root = Rank{p - 1}};
      const int count = collective == Collective::all_to_all ? p * p : p;
      for (int b = 0; b < count; ++b) options.blocks.push_back(8 * static_cast<Bytes>(b * b % 5));
      expect_right(collective, algorithm, options);
    }
  });
}

TEST_CASE("elements of several bytes stay together") {
  for_all([](Collective collective, Algorithm algorithm) {
    const CollectiveOptions options{
        .ranks = 3, .bytes = 7 * 24, .type = Scalar::i64, .element = 24, .chunks = 2};
    expect_right(collective, algorithm, options);
    if (!schedule::why_not(collective, algorithm, options).empty()) return;
    const Schedule schedule = schedule::collective(collective, algorithm, options);
    for (const Buffer& buffer : schedule.buffers())
      for (std::uint32_t part = 0; part < buffer.parts; ++part)
        REQUIRE(schedule::part_bytes(buffer, part, 1) % 24 == 0);
  });
}

TEST_CASE("who sends its own block only reads the input of an all-gather, and copies meanwhile") {
  const Schedule gather =
      schedule::collective(Collective::all_gather, Algorithm::ring,
                           {.ranks = 4, .bytes = 32, .type = Scalar::i64, .apart = true});
  int messages = 0, copies = 0, from_inputs = 0;
  for (std::size_t i = 0; i < gather.size(); ++i) {
    const ActionId id{i};
    const Queue queue = gather[gather[id].queue];
    const bool input = gather[gather[gather.uses(id)[0].buffer].label] == "input";
    if (!queue.local()) {
      ++messages;
      from_inputs += input;
      CHECK((!input || gather.after(id).empty()));  // waits for nothing
    } else {
      ++copies;
      CHECK(input);
    }
  }
  CHECK(messages == 4 * 3);
  CHECK(from_inputs == 4);
  CHECK(copies == 4);
}

TEST_CASE("a group action is expanded by any algorithm, or left to one that cuts it so") {
  Builder builder("sum", 3);
  std::vector<Use> members;
  for (int r = 0; r < 3; ++r)
    members.push_back(schedule::update(builder.add_buffer(
        {.rank = Rank{r}, .type = Scalar::i64, .transient = false, .bytes = 8 * 11})));
  builder.add({Kind::group, builder.local(Rank{0})}, members);
  const Schedule sum = std::move(builder).build();
  for (std::size_t a = 0; a < schedule::algorithm_count; ++a) {
    const schedule::CollectiveForm form{Collective::all_reduce, static_cast<Algorithm>(a), 2};
    if (!form.why_not(3).empty()) continue;
    const Schedule expanded = schedule::expand(sum, form);
    REQUIRE(wrong(Collective::all_reduce, expanded,
                  {.ranks = 3, .bytes = 8 * 11, .type = Scalar::i64}) == "");
    REQUIRE(test::difference_from_oracle(expanded, 2) == "");
  }
  CHECK(test::message_of<contract_error>([&] {
          Builder again("again", 3);
          for (const Buffer& buffer : sum.buffers()) again.add_buffer(buffer);
          schedule::CollectiveForm{}(again, members, Stage{0});
        }) ==
        "heddle::schedule::CollectiveForm: a member has the wrong number of parts (member 0 of 3 "
        "has 1 parts, "
        "expected 3)");
}

TEST_CASE("what cannot be is refused, and says why") {
  const auto all_reduce = [](const CollectiveOptions& options) {
    return
        [options] { (void)schedule::collective(Collective::all_reduce, Algorithm::ring, options); };
  };
  using test::message_of;
  CHECK(message_of<infeasible>([] {
          (void)schedule::collective(Collective::barrier, Algorithm::ring, {.ranks = 2});
        }) ==
        "heddle::schedule::CollectiveForm: no barrier of 2 ranks by ring (the algorithm does not "
        "perform this collective)");
  CHECK(message_of<infeasible>(all_reduce({.ranks = 2, .apart = true})) ==
        "heddle::schedule::CollectiveForm: no all_reduce of 2 ranks by ring (only all_gather has "
        "inputs apart)");
  CHECK(message_of<infeasible>(all_reduce({.ranks = 3, .root = Rank{3}})) ==
        "heddle::schedule::CollectiveForm: no all_reduce of 3 ranks by ring (the root is rank 3)");
  const auto levels = [](std::vector<schedule::GroupLevel> of) {
    return [of] {
      (void)schedule::collective(Collective::reduce_scatter, Algorithm::hierarchical,
                                 {.ranks = 6, .levels = of});
    };
  };
  const std::string none =
      "heddle::schedule::CollectiveForm: no reduce_scatter of 6 ranks by hierarchical ";
  CHECK(message_of<infeasible>(levels({})) ==
        none + "(its 0 levels must end in one group, but leave 6)");
  CHECK(message_of<infeasible>(levels({{3}})) ==
        none + "(its 1 levels must end in one group, but leave 2)");
  CHECK(message_of<infeasible>(levels({{4}, {2}})) ==
        none + "(level 0 has groups of 4 members, which do not divide its 6 members)");
  CHECK(message_of<infeasible>(levels({{2}, {2}})) ==
        none + "(level 1 has groups of 2 members, which do not divide its 3 members)");
  CHECK(message_of<infeasible>(levels({{-1}, {-6}})) ==
        none + "(level 0 has groups of -1 members, which do not divide its 6 members)");
  const auto dealt = [&](int ranks, std::vector<std::uint32_t> groups) {
    return message_of<infeasible>(levels({{ranks, Algorithm::ring, std::move(groups)}, {2}}));
  };
  CHECK(dealt(3, {0, 0, 0, 1, 1}) == none + "(level 0 names the groups of 5 members, but has 6)");
  CHECK(dealt(3, {0, 0, 0, 1, 1, 1, 0}) ==
        none + "(level 0 names the groups of 7 members, but has 6)");
  CHECK(dealt(3, {0, 2, 0, 2, 0, 2}) ==
        none + "(level 0 has a member in group 2 before one in group 1)");
  CHECK(dealt(3, {1, 0, 1, 0, 1, 0}) ==
        none + "(level 0 has a member in group 1 before one in group 0)");
  CHECK(dealt(3, {0, 0, 0, 0xffffffff, 1, 1}) ==
        none + "(level 0 has a member in group 4294967295 before one in group 1)");
  CHECK(dealt(2, {0, 1, 0, 1, 0, 1}) == none + "(level 0 has groups of up to 3 members, not 2)");
  CHECK(dealt(2, {0, 1, 2, 0, 1, 2}) ==
        none + "(level 1 has groups of 2 members, which do not divide its 3 members)");
  CHECK(dealt(4, {0, 0, 0, 0, 1, 1}) ==
        none + "(level 0 needs groups of equal size, but has groups of 2 to 4 members)");
  CHECK(message_of<infeasible>(levels({{3}, {1, Algorithm::ring, {0, 1}}})) ==
        none + "(its 2 levels must end in one group, but leave 2)");
  CHECK(message_of<infeasible>(levels({{3, Algorithm::star}, {2}})) ==
        none + "(level 0 is star, which does not perform its part of it)");
  CHECK(message_of<infeasible>(levels({{3}, {2, Algorithm::hierarchical}})) ==
        none + "(level 1 is hierarchical, which does not perform it)");
  CHECK(message_of<contract_error>(all_reduce({.ranks = 2, .bytes = 9})) ==
        "heddle::schedule::collective: the bytes are not whole elements (9 bytes, elements of 8)");
  CHECK(
      message_of<contract_error>(all_reduce({.ranks = 2, .bytes = 9, .element = 9})) ==
      "heddle::schedule::collective: options.element must be whole elements of the type (9 bytes, "
      "elements of 8)");
  CHECK(message_of<contract_error>(all_reduce({.ranks = 2, .blocks = {8}})) ==
        "heddle::schedule::collective: CollectiveOptions::blocks has the wrong length "
        "(expected 2 blocks, got 1)");
  CHECK(message_of<contract_error>(all_reduce({.ranks = 2, .chunks = 0})) ==
        "heddle::schedule::CollectiveForm: a block needs at least one chunk (chunks = 0)");
  CHECK_THROWS_AS(all_reduce({.ranks = 0})(), contract_error);
}

}  // namespace test_collective_results
