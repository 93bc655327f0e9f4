// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Fallback and OnOutOfMemory: every block goes back to where it is from.

#include <cstddef>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/memory/fallback.hpp>
#include <heddle/memory/limit.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/source/segment.hpp>

#include "memory/conformance.hpp"
#include "memory/failing.hpp"
#include "support/complaint.hpp"

namespace test_fallback {

namespace hd = heddle;
namespace memory = heddle::memory;
using hd::test::message_of;

TEST_CASE("a fallback conforms, whichever has the block") {
  memory::Fallback few(memory::Limit(memory::Pages{}, 100'000), memory::Pages{});
  memory_test::conforms(few, 1 << 20);
  CHECK(few.first().used() == 0);
  memory_test::Failing first;
  memory_test::Failing second;
  {
    memory::Fallback both(memory::Limit(first, 20'000), memory::Ref(second));
    memory_test::conforms(both, 1 << 17);
    CHECK(both.first().used() == 0);
  }
  CHECK(first.calls() > 0);
  CHECK(second.calls() > 0);
  CHECK(first.blocks() + second.blocks() == 0);
  CHECK(first.wrong() + second.wrong() == 0);
}

TEST_CASE("the second is asked where the first has none, and says so where it has none either") {
  memory_test::Failing heap;
  memory::Fallback fallback(memory::Segment(4096), memory::Limit(heap, 5000));
  void* const a = fallback.allocate(4000, 8);
  void* const b = fallback.allocate(4001, 8);
  CHECK(fallback.first().owns(a));
  CHECK(heap.owns(b));
  CHECK(fallback.owns(a));
  CHECK(fallback.owns(b));
  CHECK_FALSE(fallback.owns(&heap));
  CHECK(
      message_of<hd::out_of_memory>([&] { (void)fallback.allocate(1000, 8); }) ==
      "heddle::memory::Limit: cannot allocate 1000 B within the limit (4001 B of 5000 B are used)");
  auto moved = std::move(fallback);
  moved.deallocate(b, 4001, 8);
  moved.deallocate(a, 4000, 8);
  CHECK(heap.blocks() == 0);
  CHECK(moved.first().used() == 0);
}

TEST_CASE("a failure of one of two loses nothing") {
  memory_test::each_failure([](memory_test::Failing& heap) {
    memory::Fallback fallback(heap, memory::Pages{});
    memory_test::use_some(fallback);
  });
  CHECK(memory_test::each_failure([](memory_test::Failing& heap) {
          memory::Fallback fallback(memory::Limit(heap, 30'000), heap);
          memory_test::use_some(fallback);
        }) >= 12);
}

TEST_CASE("a callback frees something and has the upstream asked again") {
  memory::Segment segment(1 << 20);
  std::vector<void*> held;
  for (int i = 0; i < 4; ++i) held.push_back(segment.allocate(1 << 18, 8));
  std::vector<std::pair<std::size_t, int>> asked;
  memory::OnOutOfMemory patient(segment, [&](std::size_t bytes, int attempt) {
    asked.emplace_back(bytes, attempt);
    if (held.empty()) return false;
    segment.deallocate(held.back(), 1 << 18, 8);
    held.pop_back();
    return true;
  });
  void* const block = patient.allocate(1 << 19, 8);
  CHECK(patient.owns(block));
  CHECK(asked == std::vector<std::pair<std::size_t, int>>{{1 << 19, 1}, {1 << 19, 2}});
  asked.clear();
  CHECK_THROWS_AS((void)patient.allocate(1 << 20, 8), hd::out_of_memory);
  CHECK(asked.size() == 3);
  CHECK(held.empty());
  patient.deallocate(block, 1 << 19, 8);
  CHECK(segment.used() == 0);
  memory_test::conforms(patient, 1 << 19);
}

TEST_CASE("the upstream is asked again so many times only") {
  int calls = 0;
  memory::OnOutOfMemory endless(memory::Limit(memory::Pages{}, 100), [&](std::size_t, int) {
    ++calls;
    return true;
  });
  CHECK(message_of<hd::out_of_memory>([&] { (void)endless.allocate(101, 8); }) ==
        "heddle::memory::Limit: cannot allocate 101 B within the limit (0 B of 100 B are used)");
  CHECK(calls == decltype(endless)::most_attempts - 1);
}

}  // namespace test_fallback
