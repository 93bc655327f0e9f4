// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Pool over pages, and over upstreams that have little: blocks of all sizes, what comes back to
// upstream, threads that come and go.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <random>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/pages.hpp>

#include "conformance.hpp"
#include "failing.hpp"
#include "support/cases.hpp"

namespace test_pool {

namespace memory = heddle::memory;

/// Pages that are counted, of which there are so many bytes.
struct Counted {
  std::size_t most = ~std::size_t{0};
  std::size_t used = 0;
  std::size_t blocks = 0;
  std::size_t calls = 0;
  std::size_t fails_at = 0;  ///< the call that is refused, from 1

  void* allocate(std::size_t bytes, std::size_t alignment) {
    if (++calls == fails_at || bytes > most - used)
      throw heddle::out_of_memory({"test", "there is no more"});
    void* const block = memory::Pages().allocate(bytes, alignment);
    used += bytes;
    ++blocks;
    return block;
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    used -= bytes;
    --blocks;
    memory::Pages().deallocate(block, bytes, alignment);
  }
};

TEST_CASE("a pool keeps to what a resource does") {
  memory::Pool pool;
  memory_test::conforms(pool);
  CHECK(pool.reserved() > 0);
  pool.trim();
}

TEST_CASE("a pool of which threads have little at hand does so too") {
  memory::Pool pool(memory::Pages(), {.cached = 0});
  memory_test::conforms(pool);
}

TEST_CASE("all that a pool took goes back to upstream") {
  Counted upstream;
  {
    memory::Pool pool(upstream);
    memory_test::conforms(pool, std::size_t{4} << 20, false);
    CHECK(pool.reserved() == upstream.used);
    pool.trim();
    CHECK(upstream.used == 0);
    CHECK(pool.reserved() == 0);
    void* const block = pool.allocate(1000, 8);
    CHECK(pool.owns(block));
    CHECK(!pool.owns(&upstream));
    pool.trim();
    CHECK(upstream.blocks == 1);
    pool.deallocate(block, 1000, 8);
  }
  CHECK(upstream.used == 0);
}

TEST_CASE("a pool is a member of a class, over pages and over another resource") {
  struct Solver {
    memory::Pool<> pages;
    memory::Pool<Counted> counted{Counted{}};
  } solver;
  void* const block = solver.pages.allocate(100, 8);
  void* const other = solver.counted.allocate(100, 8);
  CHECK(block != other);
  solver.pages.deallocate(block, 100, 8);
  solver.counted.deallocate(other, 100, 8);
}

TEST_CASE("trim keeps as much as is asked for, and what is used") {
  Counted upstream;
  memory::Pool pool(upstream, {.min_chunk = 1 << 20, .max_chunk_growth = 1 << 20});
  std::vector<void*> blocks;
  for (int b = 0; b < 8; ++b) blocks.push_back(pool.allocate(1 << 20, 64));
  CHECK(upstream.used == std::size_t{8} << 20);
  for (int b = 1; b < 8; ++b) pool.deallocate(blocks[static_cast<std::size_t>(b)], 1 << 20, 64);
  pool.trim(std::size_t{3} << 20);
  CHECK(upstream.used == std::size_t{3} << 20);
  pool.trim();
  CHECK(upstream.used == std::size_t{1} << 20);
  pool.deallocate(blocks[0], 1 << 20, 64);
}

TEST_CASE("after the first step nothing is asked of upstream") {
  Counted upstream;
  memory::Pool pool(upstream);
  std::size_t calls = 0;
  for (int step = 0; step < 4; ++step) {
    std::vector<std::pair<void*, std::size_t>> blocks;
    for (std::size_t b = 0; b < 60; ++b) {
      const std::size_t bytes = (b * 7919 + 13) % (std::size_t{3} << 20) + 1;
      blocks.emplace_back(pool.allocate(bytes, 64), bytes);
    }
    for (const auto& [block, bytes] : blocks) pool.deallocate(block, bytes, 64);
    if (step == 0) calls = upstream.calls;
  }
  CHECK(upstream.calls == calls);
}

TEST_CASE("where upstream refuses a larger chunk it is asked for the block alone") {
  Counted upstream{.most = std::size_t{3} << 20};
  memory::Pool pool(upstream, {.min_chunk = std::size_t{2} << 20});
  void* const first = pool.allocate(std::size_t{2} << 20, 64);
  void* const second = pool.allocate(300 << 10, 64);  // of a chunk of its own
  CHECK(upstream.blocks == 2);
  CHECK_THROWS_AS((void)pool.allocate(std::size_t{2} << 20, 64), heddle::out_of_memory);
  CHECK_THROWS_AS((void)pool.allocate(std::size_t{2} << 20, 64), std::bad_alloc);
  void* const third = pool.allocate(200 << 10, 64);
  pool.deallocate(first, std::size_t{2} << 20, 64);
  void* const again = pool.allocate(std::size_t{2} << 20, 64);
  CHECK(again == first);
  pool.deallocate(again, std::size_t{2} << 20, 64);
  pool.deallocate(second, 300 << 10, 64);
  pool.deallocate(third, 200 << 10, 64);
}

/// Pages of which every so many-th call for more is refused.
struct Refusing {
  std::size_t every;
  std::size_t calls = 0, refused = 0, used = 0, wrong = 0;
  memory::Pages pages{memory::HugePages::no, std::size_t{1} << 30};

