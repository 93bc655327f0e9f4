// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// A pool promises no more than the machine can back, or as much as it is told.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/memory/fallback.hpp>
#include <heddle/memory/ipc_safe.hpp>
#include <heddle/memory/limit.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/machine_memory.hpp>
#include <heddle/memory/source/mapped.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/source/segment.hpp>
#include <heddle/memory/source/system_memory.hpp>
#include <heddle/memory/stats.hpp>

#include "conformance.hpp"
#include "support/child.hpp"

namespace test_promises {

namespace memory = heddle::memory;

constexpr std::size_t KiB = 1 << 10, MiB = 1 << 20, TiB = std::size_t{1} << 40;

static_assert(memory::is_overcommitted<memory::Pool<memory::IpcSafe<memory::Pages>>>);
static_assert(memory::is_overcommitted<memory::Stats<memory::Ref<memory::Limit<memory::Pages>>>>);
static_assert(memory::is_overcommitted<memory::Fallback<memory::Mapped, memory::Pages>>);
static_assert(!memory::is_overcommitted<memory::Mapped>);

namespace {

/// A folder with files as those of control groups, for as long as it lasts.
class Groups {
 public:
  Groups()
      : m_root(std::filesystem::temp_directory_path() /
               ("heddle_groups_" + std::to_string(::getpid()))) {}
  ~Groups() { std::filesystem::remove_all(m_root); }

  Groups& write(const std::string& name, const std::string& what) {
    const auto file = m_root / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << what << '\n';
    return *this;
  }
  [[nodiscard]] std::size_t memory() const {
    return memory::machine_memory({m_root / "cgroup", m_root / "limits"});
  }

 private:
  std::filesystem::path m_root;
};

/// Pages that cannot be taken elsewhere, counted.
struct Counted {
  std::size_t used = 0, most_used = 0;

  void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const block = memory::Pages().allocate(bytes, alignment);
    most_used = std::max(most_used, used += bytes);
    return block;
  }
  void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
    used -= bytes;
    memory::Pages().deallocate(block, bytes, alignment);
  }
};

}  // namespace

TEST_CASE("a pool promises no more than the machine has") {
  const std::size_t all = memory::machine_memory();
  CHECK(all <= memory::system_memory().physical);
  memory::Pool pool;
  memory::Stats stats{memory::Pages{}};
  memory::Pool over_stats(stats);
  memory::IpcSafe reached{memory::Pages{}};
  memory::Pool over_reached(reached);
  const auto refuses = [&](auto& resource, std::size_t bytes) {
    CHECK_THROWS_AS((void)resource.allocate(bytes, 64), heddle::out_of_memory);
    CHECK(resource.reserved() == 0);
  };
  for (const std::size_t bytes : {64 * TiB, memory::system_memory().physical + 1, all + 1}) {
    refuses(pool, bytes);
    refuses(over_stats, bytes);
    refuses(over_reached, bytes);
  }
  CHECK(stats.usage().total_blocks == 0);  // nor was upstream asked
  CHECK_THROWS_WITH((void)pool.allocate(64 * TiB, 64),
                    heddle::text("heddle::memory::Pool: cannot allocate 70368744177664 B more"
                                 " (0 B of at most ",
                                 all / KiB * KiB,
                                 " B are in use); free some, or raise PoolOptions::most if the "
                                 "machine has more"));
}

TEST_CASE("no block of pages is larger than the machine's memory and swap") {
  const auto [physical, swap] = memory::system_memory();
  memory::Pages pages, growing(memory::HugePages::no, 64 * TiB);
  CHECK_THROWS_AS((void)pages.allocate(physical + swap + MiB, 64), heddle::out_of_memory);
  pages.deallocate(pages.allocate(physical / 2, 64), physical / 2, 64);
  memory::Limit limit(memory::Pages(), 64 * TiB);
  CHECK_THROWS_AS((void)limit.allocate(64 * TiB, 64), heddle::out_of_memory);
  CHECK_THROWS_AS(memory::Segment(64 * TiB), heddle::out_of_memory);
  void* const block = growing.allocate(MiB, 64);
  CHECK(growing.extend(block, MiB, MiB));
  CHECK_FALSE(growing.extend(block, 2 * MiB, physical + swap));
  growing.deallocate(block, 2 * MiB, 64);
}

