// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Limit: so much and no more, and nothing is lost where its upstream has none.

#include <concepts>
#include <cstddef>
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/limit.hpp>
#include <heddle/memory/resource.hpp>
#include <heddle/memory/source/pages.hpp>

#include "memory/conformance.hpp"
#include "memory/failing.hpp"
#include "support/complaint.hpp"

namespace test_limit {

namespace hd = heddle;
namespace memory = heddle::memory;
using hd::test::message_of;

TEST_CASE("a limit conforms") {
  memory::Limit limit(memory::Pages{}, std::size_t{64} << 20);
  memory_test::conforms(limit, 1 << 20);
  CHECK(limit.used() == 0);
}

TEST_CASE("a limit refuses what is beyond it, by numbers, and counts what is out") {
  memory_test::Failing heap;
  memory::Limit limit(heap, 1000);
  static_assert(std::same_as<decltype(limit), memory::Limit<memory::Ref<memory_test::Failing>>>);
  void* const a = limit.allocate(600, 8);
  CHECK(limit.owns(a));
  CHECK(message_of<hd::out_of_memory>([&] { (void)limit.allocate(401, 8); }) ==
        "heddle::memory::Limit: cannot allocate 401 B within the limit (600 B of 1000 B are used)");
  void* const b = limit.allocate(400, 8);
  CHECK(hd::text(limit) == "1000 B of 1000 B used");
  limit.deallocate(a, 600, 8);
  memory::Limit moved(std::move(limit));
  CHECK(moved.used() == 400);
  moved.deallocate(b, 400, 8);
  CHECK(moved.used() == 0);
  CHECK(heap.blocks() == 0);
  CHECK(heap.calls() == 2);
}

TEST_CASE("what the upstream refuses does not count") {
  const int tried = memory_test::each_failure([](memory_test::Failing& heap) {
    memory::Limit limit(heap, 10'000'000);
    try {
      memory_test::use_some(limit);
    } catch (const hd::out_of_memory&) {
      CHECK(limit.used() == 0);
      throw;
    }
  });
  CHECK(tried == 12);
}

}  // namespace test_limit