  bool refuses() {
    const bool refuse = ++calls % every == 0;
    refused += refuse;
    return refuse;
  }
  void* allocate(std::size_t bytes, std::size_t alignment) {
    if (refuses()) throw heddle::out_of_memory({"test", "this one is refused"});
    used += bytes;
    return pages.allocate(bytes, alignment);
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    wrong += bytes > used;
    used -= bytes;
    pages.deallocate(block, bytes, alignment);
  }
  bool extend(void* block, std::size_t bytes, std::size_t more) noexcept {
    if (refuses() || !pages.extend(block, bytes, more)) return false;
    used += more;
    return true;
  }
  void shrink(void* block, std::size_t bytes, std::size_t less) noexcept {
    wrong += less >= bytes || bytes > used;
    used -= less;
    pages.shrink(block, bytes, less);
  }
};
static_assert(memory::ExtendableResource<Refusing>);

/// The same, whose chunks do not grow.
struct RefusingChunks {
  Refusing* upstream;
  void* allocate(std::size_t bytes, std::size_t alignment) {
    return upstream->allocate(bytes, alignment);
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    upstream->deallocate(block, bytes, alignment);
  }
};

/// 4000 random takes and returns, of which some are refused; returns how many were. All blocks come
/// back as they were written.
template <class Pool>
std::size_t use_refused(Pool& pool, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<memory_test::Block> blocks;
  std::size_t refused = 0;
  for (int step = 0; step < 4000; ++step) {
    if (random() % 8 < 5) {
      const std::size_t bytes = random() % (std::size_t{1} << (4 + random() % 16)) + 1;
      try {
        blocks.push_back(
            memory_test::take(pool, bytes, std::size_t{1} << random() % 8, std::byte(step)));
      } catch (const heddle::out_of_memory&) {
        ++refused;
      }
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      memory_test::give_back(pool, blocks.back());
      blocks.pop_back();
    }
  }
  for (const memory_test::Block& block : blocks) memory_test::give_back(pool, block);
  return refused;
}

TEST_CASE("upstream refuses every so many-th call, and nothing is lost") {
  for (const std::size_t every : {1, 2, 3, 5, 11}) {
    for (const bool grows : {false, true}) {
      INFO("every " << every << (grows ? ", of chunks that grow" : ""));
      Refusing upstream{.every = every};
      RefusingChunks chunks{&upstream};
      const auto use = [&](auto& pool) {
        const std::size_t refused = use_refused(pool, 1);
        // Where free chunks have gone back, it is asked once more.
        CHECK((every == 1 ? refused > 2000 : upstream.refused >= 3));
        std::array<std::string, 3> errors;
        {
          std::vector<std::jthread> threads;
          for (std::size_t t = 0; t < errors.size(); ++t)
            threads.emplace_back([&, t] {
              try {
                use_refused(pool, static_cast<std::uint32_t>(t));
              } catch (const std::string& error) {
                errors[t] = error;
              } catch (const std::exception& error) {
                errors[t] = error.what();
              }
            });
        }
        for (const std::string& error : errors) CHECK(error.empty());
        CHECK(upstream.used == pool.reserved());
        pool.trim();
        CHECK(upstream.used == 0);
      };
      const memory::PoolOptions options{.min_chunk = 1 << 16, .max_chunk_growth = 1 << 18};
      if (grows) {
        memory::Pool pool(upstream, options);
        use(pool);
      } else {
        memory::Pool pool(chunks, options);
        use(pool);
      }
      CHECK(upstream.used == 0);
      CHECK(upstream.wrong == 0);
    }
  }
}

TEST_CASE("before a pool has no memory it gives back what is free, and uses what is left") {
  constexpr std::size_t unit = std::size_t{1} << 20;
  Counted upstream{.most = 4 * unit};
  memory::Pool pool(upstream, {.min_chunk = unit, .max_chunk_growth = unit});
  std::vector<void*> blocks;
  for (int b = 0; b < 4; ++b) blocks.push_back(pool.allocate(unit, 64));
  CHECK_THROWS_AS((void)pool.allocate(unit, 64), heddle::out_of_memory);
  pool.deallocate(blocks[1], unit, 64);
  pool.deallocate(blocks[2], unit, 64);
  void* const large = pool.allocate(2 * unit, 64);  // of two chunks, which no block can span
  CHECK(upstream.used == 4 * unit);
  pool.deallocate(large, 2 * unit, 64);
  pool.deallocate(blocks[0], unit, 64);
  pool.deallocate(blocks[3], unit, 64);

  // Small ones, of which slabs of 32 KiB are added by now.
  std::vector<void*> small;
  for (int b = 0; b < 9000; ++b) small.push_back(pool.allocate(64, 16));
  while (pool.reserved() < upstream.most) blocks.push_back(pool.allocate(unit / 2, 64));
  blocks.clear();
  std::vector<void*> middle;
  for (bool more = true; more;) try {
      middle.push_back(pool.allocate(20 << 10, 64));
    } catch (const heddle::out_of_memory&) {
      more = false;
    }
  CHECK(pool.idle() >= std::size_t{4} << 10);
  for (bool more = true; more;) try {
      small.push_back(pool.allocate(64, 16));
    } catch (const heddle::out_of_memory&) {
      more = false;
    }
  CHECK(pool.idle() < std::size_t{4} << 10);
}

/// Addresses without memory, of which so many bytes can be had at once.
struct Growing {
  std::size_t most_at_once;
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::size_t wrong = 0;  ///< calls for a block that is none

