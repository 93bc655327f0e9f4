// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Arena: where blocks lie, what comes back when, and every failure of its upstream.

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/arena.hpp>
#include <heddle/memory/limit.hpp>
#include <heddle/memory/source/pages.hpp>

#include "memory/conformance.hpp"
#include "memory/failing.hpp"
#include "support/complaint.hpp"

namespace test_arena {

namespace hd = heddle;
namespace memory = heddle::memory;
using hd::test::message_of;

namespace {

std::uintptr_t address(const void* block) { return reinterpret_cast<std::uintptr_t>(block); }

}  // namespace

TEST_CASE("an arena conforms") {
  memory::Arena arena(memory::Pages{}, 5000);
  memory_test::conforms(arena, 1 << 16, false);
  arena.reset();
  CHECK(arena.used() == 0);
  memory_test::conforms(arena, 1 << 16, false);
}

TEST_CASE("blocks lie one behind the other, in chunks that double") {
  memory_test::Failing heap;
  memory::Arena arena(heap, 1000);
  CHECK(hd::text(arena) == "0 B of 0 B used, chunks: 0");
  void* const a = arena.allocate(100, 1);
  void* const b = arena.allocate(50, 1);
  CHECK(address(b) == address(a) + 100);
  void* const c = arena.allocate(8, 64);
  CHECK(address(c) == address(a) + 192);
  CHECK(hd::text(arena) == "200 B of 1000 B used, chunks: 1");
  void* const d = arena.allocate(801, 1);
  CHECK(heap.bytes_of(d) == 2000);
  void* const large = arena.allocate(10'000, 1);
  CHECK(heap.bytes_of(large) == 10'000);
  void* const e = arena.allocate(1, 1);
  CHECK(heap.bytes_of(e) == 20'000);
  CHECK(arena.reserved() == 33'000);
  CHECK(arena.owns(c));
  CHECK(arena.owns(static_cast<std::byte*>(large) + 9999));
  CHECK_FALSE(arena.owns(&arena));
  SECTION("reset() keeps the chunks") {
    arena.reset();
    CHECK(arena.used() == 0);
    CHECK(arena.allocate(100, 1) == a);
    CHECK(arena.allocate(901, 1) == d);
    CHECK(arena.allocate(10'000, 1) == large);
    CHECK(arena.allocate(20'000, 64) == e);
    CHECK(heap.calls() == 4);
  }
  SECTION("release() returns them") {
    arena.release();
    CHECK(heap.blocks() == 0);
    CHECK(arena.reserved() == 0);
    CHECK_FALSE(arena.owns(a));
    CHECK(heap.bytes_of(arena.allocate(1, 1)) == 40'000);
  }
  auto moved = std::move(arena);
  moved.release();
  CHECK(heap.blocks() == 0);
  CHECK(heap.wrong() == 0);
}

TEST_CASE("blocks that come back in the reverse order leave an arena as it was") {
  memory_test::Failing heap;
  {
    memory::Arena arena(heap, 500);
    std::mt19937 random(1);
    struct Block {
      void* begin;
      std::size_t bytes;
      std::size_t used_before;
    };
    std::vector<Block> blocks;
    for (int step = 0; step < 2000; ++step) {
      if (blocks.empty() || random() % 5 < 3) {
        const std::size_t used = arena.used();
        const std::size_t bytes = 1 + random() % 200;
        blocks.push_back({arena.allocate(bytes, std::size_t{1} << (random() % 9)), bytes, used});
      } else {
        arena.deallocate(blocks.back().begin, blocks.back().bytes, 1);
        REQUIRE(arena.used() == blocks.back().used_before);
        blocks.pop_back();
      }
    }
    for (; !blocks.empty(); blocks.pop_back())
      arena.deallocate(blocks.back().begin, blocks.back().bytes, 1);
    CHECK(arena.used() == 0);
  }
  CHECK(heap.blocks() == 0);
}

TEST_CASE("another block than the last stays until the reset") {
  memory::Arena arena(memory::Pages{}, 1000);
  void* const a = arena.allocate(10, 1);
  void* const b = arena.allocate(10, 1);
  arena.deallocate(a, 10, 1);
  CHECK(arena.used() == 20);
  arena.deallocate(b, 10, 1);
  CHECK(arena.used() == 10);
  CHECK(arena.allocate(5, 1) == b);
}

TEST_CASE("a failure of the upstream leaves an arena as it was") {
  memory_test::Failing heap;
  memory::Arena arena(memory::Limit(heap, 3500), 1000);
  void* const a = arena.allocate(1000, 1);
  void* const b = arena.allocate(2000, 1);
  // No 4000 B more, but what is asked for.
  void* const c = arena.allocate(400, 1);
  CHECK(arena.reserved() == 3400);
  CHECK(
      message_of<hd::out_of_memory>([&] { (void)arena.allocate(200, 1); }) ==
      "heddle::memory::Limit: cannot allocate 200 B within the limit (3400 B of 3500 B are used)");
  CHECK(arena.used() == 3400);
  arena.deallocate(c, 400, 1);
  arena.deallocate(b, 2000, 1);
  arena.deallocate(a, 1000, 1);
  CHECK(arena.used() == 0);
  memory_test::each_failure([](memory_test::Failing& failing) {
    memory::Arena tried(failing, 1000);
    memory_test::use_some(tried);
  });
}

TEST_CASE("an arena that was moved from has nothing, and may be used") {
  memory_test::Failing heap;
  memory::Arena arena(heap, 100);
  for (int block = 0; block < 5; ++block) (void)arena.allocate(90, 8);
  memory::Arena other(std::move(arena));
  CHECK(arena.reserved() == 0);
  void* const block = arena.allocate(50, 8);
  CHECK(arena.owns(block));
  CHECK_FALSE(other.owns(block));
  arena.deallocate(block, 50, 8);
  arena.release();
  other.release();
  CHECK(heap.blocks() == 0);
}

TEST_CASE("an arena of no chunk is refused") {
  CHECK(message_of<hd::contract_error>([] { memory::Arena arena(memory::Pages{}, 0); }) ==
        "heddle::memory::Arena: the chunk size is 0 B");
}

}  // namespace test_arena
