// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// FreeRanges against a map that is searched from end to end, step by step.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/memory/source/free_ranges.hpp>

namespace test_free_ranges {

using heddle::memory::FreeRanges;

namespace {

/// The same, as simple as can be.
struct Reference {
  std::map<std::uintptr_t, std::size_t> free;

  std::optional<std::uintptr_t> take(std::size_t bytes, std::size_t alignment) {
    auto best = free.end();
    std::uintptr_t found = 0;
    for (auto range = free.begin(); range != free.end(); ++range) {
      const std::uintptr_t aligned = (range->first + alignment - 1) / alignment * alignment;
      if (aligned + bytes > range->first + range->second) continue;
      if (best != free.end() && best->second <= range->second) continue;
      best = range;
      found = aligned;
    }
    if (best == free.end()) return std::nullopt;
    const auto [begin, whole] = *best;
    free.erase(best);
    if (found > begin) free[begin] = found - begin;
    if (found + bytes < begin + whole) free[found + bytes] = begin + whole - found - bytes;
    return found;
  }
  void give_back(std::uintptr_t begin, std::size_t bytes) {
    auto range = free.emplace(begin, bytes).first;
    const auto above = std::next(range);
    if (above != free.end() && above->first == begin + bytes) {
      range->second += above->second;
      free.erase(above);
    }
    if (range == free.begin()) return;
    const auto below = std::prev(range);
    if (below->first + below->second != begin) return;
    below->second += range->second;
    free.erase(range);
  }
};

void require_equal(const FreeRanges& ranges, const Reference& reference) {
  std::map<std::uintptr_t, std::size_t> found;
  for (auto range = ranges.next_free(0); range; range = ranges.next_free(range->begin + 1))
    found[range->begin] = range->bytes;
  REQUIRE(found == reference.free);
  std::size_t sum = 0;
  std::size_t largest = 0;
  for (const auto& [begin, bytes] : found) {
    sum += bytes;
    largest = std::max(largest, bytes);
  }
  REQUIRE(ranges.free_bytes() == sum);
  REQUIRE(ranges.largest() == largest);
}

}  // namespace

TEST_CASE("a range is the smallest that fits, the lowest of equal ones") {
  FreeRanges ranges(1000, 2050);
  REQUIRE(ranges.take(100, 1) == 1000);
  REQUIRE(ranges.take(900, 1) == 1100);
  REQUIRE(ranges.take(50, 1) == 2000);
  REQUIRE(ranges.take(950, 1) == 2050);
  REQUIRE(ranges.take(50, 1) == 3000);
  CHECK_FALSE(ranges.take(1, 1));
  CHECK(ranges.largest() == 0);
  ranges.give_back(1000, 100);
  ranges.give_back(2000, 50);
  ranges.give_back(3000, 50);
  CHECK(ranges.take(40, 1) == 2000);
  CHECK(ranges.take(50, 1) == 3000);
  CHECK(ranges.take(1, 1) == 2040);
  CHECK(ranges.take(60, 64) == 1024);
  CHECK(ranges.take(60, 8) == std::nullopt);
  CHECK(ranges.take(16, 64) == std::nullopt);
  CHECK(ranges.take(16, 8) == 1000);
  CHECK(ranges.free_bytes() == 8 + 16 + 9);
}

TEST_CASE("free ranges join, also where they have moved to another") {
  FreeRanges ranges(1, 3);
  CHECK(ranges.take(4, 1) == std::nullopt);
  CHECK(ranges.take(1, 2) == 2);
  CHECK(ranges.largest() == 1);
  FreeRanges moved(std::move(ranges));
  moved.give_back(2, 1);
  CHECK(moved.largest() == 3);
  CHECK(moved.next_free(0) == FreeRanges::Range{1, 3});
  CHECK(moved.next_free(2) == std::nullopt);
  CHECK(moved.take(3, 1) == 1);
  CHECK(moved.free_bytes() == 0);
}

TEST_CASE("random blocks are where a search from end to end finds them") {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const std::uintptr_t begin = random() % 5000;
    const std::size_t size = 1 + random() % (std::size_t{1} << (4 + random() % 13));
    FreeRanges ranges(begin, size);
    Reference reference{{{begin, size}}};
    std::vector<std::pair<std::uintptr_t, std::size_t>> blocks;
    for (int step = 0; step < 1500; ++step) {
      if (random() % 2 == 0) {
        const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? 4096 : 300);
        const std::size_t alignment = std::size_t{1} << (random() % 11);
        const auto found = ranges.take(bytes, alignment);
        REQUIRE(found == reference.take(bytes, alignment));
        if (found) blocks.emplace_back(*found, bytes);
      } else if (!blocks.empty()) {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        ranges.give_back(blocks.back().first, blocks.back().second);
        reference.give_back(blocks.back().first, blocks.back().second);
        blocks.pop_back();
      }
      if (step % 8 == 0) require_equal(ranges, reference);
    }
    for (const auto& [block, bytes] : blocks) ranges.give_back(block, bytes);
    CHECK(ranges.largest() == size);
  }
}

TEST_CASE("many small blocks all join again") {
  constexpr std::size_t count = 20'000;
  FreeRanges ranges(0, 16 * count);
  std::vector<std::uintptr_t> blocks;
  for (std::size_t i = 0; i < count; ++i) blocks.push_back(ranges.take(16, 16).value());
  CHECK(ranges.free_bytes() == 0);
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937(7));
  for (const std::uintptr_t block : blocks) ranges.give_back(block, 16);
  CHECK(ranges.largest() == 16 * count);
  CHECK(ranges.take(16 * count, 1) == 0);
}

}  // namespace test_free_ranges
