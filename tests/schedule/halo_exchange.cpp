// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Halo exchanges, run from top to bottom, against what each place of a halo must hold.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/coverage.hpp"
#include "support/halo_case.hpp"

namespace test_halo_exchange {

using namespace heddle;
using namespace heddle::schedule;
using Catch::Matchers::ContainsSubstring;
using test::HaloCase;

namespace {

using Indices = std::vector<std::int64_t>;
constexpr std::int32_t untouched = -1;

std::size_t size_of_array(const Layout& layout, Rank rank) {
  std::size_t size = 1;
  for (const std::int64_t extent : layout.extents(rank)) size *= static_cast<std::size_t>(extent);
  return size;
}

/// Runs the exchange of `test` among `ranks` ranks from top to bottom and looks at every place;
/// returns whether there was something to exchange.
bool exchanges(const HaloCase& test, int ranks, std::uint64_t seed, bool apart) {
  const Layout& layout = test.layout;
  INFO("seed " << seed << ": " << layout);
  const std::vector<Rank>& members = layout.ranks();  // the mesh may have some of the ranks
  const BlockExchange exchange = halo_exchange(layout, ranks, sizeof(std::int32_t), test.options);
  const Schedule schedule = to_schedule(exchange, "halo", Scalar::i32, apart);
  std::vector<std::vector<std::int32_t>> memory;
  std::vector<std::size_t> array(static_cast<std::size_t>(ranks));
  for (const Buffer& buffer : schedule.buffers()) {
    if (!buffer.transient) array[+buffer.rank] = memory.size();
    memory.emplace_back(buffer.bytes / sizeof(std::int32_t), untouched);
  }
  for (std::size_t r = 0; r < members.size() && !schedule.empty(); ++r)
    test::for_each_element(layout, Rank{r}, [&](std::size_t offset, const Indices& global) {
      memory[array[+members[r]]][offset] =
          test::value_of<std::int32_t>(global, test::part_of(layout, Rank{r}), seed);
    });
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const auto uses = schedule.uses(ActionId{i});
    const auto at = [&](const Use& use) {
      return reinterpret_cast<std::byte*>(memory[+use.buffer].data()) +
             schedule::part_offset(schedule[use.buffer], use.first);
    };
    std::byte *first = at(uses[0]), *const second = at(uses[1]);
    const Action& action = schedule[ActionId{i}];
    if (action.kind == Kind::move) {
      std::memcpy(second, first, schedule.bytes(uses[0]));
      const Queue& queue = schedule[action.queue];
      if (!queue.local()) REQUIRE(pairs.emplace(queue.from.value, queue.to.value).second);
      // Apart, no message touches an array.
      if (apart)
        REQUIRE((schedule[uses[0].buffer].transient && schedule[uses[1].buffer].transient));
    } else {
      for (const StridedBlock& block : exchange.pieces[+action.item].blocks) {
        if (uses[0].access() == Access::write)
          pack(block, second, first);
        else
          unpack(block, first, second);
        first += block.bytes();
      }
    }
  }
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < members.size(); ++r) {
    // Where nothing is exchanged there is nothing to be filled: what is not owned stays
    // untouched.
    std::set<std::size_t> owned;
    if (schedule.empty())
      test::for_each_element(layout, Rank{r},
                             [&](std::size_t offset, const Indices&) { owned.insert(offset); });
    for (std::size_t place = 0; place < size_of_array(layout, Rank{r}); ++place) {
      const auto meant = test.meant<std::int32_t>(Rank{r}, place, untouched, seed);
      wrong += !(schedule.empty() ? owned.contains(place) || meant == untouched
                                  : memory[array[+members[r]]][place] == meant);
    }
  }
  REQUIRE(wrong == 0);
  return !schedule.empty();
}

}  // namespace

TEST_CASE("a halo holds what its neighbours own, and nothing else is touched") {
  std::size_t exchanged = 0;
  test::Coverage coverage("random halo exchanges");
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const int ranks = static_cast<int>(1 + seed % 8);
    const HaloCase test = HaloCase::draw(seed, ranks);
    exchanged += exchanges(test, ranks, seed, seed / 8 % 3 == 0);
    test.count(coverage, ranks);
  }
  CHECK(exchanged > 200);  // the others are of one rank, or have no halo
  std::cout << coverage;
  CHECK(coverage.rarer_than(10) == "");
}

