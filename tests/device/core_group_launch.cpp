// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The emulated core group: every core runs once, from a copy in its own local memory, and what it
// moves arrives.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/device/core_group.hpp>

#include "support/complaint.hpp"

namespace test_core_group_launch {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::size_t cores = CoreGrid::cores;

struct WhoAmI {
  std::array<int, 3 * cores>* seen;
  void operator()(Core& core) const {
    const auto i = static_cast<std::size_t>(core.index());
    (*seen)[3 * i] += core.index();
    (*seen)[3 * i + 1] += core.row();
    (*seen)[3 * i + 2] += core.column();
    if (current_core() != &core) throw std::logic_error("another core is the current one");
  }
};

/// out = 2 in + 1 by tiles of `tile` numbers that go through local memory.
struct Affine {
  const int* in;
  int* out;
  std::size_t count;
  std::size_t tile;

  void operator()(Core& core) const {
    int* const local = core.allocate<int>(tile);
    Reply& reply = core.reply();
    for (std::size_t i = static_cast<std::size_t>(core.index()) * tile; i < count;
         i += cores * tile) {
      const std::size_t size = std::min(tile, count - i);
      reply.count = 0;
      core.get(local, in + i, size * sizeof(int), reply);
      core.wait(reply, 1);
      for (std::size_t j = 0; j < size; ++j) local[j] = 2 * local[j] + 1;
      core.put(out + i, local, size * sizeof(int), reply);
      core.wait(reply, 2);
    }
  }
};

/// Counts its core after `microseconds` of work; short ones and long ones follow each other.
struct Work {
  std::array<int, cores>* counts;
  int microseconds;
  void operator()(Core& core) const {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::microseconds(microseconds);
    while (Clock::now() < end) {
    }
    ++(*counts)[static_cast<std::size_t>(core.index())];
  }
};

/// Core 0 takes long enough to be helped; whoever runs core 1 waits for the help.
struct WaitForHelp {
  std::atomic<int>* helped;
  std::thread::id caller;
  void operator()(Core& core) const {
    if (core.index() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (std::this_thread::get_id() != caller) ++*helped;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (core.index() == 1 && *helped == 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
  }
};

}  // namespace

TEST_CASE("every core runs once and knows its place", "[core_group]") {
  for (const int threads : {1, 2, 3, 64}) {
    CoreGroup group({.host_threads = threads});
    CHECK(group.options().host_threads == threads);
    std::array<int, 3 * cores> seen{};
    constexpr int launches = 50;
    for (int i = 0; i < launches; ++i) group.launch("who", WhoAmI{&seen});
    for (int i = 0; i < CoreGrid::cores; ++i) {
      const auto at = 3 * static_cast<std::size_t>(i);
      REQUIRE(seen[at] == launches * i);
      REQUIRE(seen[at + 1] == launches * (i / 8));
      REQUIRE(seen[at + 2] == launches * (i % 8));
    }
    CHECK(group.total().launches == launches);
    CHECK(group.last_launch().launches == 1);
  }
  CHECK(current_core() == nullptr);
}

TEST_CASE("every core runs once, however long it takes", "[core_group]") {
  for (const int threads : {2, 5}) {
    CoreGroup group({.host_threads = threads});
    std::array<int, cores> counts{};
    constexpr int launches = 300;
    for (int i = 0; i < launches; ++i) group.launch("work", Work{&counts, i % 3});
    for (const int count : counts) REQUIRE(count == launches);
  }
}

TEST_CASE("long kernels are shared between the host threads", "[core_group]") {
  CoreGroup group({.host_threads = 2});
  for (int launch = 0; launch < 3; ++launch) {
    std::atomic<int> helped = 0;
    group.launch("help", WaitForHelp{&helped, std::this_thread::get_id()});
    CHECK(helped > 0);
  }
}

TEST_CASE("data go through local memory and back", "[core_group]") {
  CoreGroup group({.host_threads = 2});
  for (const std::size_t count : {0, 1, 63, 64, 65, 9973})
    for (const std::size_t tile : {1, 7, 101}) {
      std::vector<int> in(count), out(count, -1);
      std::iota(in.begin(), in.end(), 3);
      group.launch("affine", Affine{in.data(), out.data(), count, tile});
      const auto counted = group.last_launch();
      for (std::size_t i = 0; i < count; ++i) REQUIRE(out[i] == 2 * in[i] + 1);
      CHECK(counted.get_bytes == count * sizeof(int));
      CHECK(counted.put_bytes == count * sizeof(int));
      CHECK(counted.get_requests == (count + tile - 1) / tile);
      CHECK(counted.dma_requests() == 2 * counted.get_requests);
    }
}

}  // namespace test_core_group_launch
