// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// UnequalThreads: two real threads, one with three times the work per item, for the benchmark of
/// balance() and the systems report.

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/pattern/balance.hpp>

namespace heddle::test {

/// The time for which this thread has had a core.
inline Seconds processor_seconds() {
  std::timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<Seconds>(time.tv_sec) + 1e-9 * static_cast<Seconds>(time.tv_nsec);
}

/// Rounds by two threads. An item is a chain of multiplications that only
/// registers see; worker 1 computes each three times, as a core of a third of the speed would seem
/// to. The best division is 3 to 1, twice as fast as 1 to 1.
class UnequalThreads {
 public:
  static constexpr std::int64_t items = 200'000;  ///< of a round of some hundred milliseconds

  /// What one round took, and the sum over its items, which no division changes.
  struct Round {
    Seconds wall = 0;
    Seconds processor = 0;  ///< the larger of the threads' processor times
    double least_core = 0;  ///< the smaller part of a core that a thread had while it worked
    std::uint64_t sum = 0;
  };

  /// One round of `count` items as `ratios` divide it.
  static Round run(heddle::plan::SpeedRatios& ratios, std::int64_t count = items) {
    std::array<Worked, 2> worked;
    const Seconds begin = steady_seconds();
    const heddle::pattern::BalancedRound done = heddle::pattern::balance(
        ratios, count,
        [&](Worker w, heddle::plan::ItemRange range) { worked[+w] = work(w, range); });
    Round round;
    round.wall = steady_seconds() - begin;
    round.processor = std::max(worked[0].processor, worked[1].processor);
    round.least_core =
        std::min(worked[0].processor / done.times[0], worked[1].processor / done.times[1]);
    round.sum = worked[0].sum + worked[1].sum;
    return round;
  }

 private:
  struct alignas(64) Worked {
    Seconds processor = 0;
    std::uint64_t sum = 0;
  };

  static Worked work(Worker worker, heddle::plan::ItemRange range) {
    const Seconds begin = processor_seconds();
    const int times = worker == Worker{1} ? 3 : 1;
    Worked worked;
    for (std::int64_t i = range.first; i < range.last; ++i) {
      std::uint64_t value = 0;
      for (int k = 0; k < times; ++k) value = chain(static_cast<std::uint64_t>(i), k);
      worked.sum += value;
    }
    worked.processor = processor_seconds() - begin;
    return worked;
  }

  /// Some hundreds of dependent multiplications. Not inlined, and told which time it is, so that no
  /// compiler computes it once for three.
  [[gnu::noinline, gnu::noipa]] static std::uint64_t chain(std::uint64_t x, int) {
    for (int k = 0; k < 500; ++k) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
  }
};

}  // namespace heddle::test