TEST_CASE("halos in every dimension have edges and corners, from others and from the rank itself") {
  // Axes of one rank are their own neighbours where the dimension is periodic.
  for (const auto& [a, b, c] : {std::array{2, 2, 2}, std::array{1, 1, 1}, std::array{2, 1, 2},
                                std::array{1, 3, 1}, std::array{3, 2, 3}})
    for (const std::int64_t width : {1, 2, 3})
      for (const bool around : {false, true})
        for (const bool corners : {true, false}) {
          const MeshShape mesh{{"x", a}, {"y", b}, {"z", c}};
          const Layout layout(mesh, {6, 5, 7},
                              {Shard{0, {}, width}, Shard{1, {}, width}, Shard{2, {}, width}});
          const std::vector<bool> periodic(3, around);
          exchanges({layout, {periodic, corners}}, a * b * c, 1, width == 2);
        }
  // Two of three dimensions are periodic, and there is a fourth.
  const MeshShape mesh{{"x", 2}, {"y", 2}, {"z", 2}, {"t", 1}};
  const Layout layout(mesh, {4, 3, 4, 3},
                      {Shard{0, {}, 1}, Shard{1, {}, 1}, Shard{2, {}, 1}, Shard{3, {}, 1}});
  exchanges({layout, {{true, false, true, true}, true}}, 8, 2, false);
}

TEST_CASE("a corner of three dimensions comes from the rank that is next in all three") {
  const MeshShape mesh{{"x", 2}, {"y", 2}, {"z", 2}};
  const Layout layout(mesh, {4, 4, 4}, {Shard{0, {}, 1}, Shard{1, {}, 1}, Shard{2, {}, 1}});
  const BlockExchange exchange = halo_exchange(layout, 8, 1);
  // Each rank has 2 x 2 x 2 and takes 3 faces of 4, 3 edges of 2 and 1 corner, from 7 ranks.
  CHECK(exchange.bytes() == 8 * (3 * 4 + 3 * 2 + 1));
  CHECK(halo_exchange(layout, 8, 1, {.corners = false}).bytes() == 8 * 3 * 4);
  // All around, the halo is all of 4 x 4 x 4 that the rank does not own itself.
  CHECK(halo_exchange(layout, 8, 1, {.periodic = {true, true, true}}).bytes() ==
        8 * (4 * 4 * 4 - 2 * 2 * 2));
}

TEST_CASE("a message has the bytes of the faces that it carries") {
  // 4 x 6 on 2 x 3, with a halo of 1: each rank has 2 x 2.
  const MeshShape mesh{{"rows", 2}, {"columns", 3}};
  const Layout layout(mesh, {4, 6}, {Shard{0, {}, 1}, Shard{1, {}, 1}});
  // 3 faces of 2 across rows, 4 of 2 across columns, 8 corners, each both ways but for corners.
  CHECK(halo_exchange(layout, 6, 8).bytes() == 8 * (2 * 3 * 2 + 2 * 4 * 2 + 8));
  CHECK(halo_exchange(layout, 6, 8, {.corners = false}).bytes() == 8 * (2 * 3 * 2 + 2 * 4 * 2));
  // All around: 4 messages of 4 faces and 4 corners, some of which go to the same rank.
  CHECK(halo_exchange(layout, 6, 8, {.periodic = {true, true}}).bytes() == 8 * 6 * (4 * 2 + 4));
  CHECK(halo_exchange(layout.with({Shard{0}, Shard{1}}), 6, 8).steps.empty());
  const Layout huge(MeshShape{{"all", 2}}, {std::int64_t{1} << 61}, {Shard{0, {}, 1}});
  CHECK_THAT(
      test::message_of<contract_error>([&] { (void)halo_exchange(huge, 2, 8); }),
      ContainsSubstring(
          "heddle::SharedRegion::Array::bytes: the size of an array does not fit in 63 bits ("));
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { (void)halo_exchange(layout, 6, 8, {.periodic = {true}}); }),
             ContainsSubstring("heddle::schedule::halo_exchange: periodic needs one value for each "
                               "dimension (1 given, 2 dimensions)"));
}

}  // namespace test_halo_exchange
