// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What the emulated core group counts, by hand, and the time that follows from it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/device/core_group.hpp>

namespace test_core_group_counters {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;

namespace {

alignas(128) std::array<std::byte, 256 * 1024> memory{};

/// The counters of a launch in which core 0 calls body(core, block of 64 KB, reply).
template <class Body>
CoreGroupCounters counted(const Body& body) {
  CoreGroup group({.host_threads = 2});
  group.launch("count", [&body](Core& core) {
    if (core.index() != 0) return;
    Reply& reply = core.reply();
    body(core, core.allocate<std::byte>(64 * 1024), reply);
    core.wait(reply, static_cast<std::uint32_t>(1));
  });
  return group.last_launch();
}

}  // namespace

TEST_CASE("requests are counted by bytes, length and alignment", "[core_group]") {
  auto c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.get(block, memory.data(), 4096, reply);
  });
  CHECK(c.get_bytes == 4096);
  CHECK(c.put_bytes == 0);
  CHECK(c.dma_requests() == 1);
  CHECK(c.short_requests == 0);
  CHECK(c.misaligned_requests == 0);
  CHECK(c.long_bytes == 4096);

  c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.get(block, memory.data() + 128, 252, reply);
  });
  CHECK(c.short_requests == 1);
  CHECK(c.misaligned_requests == 0);
  CHECK(c.long_bytes == 0);

  c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.get(block, memory.data() + 4, 256, reply);
  });
  CHECK(c.short_requests == 0);
  CHECK(c.misaligned_requests == 1);
  CHECK(c.misaligned_get_bytes == 256);
  CHECK(c.misaligned_put_segments == 0);
}

TEST_CASE("pieces of strided requests count as what they are in memory", "[core_group]") {
  // 5 pieces of 128 bytes that start at 0, 192, 384, 576, 768: at 0, 64, 0, 64, 0 of a segment.
  auto c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.get_strided(block, memory.data(), 5 * 128, 128, 64, reply);
  });
  CHECK(c.get_requests == 1);
  CHECK(c.get_bytes == 640);
  CHECK(c.short_requests == 1);
  CHECK(c.long_bytes == 0);
  CHECK(c.misaligned_requests == 1);
  CHECK(c.misaligned_get_bytes == 2 * 128);
  // Puts to the same places fill two segments partly for each piece at 64.
  c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.put_strided(memory.data(), block, 5 * 128, 128, 64, reply);
  });
  CHECK(c.put_requests == 1);
  CHECK(c.misaligned_put_segments == 4);
  // 4 bytes at 64, which share a segment with what stays; 192 bytes at 64 end with their segment.
  c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.put(memory.data() + 64, block, 4, reply);
  });
  CHECK(c.misaligned_put_segments == 1);
  c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.put(memory.data() + 64, block, 192, reply);
  });
  CHECK(c.misaligned_put_segments == 1);
  // Rows of 256 bytes, a row of 512 apart: long and aligned.
  c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.put_strided(memory.data(), block, 8 * 256, 256, 256, reply);
  });
  CHECK(c.long_bytes == 2048);
  CHECK(c.short_requests == 0);
  CHECK(c.misaligned_requests == 0);
}

TEST_CASE("strided requests gather and scatter", "[core_group]") {
  for (const std::size_t pieces : {1, 3, 7})
    for (const std::size_t piece : {4, 12, 256})
      for (const std::size_t gap : {0, 4, 100}) {
        const std::size_t step = piece + gap;
        std::vector<std::uint32_t> in(pieces * step / 4), out(pieces * step / 4, 7), want = out;
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint32_t>(i * i);
        for (std::size_t p = 0; p < pieces; ++p)
          for (std::size_t i = 0; i < piece / 4; ++i)
            want[p * step / 4 + i] = in[p * step / 4 + i] + 1;
        const auto c = counted([&](Core& core, std::byte* block, Reply& reply) {
          core.get_strided(block, in.data(), pieces * piece, piece, gap, reply);
          core.wait(reply, 1);
          auto* const numbers = reinterpret_cast<std::uint32_t*>(block);
          for (std::size_t i = 0; i < pieces * piece / 4; ++i) ++numbers[i];
          core.put_strided(out.data(), block, pieces * piece, piece, gap, reply);
          core.wait(reply, 2);
        });
        CHECK(out == want);
        CHECK(c.dma_bytes() == 2 * pieces * piece);
        CHECK(c.dma_requests() == 2);
      }
}