  static constexpr std::size_t room = std::size_t{200} << 30;

  void* allocate(std::size_t wanted, std::size_t) {
    if (begin != nullptr || wanted > most_at_once)
      throw heddle::out_of_memory({"test", "there is no more"});
    begin = static_cast<std::byte*>(memory::Pages(memory::HugePages::no, room).allocate(1, 1));
    bytes = wanted;
    return begin;
  }
  void deallocate(void* block, std::size_t size, std::size_t) noexcept {
    wrong += block != begin || size != bytes;
    memory::Pages(memory::HugePages::no, room).deallocate(begin, 1, 1);
    begin = nullptr;
  }
  bool extend(void* block, std::size_t size, std::size_t more) noexcept {
    wrong += block != begin || size != bytes;
    if (size + more > room) return false;
    bytes += more;
    return true;
  }
  void shrink(void* block, std::size_t size, std::size_t less) noexcept {
    wrong += block != begin || size != bytes || less >= bytes;
    bytes -= less;
  }
};
static_assert(memory::ExtendableResource<Growing>);

/// Chunks at given addresses, which nobody touches.
struct Anywhere {
  std::vector<std::uintptr_t> places;

  void* allocate(std::size_t, std::size_t) {
    if (places.empty()) throw heddle::out_of_memory({"test", "there is no more"});
    const std::uintptr_t place = places.back();
    places.pop_back();
    return reinterpret_cast<void*>(place);
  }
  void deallocate(void*, std::size_t, std::size_t) noexcept {}
};

TEST_CASE("chunks may lie at any addresses of 52 bits") {
  constexpr std::size_t chunk = std::size_t{1} << 20;
  constexpr std::uintptr_t end = std::uintptr_t{1} << 52;
  // The last one is the first chunk. Some cross multiples of large powers of two.
  Anywhere upstream{{chunk, (std::uintptr_t{1} << 26) - 512 * 1024,
                     (std::uintptr_t{1} << 40) - chunk / 2, (std::uintptr_t{1} << 47) - chunk,
                     std::uintptr_t{1} << 47, end - chunk, (std::uintptr_t{3} << 40) + chunk}};
  const std::vector<std::uintptr_t> places = upstream.places;
  memory::Pool pool(upstream, {.min_chunk = chunk, .max_chunk_growth = chunk});
  std::vector<void*> blocks;
  for (std::size_t b = 0; b < places.size() * chunk / 4096; ++b)
    blocks.push_back(pool.allocate(4096, 64));
  for (const std::uintptr_t place : places) {
    CHECK(pool.owns(reinterpret_cast<void*>(place)));
    CHECK(std::ranges::count_if(blocks, [&](void* block) {
            return reinterpret_cast<std::uintptr_t>(block) - place < chunk;
          }) == chunk / 4096);
  }
  for (void* const block : blocks) pool.deallocate(block, 4096, 64);
  pool.trim();
  CHECK(pool.reserved() == 0);
  upstream.places = {end};
  CHECK_THROWS_AS((void)pool.allocate(4096, 64), heddle::out_of_memory);
}

TEST_CASE("what upstream has extended in vain goes back as it was") {
  Growing upstream{.most_at_once = std::size_t{8} << 20};
  {
    memory::Pool pool(upstream);
    void* const first = pool.allocate(std::size_t{1} << 20, 64);
    // The accounts of so much have no room.
    CHECK_THROWS_AS((void)pool.allocate(std::size_t{100} << 30, 64), heddle::out_of_memory);
    CHECK(upstream.wrong == 0);
    CHECK(upstream.bytes == std::size_t{1} << 20);  // nor was there use for more than the block
    CHECK(pool.reserved() == upstream.bytes);
    pool.deallocate(first, std::size_t{1} << 20, 64);
  }
  CHECK(upstream.wrong == 0);
}

TEST_CASE("chunks without a limit are as large as what is asked for") {
  Counted upstream;
  memory::Pool pool(upstream, {.max_chunk_growth = ~std::size_t{0}});
  std::vector<void*> blocks;
  for (int b = 0; b < 64; ++b) blocks.push_back(pool.allocate(std::size_t{1} << 20, 64));
  CHECK(upstream.blocks < 40);
  for (void* const block : blocks) pool.deallocate(block, std::size_t{1} << 20, 64);
}

TEST_CASE("large alignments, of all sizes") {
  memory::Pool pool;
  std::vector<memory_test::Block> blocks;
  for (std::size_t alignment = 1; alignment <= std::size_t{4} << 20; alignment *= 2)
    for (const std::size_t bytes : {1, 100, 5000, 70000, 3000000})
      blocks.push_back(memory_test::take(pool, bytes, alignment, std::byte{3}));
  for (const memory_test::Block& block : blocks)
    REQUIRE_NOTHROW(memory_test::give_back(pool, block));
}

TEST_CASE("blocks of one thread are given back by another, and threads end before their pool") {
  Counted upstream;
  {
    memory::Pool pool(upstream);
    std::vector<memory_test::Block> blocks;
    std::thread([&] {
      for (std::size_t b = 1; b < 3000; ++b)
        blocks.push_back(memory_test::take(pool, b * 11 % 9000 + 1, 8, std::byte{1}));
    }).join();
    std::thread([&] {
      for (const memory_test::Block& block : blocks) memory_test::give_back(pool, block);
    }).join();
    pool.trim();
    CHECK(upstream.used == 0);  // nothing is left with threads that ended
  }
}

TEST_CASE("threads end while their pool does, and upstream has all when it has ended") {
  for (int round = 0; round < 200; ++round) {
    memory_test::Failing upstream;
    std::atomic<bool> used = false;
    std::jthread thread;
    {
      memory::Pool pool(upstream);
      thread = std::jthread([&] {
        std::vector<memory_test::Block> blocks;
        for (std::size_t b = 1; b < 500; ++b)
          blocks.push_back(memory_test::take(pool, b * 16, 8, std::byte{1}));
        for (const memory_test::Block& block : blocks) memory_test::give_back(pool, block);
        used = true;  // and it gives back what it has at hand
      });
      while (!used) std::this_thread::yield();
      for (int i = 0; i < round * 20; ++i) used = true;  // a little later each time
    }
    REQUIRE(upstream.blocks() == 0);
    thread.join();
    REQUIRE(upstream.wrong() == 0);
  }
}

TEST_CASE("a thread uses several pools in turn, and pools that have ended") {
  for (int round = 0; round < 3; ++round) {
    memory::Pool first, second;
    for (std::size_t b = 1; b < 100; ++b) {
      const memory_test::Block a = memory_test::take(first, b * 10, 8, std::byte{1});
      const memory_test::Block c = memory_test::take(second, b * 10, 8, std::byte{2});
      REQUIRE(first.owns(a.begin));
      REQUIRE(second.owns(c.begin));
      REQUIRE_NOTHROW(memory_test::give_back(first, a));
      REQUIRE_NOTHROW(memory_test::give_back(second, c));
    }
  }
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)  // which keeps what is freed
/// Of this process, in pages.
std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

TEST_CASE("a pool that ends leaves nothing, also of what it kept account in") {
  const auto use = [] {
    memory::Pool pool;
    std::vector<memory_test::Block> blocks;  // of several arrays of slabs
    for (std::size_t b = 0; b < 3000; ++b)
      blocks.push_back(memory_test::take(pool, 4096 + b % 4096, 8, std::byte{1}));
    for (const memory_test::Block& block : blocks) memory_test::give_back(pool, block);
  };
  use();
  const std::size_t before = address_space();
  for (int time = 0; time < 50; ++time) use();
  CHECK(address_space() <= before + 64);  // of 38 KB an array, of which each pool has some
}
#endif

#if defined(__linux__)
TEST_CASE("the end of a pool looks at no more memory than it has used") {
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  const auto use = [] {
    memory::Pool pool;
    pool.deallocate(pool.allocate(100, 8), 100, 8);
  };
  use();
  const long before = faults();
  use();
  CHECK(faults() - before < 4000);  // of 8192 pages; sanitizers have some, too
}
#endif

// A View of one that ends at once would have no memory.
template <class P>
concept MakesViews = requires(P&& pool) {
  std::forward<P>(pool).template view<double*>("u", 3);
};
static_assert(!MakesViews<memory::Pool<memory::Pages>>);

TEST_CASE(
    "threads take and give back at random, and pass blocks on, and every byte is as written") {
  const std::size_t operations = heddle::test::cases(20000, 2500000);  // of each of four threads
  memory::Pool pool;
  std::mutex guard;
  std::vector<memory_test::Block> passed;  // from thread to thread
  std::array<std::string, 4> errors;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < errors.size(); ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<std::uint32_t>(t));
      std::vector<memory_test::Block> own;
      try {
        for (std::size_t operation = 0; operation < operations; ++operation) {
          const std::uint32_t what = random() % 16;
          if (what < 8 && own.size() < 200) {
            // Mostly small ones; few are larger than what threads keep.
            const std::size_t bytes = random() % (std::size_t{1} << (4 + random() % 16)) + 1;
            own.push_back(memory_test::take(pool, bytes, std::size_t{1} << random() % 8,
                                            static_cast<std::byte>(random())));
          } else if (what == 15) {
            const std::scoped_lock lock(guard);
            if (!own.empty()) passed.push_back(own.back());
            if (!own.empty()) own.pop_back();
            std::swap(own, passed);
          } else if (!own.empty()) {
            std::swap(own[random() % own.size()], own.back());
            memory_test::give_back(pool, own.back());
            own.pop_back();
          }
        }
        for (const memory_test::Block& block : own) memory_test::give_back(pool, block);
      } catch (const std::string& error) {
        errors[t] = error;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const memory_test::Block& block : passed) memory_test::give_back(pool, block);
  for (const std::string& error : errors) CHECK(error.empty());
  pool.trim();
  CHECK(pool.reserved() == 0);
}