TEST_CASE("all blocks of a pool together are within what the machine has") {
  const std::size_t third = memory::machine_memory() / 3 / KiB * KiB - KiB;
  memory::Pool pool;
  std::vector<void*> blocks;  // which nobody writes
  for (int b = 0; b < 3; ++b) blocks.push_back(pool.allocate(third, 64));
  CHECK_THROWS_AS((void)pool.allocate(third, 64), heddle::out_of_memory);
  CHECK_THROWS_AS((void)pool.allocate(MiB, 64), heddle::out_of_memory);
  pool.deallocate(blocks.back(), third, 64);
  blocks.back() = pool.allocate(third, 64);
  for (void* const block : blocks) pool.deallocate(block, third, 64);
}

TEST_CASE("PoolOptions say how much a pool promises") {
  for (const std::size_t most : {3 * KiB, 100 * KiB, 3 * MiB + 7})
    for (const std::size_t bytes : {std::size_t{30}, std::size_t{500}, 5 * KiB, MiB}) {
      Counted counted;
      {
        memory::Pool paged(memory::Pages(), {.most = most});
        memory::Pool fixed(counted, {.most = most});
        const auto fill = [&](auto& pool) {
          std::vector<void*> blocks;
          try {
            for (;;) blocks.push_back(pool.allocate(bytes, 16));
          } catch (const heddle::out_of_memory&) {
          }
          for (void* const block : blocks) pool.deallocate(block, bytes, 16);
          return blocks.size() * bytes;
        };
        for (int again = 0; again < 2; ++again) {
          const std::size_t of_paged = fill(paged), of_fixed = fill(fixed);
          CHECK(of_paged <= most);
          CHECK(of_fixed <= most);
          if (most >= 3 * MiB && bytes < MiB) {
            CHECK(of_paged > most / 10 * 8);
            CHECK(of_fixed > most / 10 * 8);
          }
        }
      }
      CHECK(counted.most_used <= most);
      CHECK(counted.used == 0);
    }
  // More than the machine has, of addresses that nobody touches.
  memory::Pool large(memory::Pages(), {.most = 8 * TiB});
  const std::size_t half = memory::system_memory().physical / 2;
  std::vector<void*> blocks;
  for (int b = 0; b < 5; ++b) blocks.push_back(large.allocate(half, 64));
  for (void* const block : blocks) large.deallocate(block, half, 64);
  CHECK_THROWS_AS((void)large.allocate(9 * TiB, 64), heddle::out_of_memory);
  CHECK_THROWS_AS(memory::Pool(memory::Pages(), {.most = 0}), heddle::contract_error);
}

TEST_CASE("a pool that may promise little loses nothing") {
  memory::Pool paged(memory::Pages(), {.most = 16 * MiB});
  memory_test::random_blocks(paged, 1, 1000, MiB, 8);
  Counted counted;
  {
    memory::Pool fixed(counted, {.most = 16 * MiB});
    memory_test::random_blocks(fixed, 2, 1000, MiB, 8);
  }
  CHECK(counted.most_used <= 16 * MiB);
  CHECK(counted.used == 0);
}

TEST_CASE("what a block may touch stays within what the pool promises") {
  memory::Pool pool(memory::Pages(memory::HugePages::no, 64 * MiB), {.most = 8 * MiB});
  // Free ranges with pages, none of which is large enough, and then a block that lies elsewhere.
  std::vector<void*> blocks;
  for (int b = 0; b < 16; ++b)
    blocks.push_back(memory_test::take(pool, 512 * KiB, 64, std::byte{1}).begin);
  for (std::size_t b = 0; b < 16; b += 2) pool.deallocate(blocks[b], 512 * KiB, 64);
  const memory_test::Block large = memory_test::take(pool, 4 * MiB, 64, std::byte{2});
  CHECK(pool.reserved() <= 8 * MiB + 512 * KiB);  // edges of holes are no whole units
  memory_test::give_back(pool, large);
  for (std::size_t b = 1; b < 16; b += 2) pool.deallocate(blocks[b], 512 * KiB, 64);
}

