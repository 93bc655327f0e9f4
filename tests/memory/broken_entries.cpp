// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Options, sizes and events of memory/ that programs give: every door rejects a broken entry and
// names it.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include <catch2/catch_test_macros.hpp>

#include <heddle/memory.hpp>
#include <heddle/memory/source.hpp>
#include <heddle/memory/trace.hpp>

#include "support/broken_entries.hpp"

namespace test_memory_broken_entries {

using namespace heddle::memory;
using heddle::test::check_broken;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t most = std::numeric_limits<std::size_t>::max();

}  // namespace

TEST_CASE("resources reject sizes that are none") {
  const auto pool = [](PoolOptions options) { return [=] { Pool<Pages>(Pages(), options); }; };
  check_broken({
      {"min_chunk", pool({.min_chunk = 0}), {"min_chunk = 0"}},
      {"max_chunk_growth", pool({.max_chunk_growth = 0}), {"max_chunk_growth = 0"}},
      {"most", pool({.most = 0}), {"most = 0"}},
      {"chunk", [] { Arena<Pages>(Pages(), 0); }, {"chunk"}},
      {"segment", [] { Segment<Pages>(0); }, {"0 B"}},
      {"period", [] { Coloured<Pages>(Pages(), 3, 1); }, {"period of 3 B"}},
      {"step", [] { Coloured<Pages>(Pages(), 4, 4); }, {"steps of 4 B"}},
      {"local memory", [] { Ldm(100); }, {"100 B"}},
      {"reserved", [] { Ldm(64, 96); }, {"reserve 96 B"}},
      {"guard",
       [] { Tracking<Pages>(Pages(), Tracking<Pages>::raise, most); },
       {"guard = 18446744073709551615"}},
      {"handler",
       [] { Tracking<Pages>(Pages(), Tracking<Pages>::Handler{}); },
       {"handler", "empty"}},
      {"no bytes", [] { FreeRanges(4096, 0); }, {"bytes = 0"}},
      {"past the end", [] { FreeRanges(4096, most); }, {"bytes = 18446744073709551615"}},
      {"no resource", [] { SharedPool<>(std::shared_ptr<Pool<Pages>>()); }, {"null"}},
  });
}

TEST_CASE("pools and arenas serve blocks if their sizes are far above any memory, or tiny") {
  Arena<Pages> arena(Pages(), most);
  CHECK(arena.allocate(8, 8) != nullptr);
  for (const std::size_t size : {most, most / 2 + 1, most / 4, most / 8 + 1}) {
    Pool<Pages> pool(Pages(), {.min_chunk = size, .cached = size});
    void* const block = pool.allocate(64, 64);
    REQUIRE(block != nullptr);
    pool.deallocate(block, 64, 64);
    Pool<Pages> grows(Pages(), {.max_chunk_growth = size, .cached = size, .most = size});
    void* const other = grows.allocate(64, 64);
    REQUIRE(other != nullptr);
    grows.deallocate(other, 64, 64);
  }
  Pool<Pages> narrow(Pages(), {.min_chunk = 1, .max_chunk_growth = 1, .cached = 0});
  void* const block = narrow.allocate(100, 8);
  REQUIRE(block != nullptr);
  narrow.deallocate(block, 100, 8);
}

TEST_CASE("traces reject times and alignments that no allocation has") {
  const auto take = [](double time, std::uint32_t alignment) {
    return [=] { (void)Trace().take(time, 8, alignment); };
  };
  const auto give = [](double time) {
    return [=] {
      Trace trace;
      (void)trace.take(0, 8, 8);
      trace.give(time, 0);
    };
  };
  Trace trace;
  (void)trace.take(0, 8, 8);
  Pages pages;
  check_broken({
      {"time", take(nan, 8), {"time = nan"}},
      {"infinite", take(infinity, 8), {"time = inf"}},
      {"negative", take(-1, 8), {"time = -1"}},
      {"alignment", take(0, 3), {"alignment = 3"}},
      {"no alignment", take(0, 0), {"alignment = 0"}},
      {"time of a deallocation", give(nan), {"time = nan"}},
      {"touch", [&] { (void)replay(trace, pages, static_cast<Touch>(9)); }, {"touch = 9"}},
  });
}

}  // namespace test_memory_broken_entries