TEST_CASE("free memory lies together again, and of what fits the smallest is taken") {
  Counted upstream;
  memory::Pool pool(upstream, {.min_chunk = std::size_t{16} << 20});
  constexpr std::size_t unit = 300 << 10;
  std::vector<void*> blocks;
  for (int b = 0; b < 40; ++b) blocks.push_back(pool.allocate(unit, 64));
  // A hole of two and a hole of one.
  pool.deallocate(blocks[10], unit, 64);
  pool.deallocate(blocks[11], unit, 64);
  pool.deallocate(blocks[20], unit, 64);
  void* const one = pool.allocate(unit, 64);
  CHECK(one == blocks[20]);
  void* const two = pool.allocate(2 * unit, 64);
  CHECK(two == blocks[10]);
  pool.deallocate(one, unit, 64);
  pool.deallocate(two, 2 * unit, 64);
  for (const std::size_t b : {10u, 11u, 20u}) blocks[b] = nullptr;
  for (void* const block : blocks)
    if (block != nullptr) pool.deallocate(block, unit, 64);
  CHECK(pool.idle() == pool.reserved());
  CHECK(upstream.calls == 1);
}

TEST_CASE("what fits between the blocks of a chunk is had, and nothing else is refused") {
  constexpr std::size_t all = std::size_t{32} << 20;
  Counted upstream{.most = all};
  memory::Pool pool(upstream, {.min_chunk = all, .max_chunk_growth = all});
  const auto address = [](const void* block) { return reinterpret_cast<std::uintptr_t>(block); };
  const std::uintptr_t begin = [&] {
    void* const whole = pool.allocate(all, 64);
    pool.deallocate(whole, all, 64);
    return address(whole);
  }();
  std::map<std::uintptr_t, std::pair<std::size_t, std::size_t>> blocks;  // bytes, alignment
  // By all that lies between them, in whole KiB.
  const auto fits = [&](std::size_t bytes, std::size_t alignment) {
    std::uintptr_t from = begin;
    const auto between = [&](std::uintptr_t end) {
      const std::uintptr_t first = (from + alignment - 1) / alignment * alignment;
      return first + bytes <= end;
    };
    for (const auto& [at, block] : blocks) {
      if (between(at)) return true;
      from = at + (block.first + 1023) / 1024 * 1024;
    }
    return between(begin + all);
  };
  std::mt19937 random(7);
  int had = 0, refused = 0;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 16 < 9) {
      const std::size_t bytes = (std::size_t{257} << 10) + random() % (std::size_t{1} << 21);
      const std::size_t alignment = std::size_t{64} << random() % 11;
      void* block = nullptr;
      try {
        block = pool.allocate(bytes, alignment);
      } catch (const heddle::out_of_memory&) {
      }
      REQUIRE((block != nullptr) ==
              fits((bytes + 1023) / 1024 * 1024, std::max<std::size_t>(alignment, 1024)));
      ++(block != nullptr ? had : refused);
      if (block != nullptr) blocks[address(block)] = {bytes, alignment};
    } else if (!blocks.empty()) {
      const auto it = std::next(blocks.begin(), static_cast<int>(random() % blocks.size()));
      pool.deallocate(reinterpret_cast<void*>(it->first), it->second.first, it->second.second);
      blocks.erase(it);
    }
  }
  CHECK(had > 1000);
  CHECK(refused > 1000);
  for (const auto& [at, block] : blocks)
    pool.deallocate(reinterpret_cast<void*>(at), block.first, block.second);
}

