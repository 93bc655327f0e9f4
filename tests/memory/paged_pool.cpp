// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// kokkos: none

// Pool over pages that can lie elsewhere: free ones become those of new blocks, or go back, and
// nothing that is used is lost.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/memory/arena.hpp>
#include <heddle/memory/ipc_safe.hpp>
#include <heddle/memory/limit.hpp>
#include <heddle/memory/pool.hpp>
#include <heddle/memory/source/pages.hpp>
#include <heddle/memory/stats.hpp>

#include "conformance.hpp"
#include "support/cases.hpp"
#include "support/resident_pages.hpp"

namespace test_paged_pool {

namespace memory = heddle::memory;

constexpr std::size_t KiB = 1 << 10, MiB = 1 << 20;

static_assert(memory::PagedResource<memory::Pages>);
static_assert(memory::PagedResource<memory::Stats<memory::Ref<memory::Pages>>>);
// A network card may know where pages lie.
static_assert(!memory::PagedResource<memory::IpcSafe<memory::Pages>>);
static_assert(!memory::PagedResource<memory::Limit<memory::Pages>>);

/// Pages with room to grow. Counts what was moved; says no at random where that is asked for.
class Moving : public heddle::test::ResidentPages {
 public:
  explicit Moving(memory::HugePages huge_pages, std::uint32_t refusing = 0)
      : ResidentPages(huge_pages, std::size_t{1} << 30), m_refusing(refusing) {}

  std::size_t moves = 0;
  std::size_t discards = 0;

  bool remap(void* from, void* to, std::size_t size) noexcept {
    if (refuses()) return false;
    ++moves;
    return Pages::remap(from, to, size);
  }
  bool discard(void* part, std::size_t size) noexcept {
    if (refuses()) return false;
    ++discards;
    return Pages::discard(part, size);
  }

 private:
  [[nodiscard]] bool refuses() { return m_refusing != 0 && m_random() % m_refusing == 0; }

