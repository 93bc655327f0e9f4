// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Stats and Label: every number, for one thread and several.

#include <concepts>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/label.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/stats.hpp>

#include "memory/conformance.hpp"
#include "memory/failing.hpp"
#include "support/complaint.hpp"

namespace test_stats {

namespace hd = heddle;
namespace memory = heddle::memory;

TEST_CASE("stats conform, and all is back at the end") {
  memory::Stats stats(memory::Pages{});
  memory_test::conforms(stats, 1 << 20);
  CHECK(stats.usage().bytes == 0);
  CHECK(stats.usage().blocks == 0);
  CHECK(stats.failures() == 6);
  const memory::Label label("labelled");
  memory_test::conforms(stats, 1 << 20);
  CHECK(stats.usage("labelled").bytes == 0);
  // Those of this thread.
  CHECK(stats.usage("labelled").blocks == 0);
  CHECK(stats.usage("labelled").total_blocks > 1000);
}

static_assert(std::constructible_from<memory::Label, const std::string&>);
static_assert(!std::constructible_from<memory::Label, std::string>);

TEST_CASE("stats count the blocks of each label") {
  memory_test::Failing heap(5);
  memory::Stats stats(heap);
  void* const plain = stats.allocate(10, 8);
  void* weights = nullptr;
  void* moments = nullptr;
  {
    const memory::Label outer("weights");
    weights = stats.allocate(100, 8);
    {
      const memory::Label inner("moments");
      CHECK(memory::Label::current() == "moments");
      moments = stats.allocate(1000, 8);
    }
    stats.deallocate(stats.allocate(50, 8), 50, 8);
    CHECK_THROWS_AS((void)stats.allocate(7, 8), hd::out_of_memory);
  }
  CHECK(memory::Label::current().empty());
  CHECK(stats.usage() == memory::Usage{1110, 3, 1160, 1160, 4});
  CHECK(stats.usage("weights") == memory::Usage{100, 1, 150, 150, 2});
  CHECK(stats.usage("none") == memory::Usage{});
  stats.deallocate(moments, 1000, 8);
  CHECK(stats.usage("moments") == memory::Usage{0, 0, 1000, 1000, 1});
  CHECK(hd::text(stats) ==
        "label           peak B          bytes         blocks        total B          total\n"
        "all               1160            110              2           1160              4\n"
        "moments           1000              0              0           1000              1\n"
        "weights            150            100              1            150              2\n"
        "1 failures\n");
  stats.deallocate(weights, 100, 8);
  stats.deallocate(plain, 10, 8);
  CHECK(heap.blocks() == 0);
}

TEST_CASE("what a block grows by is counted, under its label, and is no block more") {
  const std::size_t page = memory::Pages::page();
  memory::Stats stats(memory::Pages(memory::HugePages::no, std::size_t{1} << 30));
  void* labelled = nullptr;
  {
    const memory::Label label("grows");
    labelled = stats.allocate(page, page);
  }
  CHECK(stats.extend(labelled, page, 3 * page));
  CHECK(stats.usage("grows") == memory::Usage{4 * page, 1, 4 * page, 4 * page, 1});
  stats.shrink(labelled, 4 * page, 2 * page);
  CHECK(stats.usage("grows") == memory::Usage{2 * page, 1, 4 * page, 4 * page, 1});
  CHECK(stats.usage() == memory::Usage{2 * page, 1, 4 * page, 4 * page, 1});
  CHECK_FALSE(stats.extend(labelled, 2 * page, std::size_t{2} << 30));
  CHECK(stats.usage() == memory::Usage{2 * page, 1, 4 * page, 4 * page, 1});
  stats.deallocate(labelled, 2 * page, page);
  CHECK(stats.usage() == memory::Usage{0, 0, 4 * page, 4 * page, 1});
}

TEST_CASE("each thread has labels of its own") {
  memory::Stats stats(memory::Pages{});
  const memory::Label label("main");
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      const std::string name = hd::text("thread ", t);
      for (int i = 0; i < 100; ++i) {
        const memory::Label inner(name);
        stats.deallocate(stats.allocate(64, 64), 64, 64);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < 3; ++t)
    CHECK(stats.usage(hd::text("thread ", t)) == memory::Usage{0, 0, 64, 6400, 100});
  CHECK(stats.usage("main") == memory::Usage{});
}

TEST_CASE("a failure of what is counted loses nothing") {
  CHECK(memory_test::each_failure([](memory_test::Failing& heap) {
          memory::Stats stats(heap);
          const memory::Label label("some");
          try {
            memory_test::use_some(stats);
          } catch (const hd::out_of_memory&) {
            CHECK(stats.usage("some").blocks == 0);
            throw;
          }
        }) == 12);
}

}  // namespace test_stats
