// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Sweeps over ranks (threads) that wait instead of computing: the time that old values gain.
// alone: yes

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <thread>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/pattern/equations.hpp>
#include <heddle/pattern/rank_fixed_point.hpp>

#include "support/rounds.hpp"

namespace test_fixed_point_waits {

using namespace heddle;

TEST_CASE("a rank with old values is ahead of one that waits") {
  // Each of two ranks is slow in sweeps of its own. With fresh values both wait for each; with old
  // ones a rank waits for the slow sweeps of the other only if they come too late.
  const auto seconds = [](int age) {
    Seconds longest = 0;
    std::mutex mutex;
    run_threads(2, [&](ThreadTransport& transport) {
      int calls = 0;
      const bool odd = transport.rank() == Rank{1};
      const auto rule = [&](int i, const pattern::ValuesBefore<int>& before) {
        if (i % 6 == 5 && (calls++ % 2 == 1) == odd)
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return i == 0 ? 1 : before[i - 1] + 1;
      };
      const Equations<int, decltype(rule)> equations(12, 0, rule);
      const Seconds start = steady_seconds();
      static_cast<void>(pattern::fixed_point(
          transport, equations,
          {.most_sweeps = 6, .reach = 1, .staleness = {.age = age}, .wait = {.idle = Idle::nap}}));
      const std::lock_guard lock(mutex);
      longest = std::max(longest, steady_seconds() - start);
    });
    return longest;
  };
  // Six sweeps with a wait each, against two such sweeps (until there are old values) and two waits
  // of a rank's own: 60 and 40 ms.
  std::array forms{test::Form{"fresh values, s", [&] { return seconds(0); }},
                   test::Form{"old values, s", [&] { return seconds(2); }}};
  const test::Spread &fresh = forms[0].spread, &old = forms[1].spread;
  if (!test::measure_in_rounds(forms, [&] { return old.median() < 0.8 * fresh.median(); }))
    SKIP(test::no_result);
  CHECK(old.median() < 0.8 * fresh.median());
}

}  // namespace test_fixed_point_waits