TEST_CASE("a block of each small size takes little") {
  memory::Pool pool;
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (std::size_t bytes = 16; bytes <= 8192; bytes += std::max<std::size_t>(16, bytes / 8))
    blocks.emplace_back(pool.allocate(bytes, 8), bytes);
  CHECK(blocks.size() > 40);
  CHECK(pool.reserved() - pool.idle() <= blocks.size() * (std::size_t{8} << 10));
  for (const auto& [block, bytes] : blocks) pool.deallocate(block, bytes, 8);
}

TEST_CASE("what a thread has at hand goes back before upstream is asked for more") {
  Counted upstream;
  memory::Pool pool(upstream, {.min_chunk = std::size_t{4} << 20});
  for (const std::size_t bytes :
       {std::size_t{1000}, std::size_t{100} << 10, std::size_t{3000}, std::size_t{200} << 10}) {
    std::vector<void*> blocks;
    for (std::size_t taken = 0; taken + bytes <= std::size_t{3} << 20; taken += bytes)
      blocks.push_back(pool.allocate(bytes, 16));
    for (void* const block : blocks) pool.deallocate(block, bytes, 16);
    // All of the chunk, large or of other sizes.
    void* const all = pool.allocate(std::size_t{4} << 20, 16);
    pool.deallocate(all, std::size_t{4} << 20, 16);
  }
  CHECK(upstream.calls == 1);
}

