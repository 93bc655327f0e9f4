// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// The blocks that other threads cache serve a request that would otherwise fail.

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/memory/impl/thread_barrier.hpp>
#include <heddle/memory/pool.hpp>

#include "conformance.hpp"
#include "support/cases.hpp"

namespace test_reclaim {

namespace memory = heddle::memory;

constexpr std::size_t most = std::size_t{8} << 20;

/// Pages as those of a pool that is given none.
memory::Pages pages() { return memory::Pages(memory::HugePages::yes, std::size_t{1} << 30); }

/// Allocates blocks until there are no more, and deallocates them. Returns their number.
std::size_t filled(memory::Pool<memory::Pages>& pool, std::size_t bytes) {
  std::vector<memory_test::Block> blocks;
  blocks.reserve(most / bytes + 1);
  try {
    for (;;) blocks.push_back(memory_test::take(pool, bytes, 16, std::byte{255}));
  } catch (const std::bad_alloc&) {
  }
  for (const memory_test::Block& block : blocks) memory_test::give_back(pool, block);
  return blocks.size();
}

TEST_CASE("a request that would fail gets what idle threads cache") {
  if (!memory::impl::barrier_on_all_threads()) SKIP("the system has no barrier on all threads");
  for (const std::size_t bytes : {200, 1000, 5000, 60000, 200000}) {
    memory::Pool pool(pages(), {.most = most});
    std::barrier both(2);
    std::size_t theirs = 0;
    std::thread idle([&] {
      theirs = filled(pool, bytes);
      both.arrive_and_wait();
      both.arrive_and_wait();
    });
    both.arrive_and_wait();
    CHECK(pool.reserved() - pool.idle() > 0);  // cached by the other thread
    const std::size_t ours = filled(pool, bytes);
    pool.trim();
    void* all = nullptr;  // their blocks no longer lie between the free ones
    CHECK_NOTHROW(all = pool.allocate(most, 16));
    pool.deallocate(all, most, 16);
    both.arrive_and_wait();
    idle.join();
    CHECK(theirs * bytes >= most / 10 * 8);
    CHECK(ours * bytes + 4096 >= theirs * bytes);  // less than a slab of small blocks is unused
  }
}

TEST_CASE("threads lose no block while another one takes what they cache") {
  memory::Pool pool(pages(), {.most = most});
  std::atomic<bool> done = false;
  std::vector<std::size_t> wrong(3);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<memory_test::Block> blocks;
      while (!done.load(std::memory_order_relaxed)) {
        for (std::size_t b = random() % 100; b-- > 0;) {
          const std::size_t bytes = random() % 300 + 1;
          try {
            blocks.push_back(memory_test::take(pool, bytes, 16, static_cast<std::byte>(t)));
          } catch (const std::bad_alloc&) {
          }
        }
        for (const memory_test::Block& block : blocks) try {
            memory_test::give_back(pool, block);
          } catch (...) {
            ++wrong[t];
          }
        blocks.clear();
      }
    });
  std::size_t least = most;
  for (std::uint64_t round = heddle::test::cases(30, 10000); round-- > 0;)
    least = std::min(least, filled(pool, 200));
  done = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<std::size_t>(3));
  CHECK(least > 0);
  void* const all = pool.allocate(most, 16);
  pool.deallocate(all, most, 16);
}

}  // namespace test_reclaim
