// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/pattern.hpp>

#include "support/complaint.hpp"

namespace test_balance {

namespace hd = heddle;

TEST_CASE("every item is worked on once, by the worker that it was given to") {
  for (const int workers : {1, 2, 3, 7}) {
    for (const std::int64_t items : {0, 1, 2, 7, 1'009}) {
      hd::plan::SpeedRatios ratios(workers);
      for (int round = 0; round < 3; ++round) {
        std::vector<int> worker_of(static_cast<std::size_t>(items), -1);
        std::atomic<int> twice{0};
        const auto mark = [&](hd::Worker worker, hd::plan::ItemRange range) {
          for (std::int64_t i = range.first; i < range.last; ++i) {
            int& mine = worker_of[static_cast<std::size_t>(i)];
            if (mine != -1) ++twice;
            mine = static_cast<int>(worker.value);
          }
        };
        const hd::pattern::BalancedRound done = hd::pattern::balance(ratios, items, mark);
        CHECK(twice == 0);
        REQUIRE(done.ranges.size() == static_cast<std::size_t>(workers));
        REQUIRE(done.times.size() == static_cast<std::size_t>(workers));
        for (int w = 0; w < workers; ++w) {
          const hd::plan::ItemRange range = done.ranges[static_cast<std::size_t>(w)];
          for (std::int64_t i = range.first; i < range.last; ++i)
            REQUIRE(worker_of[static_cast<std::size_t>(i)] == w);
          CHECK((done.times[static_cast<std::size_t>(w)] > 0) == (range.size() > 0));
        }
        CHECK(done.ranges.back().last == items);
      }
    }
  }
}

TEST_CASE("worker 0 is the calling thread, the others are not, and all run at once") {
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<std::thread::id> ids(3);
  std::atomic<int> here{0};
  hd::plan::SpeedRatios ratios(3);
  hd::pattern::balance(ratios, 3, [&](hd::Worker worker, hd::plan::ItemRange) {
    ids[+worker] = std::this_thread::get_id();
    ++here;
    while (here < 3) std::this_thread::yield();  // ends only where the others have begun
  });
  CHECK(ids[0] == caller);
  CHECK(ids[1] != caller);
  CHECK(ids[2] != caller);
  CHECK(ids[1] != ids[2]);
}

TEST_CASE("the slower worker is given less") {
  // Waits stand for work, so that a busy machine does not matter: 0.4 and 1.2 ms an item. A wait is
  // never shorter than asked for; the slow worker ends with a quarter, and would begin with half.
  hd::plan::SpeedRatios ratios(2);
  const auto wait = [](hd::Worker worker, hd::plan::ItemRange range) {
    const std::int64_t each = worker == hd::Worker{0} ? 400 : 1200;
    std::this_thread::sleep_for(std::chrono::microseconds(each * range.size()));
  };
  for (int round = 0; round < 6; ++round) hd::pattern::balance(ratios, 200, wait);
  CHECK(ratios.values()[0] > 0.65);
  CHECK(ratios.values()[0] < 0.85);
}

TEST_CASE("the error of the first worker that failed comes out when all have ended") {
  hd::plan::SpeedRatios ratios(3);
  std::atomic<int> ended{0};
  const auto fail = [&](hd::Worker worker, hd::plan::ItemRange) {
    if (worker != hd::Worker{0}) throw std::runtime_error(worker == hd::Worker{1} ? "one" : "two");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++ended;
  };
  CHECK(hd::test::message_of<std::runtime_error>([&] { hd::pattern::balance(ratios, 9, fail); }) ==
        "one");
  CHECK(ended == 1);
  CHECK(ratios.values() == hd::plan::SpeedRatios(3).values());
  CHECK_THROWS_AS(hd::pattern::balance(ratios, -1, fail), hd::contract_error);
}

}  // namespace test_balance