TEST_CASE("what a thread has at hand and has not wanted for a while goes back") {
  const auto used = [](bool with_another_size) {
    memory::Pool pool;
    if (with_another_size)
      for (const std::size_t bytes : {std::size_t{6000}, std::size_t{100} << 10})
        pool.deallocate(pool.allocate(bytes, 16), bytes, 16);
    std::vector<std::size_t> after_each;
    std::vector<void*> blocks;
    for (std::size_t block = 0; block < 10000; ++block) {
      blocks.push_back(pool.allocate(64, 16));
      after_each.push_back(pool.reserved() - pool.idle());
    }
    for (void* const block : blocks) pool.deallocate(block, 64, 16);
    return after_each;
  };
  const std::vector<std::size_t> with = used(true), without = used(false);
  CHECK(with.front() >= without.front() + (std::size_t{100} << 10));
  CHECK(with.back() == without.back());
}

TEST_CASE("before upstream is asked for more, small blocks may be of the next larger sizes") {
  Counted upstream{std::size_t{1} << 20};
  memory::Pool pool(upstream, {.min_chunk = upstream.most});
  const auto as_many_as_there_are = [&](std::size_t bytes, std::size_t alignment) {
    std::vector<void*> blocks;
    try {
      while (true) {
        blocks.push_back(pool.allocate(bytes, alignment));
        CHECK(reinterpret_cast<std::uintptr_t>(blocks.back()) % alignment == 0);
      }
    } catch (const heddle::out_of_memory&) {
    }
    return blocks;
  };
  const auto give_back = [&](const std::vector<void*>& blocks, std::size_t bytes) {
    for (void* const block : blocks) pool.deallocate(block, bytes, 16);
  };
  std::vector<void*> blocks = as_many_as_there_are(630, 16), kept, given;  // of 640 B
  const std::vector<void*> rest = as_many_as_there_are(500, 16);
  for (std::size_t b = 0; b < blocks.size(); ++b) (b % 2 == 0 ? kept : given).push_back(blocks[b]);
  give_back(given, 630);
  blocks = as_many_as_there_are(520, 64);  // of 576 B
  CHECK(blocks.size() == given.size());
  give_back(blocks, 520);
  blocks = as_many_as_there_are(448, 32);
  CHECK(blocks.size() == given.size());
  give_back(blocks, 448);
  CHECK(as_many_as_there_are(410, 16).empty());  // of 416 B: more than half as large again
  CHECK(as_many_as_there_are(500, 16).empty());  // of 512 B, at multiples of that
  CHECK(as_many_as_there_are(630, 16).size() == given.size());
  give_back(given, 630);
  give_back(kept, 630);
  give_back(rest, 500);
  pool.trim();
  CHECK(upstream.used == 0);
}

