// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Segment: one piece of memory and no more, of any upstream.

#include <cstddef>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/limit.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/source/segment.hpp>

#include "memory/conformance.hpp"
#include "memory/failing.hpp"
#include "support/complaint.hpp"

namespace test_segment {

namespace hd = heddle;
namespace memory = heddle::memory;
using hd::test::message_of;

TEST_CASE("a segment conforms, and joins what comes back") {
  memory::Segment segment(std::size_t{16} << 20);
  memory_test::conforms(segment, std::size_t{2} << 20);
  CHECK(segment.used() == 0);
  CHECK(segment.largest() == std::size_t{16} << 20);
}

TEST_CASE("a segment takes its memory once, and gives it back once") {
  memory_test::Failing heap;
  {
    memory::Segment segment(100'000, heap);
    auto moved = std::move(segment);
    memory_test::conforms(moved, 10'000);
    void* const block = moved.allocate(10, 1);
    CHECK(moved.owns(block));
    CHECK(heap.owns(block));
    CHECK_FALSE(moved.owns(&moved));
    CHECK(heap.calls() == 1);
  }
  CHECK(heap.blocks() == 0);
  CHECK(heap.wrong() == 0);
  CHECK(memory_test::each_failure([](memory_test::Failing& failing) {
          memory::Segment segment(std::size_t{1} << 20, failing);
          memory_test::use_some(segment);
        }) == 1);
}

TEST_CASE("what does not fit in one piece is out of memory, by numbers") {
  memory::Segment segment(4000, memory::Limit(memory::Pages{}, 4000));
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(segment.allocate(1000, 8));
  segment.deallocate(blocks[0], 1000, 8);
  segment.deallocate(blocks[2], 1000, 8);
  CHECK(hd::text(segment) == "2000 B of 4000 B used, the largest free piece 1000 B");
  CHECK(
      message_of<hd::out_of_memory>([&] { (void)segment.allocate(1001, 8); }) ==
      "heddle::memory::Segment: cannot allocate 1001 B aligned to 8 B (2000 B of 4000 B are free, "
      "the largest free piece has 1000 B)");
  segment.deallocate(blocks[1], 1000, 8);
  CHECK(segment.allocate(3000, 8) == blocks[0]);
  CHECK(message_of<hd::contract_error>([] { memory::Segment none(0); }) ==
        "heddle::memory::Segment: the segment size is 0 B");
}

}  // namespace test_segment