TEST_CASE("the limits of control groups count, and those above them") {
  const std::size_t physical = memory::system_memory().physical;
  REQUIRE(physical > 64 * MiB);
  CHECK(Groups().memory() <= physical);  // no files
  {
    Groups v2;
    v2.write("cgroup", "0::/job/step").write("limits/job/step/memory.max", "max");
    const std::size_t without = v2.memory();
    CHECK(without > 20 * MiB);
    CHECK(v2.write("limits/job/memory.max", "20971520").memory() == 20 * MiB);
    CHECK(v2.write("limits/job/step/memory.max", "1048576").memory() == MiB);
    CHECK(v2.write("limits/memory.max", "524288").memory() == 512 * KiB);
    CHECK(v2.write("limits/other/memory.max", "4096").memory() == 512 * KiB);
  }
  {
    Groups v1;
    v1.write("cgroup", "5:cpu,cpuacct:/cpu\n4:memory:/docker/1a2b\n0::/")
        .write("limits/memory/docker/1a2b/memory.limit_in_bytes", "9223372036854771712");
    CHECK(v1.memory() <= physical);
    // A container sees its own group as the first one.
    CHECK(v1.write("limits/memory/memory.limit_in_bytes", "20971520").memory() == 20 * MiB);
    CHECK(v1.write("limits/cpu/memory.limit_in_bytes", "4096").memory() == 20 * MiB);
  }
  CHECK(Groups().write("cgroup", "0::/").write("limits/memory.max", "4096").memory() == 4096);
  CHECK(Groups().write("cgroup", "nonsense\n\n7:\n0:memory").memory() <= physical);
}

TEST_CASE("the limits of a process count") {
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA})
    CHECK(heddle::test::works_in_child([&] {
      rlimit limit{};
      ::getrlimit(resource, &limit);
      limit.rlim_cur = std::size_t{2} << 30;
      ::setrlimit(resource, &limit);
      if (memory::machine_memory() != limit.rlim_cur) return false;
      memory::Pool pool;
      try {
        static_cast<void>(pool.allocate(limit.rlim_cur + 1, 64));
      } catch (const heddle::out_of_memory&) {
        return true;
      }
      return false;
    }));
}

/// Returns the bytes of addresses that the process uses.
std::size_t addresses() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * memory::Pages::page();
}

TEST_CASE("memory that can grow uses no more addresses than it has") {
  // In a child, so that no other thread of this process uses addresses meanwhile.
  CHECK(heddle::test::works_in_child([] {
    const std::size_t before = addresses();
    bool right = true;
    const auto expect = [&](bool holds) { right = right && holds; };
    memory::Pages growing(memory::HugePages::no, std::size_t{64} << 30);
    void* const block = growing.allocate(MiB, 64);
    expect(addresses() <= before + 2 * MiB);
    std::size_t bytes = MiB;
    for (; bytes < 256 * MiB; bytes *= 2) expect(growing.extend(block, bytes, bytes));
    expect(addresses() >= before + bytes);
    growing.shrink(block, bytes, bytes - MiB);
    expect(addresses() <= before + 2 * MiB);
    growing.deallocate(block, MiB, 64);
    expect(addresses() <= before + MiB);

    memory::Pool pool;
    pool.deallocate(pool.allocate(64, 64), 64, 64);
    expect(addresses() <= before + 5 * MiB);
    void* const large = pool.allocate(256 * MiB, 64);
    expect(addresses() <= before + 256 * MiB + 256 * MiB / 24 + 5 * MiB);
    pool.deallocate(large, 256 * MiB, 64);
    return right;
  }));
}

TEST_CASE("free memory of a pool serves any sizes, even if the system has no more addresses") {
  constexpr std::size_t all = 8 * MiB;
  memory::Pool pool;
  pool.deallocate(pool.allocate(all, 64), all, 64);
  std::vector<void*> blocks(all / 16);
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_AS, &old) == 0);
  for (const std::size_t bytes : {16, 40, 100, 1000, 5000, 60000, 1 << 20, 16}) {
    const rlimit none{0, old.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_AS, &none) == 0);
    std::size_t count = 0;
    try {
      for (;; ++count) blocks.at(count) = pool.allocate(bytes, 16);
    } catch (const std::bad_alloc&) {
    }
    for (std::size_t b = 0; b < count; ++b) pool.deallocate(blocks[b], bytes, 16);
    REQUIRE(::setrlimit(RLIMIT_AS, &old) == 0);
    CHECK(count * bytes >= all / 10 * 8);  // blocks of 40 B have 48 B
  }
}

}  // namespace test_promises