TEST_CASE("larger blocks than were asked for come back from those who do not know the size") {
  Counted upstream{std::size_t{1} << 20};
  memory::impl::BlockPool<memory::Ref<Counted>> pool(
      memory::Ref<Counted>(upstream), {upstream.most, upstream.most, ~std::size_t{0}}, 0);
  std::vector<void*> blocks;
  const auto take_all = [&](std::size_t bytes) {
    try {
      while (true) blocks.push_back(pool.allocate(nullptr, bytes, 16));
    } catch (const heddle::out_of_memory&) {
    }
  };
  take_all(640);
  const std::size_t of_640 = blocks.size();
  for (std::size_t b = 0; b < of_640; b += 2) REQUIRE(pool.deallocate(nullptr, blocks[b]));
  take_all(520);
  REQUIRE(blocks.size() == of_640 + (of_640 + 1) / 2);
  CHECK(pool.size_of(blocks.back()) == 640);
  for (std::size_t b = 1; b < of_640; b += 2) REQUIRE(pool.deallocate(nullptr, blocks[b]));
  for (std::size_t b = of_640; b < blocks.size(); ++b) REQUIRE(pool.deallocate(nullptr, blocks[b]));
  CHECK(pool.idle() == pool.reserved());
}

TEST_CASE("a pool prints what it has, and refuses chunks of nothing") {
  memory::Pool pool;
  std::ostringstream text;
  text << pool;
  CHECK(text.str() == "0 B reserved, 0 B idle");
  CHECK_THROWS_AS(memory::Pool(memory::Pages(), {.min_chunk = 0}), heddle::contract_error);
}

}  // namespace test_pool