TEST_CASE("the modelled time is the slower of latency and bandwidth", "[core_group]") {
  // One request of one core: its latency, 196 ns in and 105 ns out.
  auto c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.get(block, memory.data(), 128, reply);
  });
  CHECK_THAT(c.modelled_seconds, WithinRel(196e-9, 1e-12));
  c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.put(memory.data(), block, 128, reply);
  });
  CHECK_THAT(c.modelled_seconds, WithinRel(105e-9, 1e-12));
  // 64 KB in one request: 65536 / 47e9 s is more than the latency.
  c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.get(block, memory.data(), 65536, reply);
  });
  CHECK_THAT(c.modelled_seconds, WithinRel(65536 / 47e9, 1e-12));
  c = counted([](Core& core, std::byte* block, Reply& reply) {
    core.get(block, memory.data() + 4, 65536, reply);
  });
  CHECK_THAT(c.modelled_seconds, WithinRel(65536 / 47e9 / 0.7, 1e-12));
  // Puts of 128 bytes that are off by 4 cost 12.7 aligned ones.
  const auto puts = [](std::size_t offset) {
    return counted([offset](Core& core, std::byte* block, Reply& reply) {
      core.put_strided(memory.data() + offset, block, 500 * 128, 128, 128, reply);
    });
  };
  CHECK_THAT(puts(4).modelled_seconds, WithinRel(12.7 * puts(0).modelled_seconds, 1e-12));
  // All cores together: bytes add up, latencies do not.
  CoreGroup group({.host_threads = 2});
  group.launch("all", [](Core& core) {
    Reply& reply = core.reply();
    std::byte* const block = core.allocate<std::byte>(128);
    for (std::uint32_t i = 1; i <= 10; ++i) {
      core.get(block, memory.data(), 128, reply);
      core.wait(reply, i);
    }
  });
  c = group.last_launch();
  CHECK(c.get_requests == 640);
  CHECK_THAT(c.modelled_seconds, WithinRel(10 * 196e-9, 1e-12));
}

TEST_CASE("direct accesses are counted by those who make them", "[core_group]") {
  CoreGroup group({.host_threads = 2});
  group.launch("direct", [](Core&) {
    current_core()->count_direct_loads(3);
    current_core()->count_direct_stores(1);
  });
  const auto c = group.last_launch();
  CHECK(c.direct_loads == 3 * 64);
  CHECK(c.direct_stores == 64);
  CHECK_THAT(c.modelled_seconds, WithinRel((3 * 196 + 105) * 1e-9, 1e-12));
}

TEST_CASE("launches add up until they are reset", "[core_group]") {
  CoreGroup group({.host_threads = 2});
  struct Get {
    std::size_t bytes;
    void operator()(Core& core) const {
      Reply& reply = core.reply();
      core.get(core.allocate(bytes), memory.data(), bytes, reply);
      core.wait(reply, 1);
    }
  };
  CHECK(group.total().launches == 0);
  group.launch("one", Get{1024});
  const auto one = group.last_launch();
  group.launch("two", Get{256});
  const auto two = group.last_launch();
  CHECK(one.get_bytes == 64 * 1024);
  CHECK(two.get_bytes == 64 * 256);
  const auto total = group.total();
  CHECK(total.launches == 2);
  CHECK(total.get_bytes == 64 * 1280);
  CHECK(total.local_peak == one.local_peak);
  CHECK(total.modelled_seconds == one.modelled_seconds + two.modelled_seconds);
  CHECK_THAT(text(total), ContainsSubstring("2 launches, DMA 81920 B in and 0 B out in 128 "
                                            "requests (0 short, 0 misaligned)"));
  group.reset_counters();
  CHECK(group.total().launches == 0);
  CHECK(group.last_launch().get_bytes == 0);
}

TEST_CASE("core groups are independent; a group serves one host thread after another",
          "[core_group]") {
  struct Add {
    int* numbers;
    void operator()(Core& core) const {
      Reply& reply = core.reply();
      int* const mine = core.allocate<int>(1);
      core.get(mine, numbers + core.index(), 4, reply);
      core.wait(reply, 1);
      ++*mine;
      core.put(numbers + core.index(), mine, 4, reply);
      core.wait(reply, 2);
    }
  };
  constexpr int launches = 100;
  CoreGroup first({.host_threads = 2});
  CoreGroup second({.local_memory = 64 * 1024, .host_threads = 1});
  std::array<int, 64> of_first{}, of_second{};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < launches; ++i) {
        const bool together = i % 7 == 0;
        const auto how = together ? Cooperative::yes : Cooperative::no;
        if (t < 2)
          first.launch("add", Add{of_first.data()}, how);
        else
          second.launch("add", Add{of_second.data()}, how);
      }
    });
  for (auto& thread : threads) thread.join();
  for (const int number : of_first) CHECK(number == 2 * launches);
  for (const int number : of_second) CHECK(number == launches);
  CHECK(first.total().launches == 2 * launches);
  CHECK(second.total().get_bytes == launches * 64 * 4);
}

}  // namespace test_core_group_counters
