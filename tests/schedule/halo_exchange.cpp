// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Halo exchanges, run from top to bottom, against what each place of a halo must hold.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
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

}  // namespace

TEST_CASE("a halo holds what its neighbours own, and nothing else is touched") {
  std::size_t exchanges = 0;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const int ranks = static_cast<int>(1 + seed % 8);
    const HaloCase test = HaloCase::draw(seed, ranks);
    const Layout& layout = test.layout;
    INFO("seed " << seed << ": " << layout);
    const std::vector<Rank>& members = layout.ranks();  // the mesh may have some of the ranks
    const BlockExchange exchange = halo_exchange(layout, ranks, sizeof(std::int32_t), test.options);
    const bool apart = seed % 3 == 0;
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
               part_offset(schedule[use.buffer], use.first);
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
    if (!schedule.empty()) ++exchanges;
    for (std::size_t r = 0; r < members.size(); ++r) {
      // Where nothing is exchanged there is nothing to be filled: what is not owned stays
      // untouched.
      std::set<std::size_t> owned;
      if (schedule.empty())
        test::for_each_element(layout, Rank{r},
                               [&](std::size_t offset, const Indices&) { owned.insert(offset); });
      for (std::size_t place = 0; place < size_of_array(layout, Rank{r}); ++place) {
        const auto meant = test.meant<std::int32_t>(Rank{r}, place, untouched, seed);
        REQUIRE((schedule.empty() ? owned.contains(place) || meant == untouched
                                  : memory[array[+members[r]]][place] == meant));
      }
    }
  }
  CHECK(exchanges > 200);  // the others are of one rank, or have no halo
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
  CHECK_THAT(test::message_of<contract_error>([&] { (void)halo_exchange(huge, 2, 8); }),
             ContainsSubstring("heddle::ArrayShape::bytes: 63 bits hold the bytes of an array ("));
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { (void)halo_exchange(layout, 6, 8, {.periodic = {true}}); }),
             ContainsSubstring("heddle::schedule::halo_exchange: each dimension is said to be "
                               "periodic, or not (1 given, 2 dimensions)"));
}

}  // namespace test_halo_exchange