  std::uint32_t m_refusing;
  std::mt19937 m_random;
};

TEST_CASE("pages that lie elsewhere have what they had, and others come in their place") {
  memory::Pages pages(memory::HugePages::no);
  constexpr std::size_t part = 128 * KiB;
  auto* const block = static_cast<std::byte*>(pages.allocate(4 * part, 64));
  for (std::size_t p = 0; p < 4; ++p) std::fill_n(block + p * part, part, std::byte(p + 1));
#ifdef MREMAP_DONTUNMAP
  REQUIRE(pages.remap(block, block + 2 * part, part));
  const std::byte expected[] = {std::byte{0}, std::byte{2}, std::byte{1}, std::byte{4}};
#else
  REQUIRE(!pages.remap(block, block + 2 * part, part));
  const std::byte expected[] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
#endif
  const auto all_are = [&](std::size_t p, std::byte value) {
    return std::all_of(block + p * part, block + (p + 1) * part,
                       [&](std::byte is) { return is == value; });
  };
  for (std::size_t p = 0; p < 4; ++p) CHECK(all_are(p, expected[p]));
  REQUIRE(pages.discard(block + part, part));
  CHECK(all_are(1, std::byte{0}));
  CHECK(all_are(3, std::byte{4}));
  // What is refused leaves both places usable.
  CHECK(!pages.remap(block + 1, block + 2 * part, part));
  std::fill_n(block, 4 * part, std::byte{7});
  CHECK(all_are(2, std::byte{7}));
  pages.deallocate(block, 4 * part, 64);
}

#ifdef MREMAP_DONTUNMAP
TEST_CASE("pages that have moved before move again, and locked ones stay where they are") {
  memory::Pages pages(memory::HugePages::no);
  constexpr std::size_t part = 64 * KiB;
  auto* const block = static_cast<std::byte*>(pages.allocate(8 * part, 64));
  const auto is = [&](std::size_t p, int value) {
    return std::all_of(block + p * part, block + (p + 1) * part,
                       [&](std::byte byte) { return byte == static_cast<std::byte>(value); });
  };
  for (std::size_t p = 0; p < 8; ++p) std::fill_n(block + p * part, part, std::byte(p + 1));
  // The second of three is another mapping of the system then, and goes with the others.
  REQUIRE(pages.remap(block + 7 * part, block + part, part));
  REQUIRE(pages.remap(block, block + 4 * part, 3 * part));
  CHECK((is(4, 1) && is(5, 8) && is(6, 3)));
  CHECK((is(0, 0) && is(1, 0) && is(2, 0) && is(7, 0)));
  CHECK(is(3, 4));
  // As far as the process may; sanitizers have an mlock() that does nothing.
  if (::syscall(SYS_mlock, block + 3 * part, part) == 0) {
    CHECK(!pages.remap(block + 4 * part, block + 3 * part, part));
    CHECK((is(3, 4) && is(4, 1)));
    REQUIRE(pages.remap(block + 3 * part, block, part));
    CHECK((is(0, 4) && is(3, 0)));
  }
  std::fill_n(block, 8 * part, std::byte{9});
  CHECK((is(0, 9) && is(7, 9)));
  pages.deallocate(block, 8 * part, 64);
}
#endif

TEST_CASE("a pool says at least what the system has given, and every byte is as written") {
  const std::size_t steps = heddle::test::cases(6000, 300000);
  struct Way {
    memory::HugePages huge_pages;
    std::uint32_t refusing;
    std::size_t most, live;
  };
  for (const Way& way :
       {Way{memory::HugePages::no, 0, 2 * MiB, 30}, Way{memory::HugePages::no, 3, 2 * MiB, 30},
        Way{memory::HugePages::yes, 0, 16 * MiB, 30},
        Way{memory::HugePages::yes, 3, 16 * MiB, 30}}) {
    Moving upstream(way.huge_pages, way.refusing);
    {
      memory::Pool pool(upstream);
      std::mt19937_64 random(way.most + way.refusing);
      std::vector<std::pair<memory_test::Block, std::size_t>> blocks;
      const auto check = [](const memory_test::Block& block) {  // all pages, not all bytes
        for (std::size_t i = 0; i < block.bytes; i += 509)
          if (block.begin[i] != block.mark) throw std::string("a block was written by others");
      };
      std::size_t live = 0;
      for (std::size_t step = 0; step < steps; ++step) {
        if (blocks.size() < way.live) {
          const auto bytes = static_cast<std::size_t>(
              std::pow(static_cast<double>(way.most), static_cast<double>(random() % 1001) / 1000));
          memory_test::Block block{static_cast<std::byte*>(pool.allocate(bytes, 16)), bytes, 16,
                                   static_cast<std::byte>(random())};
          for (std::size_t i = 0; i < bytes; i += 509) block.begin[i] = block.mark;
          blocks.emplace_back(block, bytes);
          live += bytes;
        }
        if (blocks.size() == way.live || random() % 4 == 0) {
          std::swap(blocks[random() % blocks.size()], blocks.back());
          REQUIRE_NOTHROW(check(blocks.back().first));
          live -= blocks.back().second;
          pool.deallocate(blocks.back().first.begin, blocks.back().second, 16);
          blocks.pop_back();
        }
        if (random() % 400 == 0) {
          const std::size_t had = pool.reserved(), keep = random() % (2 * had);
          pool.trim(keep);
          REQUIRE(pool.reserved() <= had);
          REQUIRE(pool.reserved() >= std::min(had, keep));
          REQUIRE(pool.idle() <= pool.reserved());
        }
        REQUIRE(live <= pool.reserved());
        // The system makes huge pages of small ones when it likes.
        if (step % 50 == 0 && pool.reserved() > 0 && way.huge_pages == memory::HugePages::no)
          REQUIRE(upstream.resident() <= pool.reserved() + upstream.page());
      }
#ifdef MREMAP_DONTUNMAP
      CHECK(upstream.moves > 0);
#endif
      CHECK(upstream.discards > 0);
      for (const auto& [block, bytes] : blocks) {
        REQUIRE_NOTHROW(check(block));
        pool.deallocate(block.begin, bytes, 16);
      }
      pool.trim();
      CHECK(pool.reserved() == 0);
      CHECK(pool.idle() == 0);
    }
  }
}

#ifdef MREMAP_DONTUNMAP
TEST_CASE("a block that fits into no hole has pages of several") {
  for (const bool huge : {false, true}) {
    Moving upstream(huge ? memory::HugePages::yes : memory::HugePages::no);
    memory::Pool pool(upstream);
    const std::size_t unit = huge ? 8 * MiB : 512 * KiB;
    std::vector<memory_test::Block> blocks;
    for (int b = 0; b < 32; ++b)
      blocks.push_back(memory_test::take(pool, unit, 64, std::byte(b + 1)));
    for (std::size_t b = 0; b < 32; b += 2) memory_test::give_back(pool, blocks[b]);
    const std::size_t had = pool.reserved();
    const std::size_t most = had + had / (huge ? 6 : 16) + 2 * MiB;
    CHECK(upstream.moves == 0);
    const memory_test::Block large = memory_test::take(pool, 8 * unit, 64, std::byte{99});
    CHECK(upstream.moves > 0);
    CHECK(pool.reserved() <= most);
    CHECK(upstream.resident() <= pool.reserved());
    // And back into the holes.
    for (std::size_t b = 0; b < 16; b += 2)
      blocks[b] = memory_test::take(pool, unit, 64, std::byte(b + 1));
    CHECK(pool.reserved() <= most);
    for (std::size_t b = 0; b < 32; ++b)
      if (b % 2 == 1 || b < 16) REQUIRE_NOTHROW(memory_test::give_back(pool, blocks[b]));
    REQUIRE_NOTHROW(memory_test::give_back(pool, large));
  }
}
#endif

TEST_CASE("trim gives back what is free between blocks, as far as it may") {
  Moving upstream(memory::HugePages::yes);
  memory::Pool pool(upstream);
  std::vector<memory_test::Block> blocks;
  for (int b = 0; b < 40; ++b)
    blocks.push_back(memory_test::take(pool, 4 * MiB, 64, std::byte(b + 1)));
  for (std::size_t b = 0; b < 39; ++b)
    if (b % 4 != 3) memory_test::give_back(pool, blocks[b]);
  const std::size_t live = 10 * 4 * MiB;
  pool.trim(100 * MiB);
  CHECK(pool.reserved() >= 100 * MiB);
  CHECK(pool.reserved() <= 100 * MiB + 32 * KiB);
  pool.trim();
  CHECK(pool.reserved() >= live);
  CHECK(pool.reserved() <= live + 40 * 32 * KiB);
  CHECK(pool.reserved() - pool.idle() == live);
  CHECK(upstream.resident() <= pool.reserved());
  for (std::size_t b = 3; b < 40; b += 4) REQUIRE_NOTHROW(memory_test::give_back(pool, blocks[b]));
}

TEST_CASE("random blocks of any size need little more than what is live at most") {
  struct Load {
    double least, most;
    std::size_t live;
    double bound;
  };
  for (const Load& load : {Load{64, 4096, 10000, 1.19}, Load{4096, 262144, 500, 1.2},
                           Load{1 << 20, 32 << 20, 16, 1.2}}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      memory::Pool pool;
      std::mt19937_64 random(seed);
      std::vector<std::pair<void*, std::size_t>> blocks(load.live);
      std::size_t live = 0, most_live = 0, most_reserved = 0;
      for (std::size_t step = 0; step < 20 * load.live; ++step) {
        auto& [block, bytes] = blocks[random() % load.live];
        pool.deallocate(block, bytes, 16);
        live -= bytes;
        bytes = static_cast<std::size_t>(
            load.least *
            std::pow(load.most / load.least, static_cast<double>(random() >> 11) * 0x1p-53));
        block = pool.allocate(bytes, 16);
        live += bytes;
        most_live = std::max(most_live, live);
        most_reserved = std::max(most_reserved, pool.reserved());
      }
      for (const auto& [block, bytes] : blocks) pool.deallocate(block, bytes, 16);
      CHECK(static_cast<double>(most_reserved) <= load.bound * static_cast<double>(most_live));
    }
  }
}

}  // namespace test_paged_pool
