// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// program: its own

// The allocations of a farm: there is none for an item after the first 1,000, on threads and over
// ranks.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/index.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/pattern/farm.hpp>
#include <heddle/pattern/rank_farm.hpp>

namespace {
std::atomic<std::int64_t> allocations{0};
}  // namespace

// Not inline: g++ 12 would take `new` and free() for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace test_farm_allocations {

using namespace heddle;

constexpr int first = 1'000;
constexpr int count = 6'000;

/// The allocations of all threads from item 1,000 to the last one.
struct Count {
  std::int64_t before = 0;
  std::int64_t after = 0;
  int next = 0;
  std::int64_t sum = 0;
  std::optional<int> source() { return next < count ? std::optional<int>(next++) : std::nullopt; }
  void sink(std::int64_t number, const pattern::FarmOutcome<int>& outcome) {
    if (number == first) before = allocations;
    if (number == count - 1) after = allocations;
    sum += *outcome.value;
  }
};

/// Until the most items are in flight, and those of light items go in chunks of up to 64, the
/// queues grow. That is less than a few allocations for each of these items, however many follow.
std::int64_t most(int in_flight) { return 3 * in_flight + 50; }

TEST_CASE("a farm on threads allocates nothing for an item after the first 1,000") {
  for (const int workers : {1, 2})
    for (const int in_flight : {0, 32}) {
      Count counted;
      pattern::farm(
          {.workers = workers, .in_flight = in_flight}, [&] { return counted.source(); },
          [](int item) { return item; },
          [&](std::int64_t n, pattern::FarmOutcome<int>&& outcome) { counted.sink(n, outcome); });
      CAPTURE(workers, in_flight);
      CHECK(counted.sum == std::int64_t{count} * (count - 1) / 2);
      CHECK(counted.after - counted.before <= most(in_flight == 0 ? 4 * 64 * workers : in_flight));
    }
}

TEST_CASE("a farm over ranks allocates nothing for an item after the first 1,000") {
  for (const int ranks : {1, 2, 3}) {
    const int prefetch = 1 + ranks % 2;
    Count counted;
    run_threads(ranks, [&](ThreadTransport& transport) {
      pattern::farm(
          transport, {.prefetch = prefetch, .wait = {.idle = Idle::yield}},
          [&] { return counted.source(); }, [](int item) { return item; },
          [&](std::int64_t n, pattern::FarmOutcome<int>&& outcome) { counted.sink(n, outcome); });
    });
    CAPTURE(ranks, prefetch);
    CHECK(counted.sum == std::int64_t{count} * (count - 1) / 2);
    CHECK(counted.after - counted.before <= most(4 * ranks * prefetch));
  }
}

}  // namespace test_farm_allocations
