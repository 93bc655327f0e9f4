// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Coloured: the starts of large blocks are spread, and all go back.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory/source/coloured.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/source/segment.hpp>

#include "memory/conformance.hpp"
#include "memory/failing.hpp"
#include "support/complaint.hpp"

namespace test_coloured {

namespace hd = heddle;
namespace memory = heddle::memory;
using hd::test::message_of;

namespace {

std::size_t place(const void* block, std::size_t period) {
  return reinterpret_cast<std::uintptr_t>(block) % period;
}

}  // namespace

TEST_CASE("coloured blocks conform") {
  memory::Coloured pages(memory::Pages{});
  memory_test::conforms(pages, 1 << 20);
  memory_test::Failing heap;
  memory::Coloured fine(heap, 1024, 16);
  memory_test::conforms(fine, 1 << 18);
  CHECK(heap.blocks() == 0);
  CHECK(heap.wrong() == 0);
  memory::Segment segment(std::size_t{32} << 20);
  memory::Coloured cut(segment, 4096, 256);
  memory_test::conforms(cut, 1 << 20);
  CHECK(segment.used() == 0);
}

TEST_CASE("large blocks take every place of a period in turn, and neighbours lie far apart") {
  memory::Coloured coloured(memory::Pages{}, 32768, 64);
  std::set<std::size_t> places;
  std::vector<std::size_t> in_turn;
  std::vector<void*> blocks;
  for (int i = 0; i < 512; ++i) {
    blocks.push_back(coloured.allocate(40'000, 8));
    in_turn.push_back(place(blocks.back(), 32768));
    places.insert(in_turn.back());
  }
  CHECK(places.size() == 512);
  // The golden section: of n places one behind the other two are at least 1/(n sqrt 5) apart.
  for (const std::size_t count : {4U, 8U, 12U})
    for (std::size_t first = 0; first + count <= in_turn.size(); ++first) {
      std::vector<std::size_t> some(in_turn.begin() + static_cast<std::ptrdiff_t>(first),
                                    in_turn.begin() + static_cast<std::ptrdiff_t>(first + count));
      std::sort(some.begin(), some.end());
      std::size_t nearest = some.front() + 32768 - some.back();
      for (std::size_t i = 1; i < count; ++i) nearest = std::min(nearest, some[i] - some[i - 1]);
      REQUIRE(nearest >= 32768 / (3 * count));
    }
  for (void* const block : blocks) coloured.deallocate(block, 40'000, 8);
}

TEST_CASE("an alignment keeps to its multiples, and one of a period to none but its own") {
  memory::Coloured coloured(memory::Pages{}, 32768, 64);
  std::set<std::size_t> places;
  for (int i = 0; i < 16; ++i) {
    void* const block = coloured.allocate(32768, 4096);
    places.insert(place(block, 32768));
    coloured.deallocate(block, 32768, 4096);
  }
  CHECK(places == std::set<std::size_t>{0, 4096, 8192, 12288, 16384, 20480, 24576, 28672});
  void* const block = coloured.allocate(32768, 32768);
  CHECK(place(block, 32768) == 0);
  coloured.deallocate(block, 32768, 32768);
}

TEST_CASE("small blocks are those of the upstream, of large ones each failure loses nothing") {
  memory_test::Failing heap;
  memory::Coloured coloured(heap);
  void* const block = coloured.allocate(32767, 8);
  CHECK(heap.bytes_of(block) == 32767);
  CHECK(coloured.owns(block));
  coloured.deallocate(block, 32767, 8);
  CHECK(memory_test::each_failure([](memory_test::Failing& failing) {
          memory::Coloured tried(failing, 8192);
          memory_test::use_some(tried);
        }) == 12);
}

TEST_CASE("a period in steps that do not divide it is refused") {
  CHECK(message_of<hd::contract_error>([] { memory::Coloured made(memory::Pages{}, 1000, 64); }) ==
        "heddle::memory::Coloured: invalid period of 1000 B with steps of 64 B; pass powers of two "
        "with step < period");
  CHECK_THROWS_AS(memory::Coloured(memory::Pages{}, 64, 64), hd::contract_error);
  CHECK_THROWS_AS(memory::Coloured(memory::Pages{}, 64, 0), hd::contract_error);
}

}  // namespace test_coloured
