// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// choose_stream_plan(): how many threads a stream is worth, and what each of them does. Every plan
/// is simulated with what the stages and a hand-over between threads were measured to take.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/schedule/generator/shared_stream.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0::impl {

/// What one thread waits for another's word that something is done: half a round trip of two
/// counters, the lower decile of many: a new thread may share its core with the first one for a
/// while, and two that work do not. Measured once per process, in less than a millisecond.
[[nodiscard]] inline Seconds handover_time() {
  static const Seconds measured = [] {
    constexpr std::uint32_t rounds = 1001;
    struct alignas(64) Counter {
      std::atomic<std::uint32_t> value{0};
      void wait_for(std::uint32_t wanted) const {
        for (Waiting waiting(Idle::yield); value.load(std::memory_order_acquire) < wanted;)
          waiting();
      }
    };
    Counter there, back;
    std::thread other([&] {
      for (std::uint32_t round = 1; round <= rounds; ++round) {
        there.wait_for(round);
        back.value.store(round, std::memory_order_release);
      }
    });
    std::array<Seconds, rounds> times;
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      const Seconds begin = steady_seconds();
      there.value.store(round, std::memory_order_release);
      back.wait_for(round);
      times[round - 1] = (steady_seconds() - begin) / 2;
    }
    other.join();
    std::nth_element(times.begin(), times.begin() + rounds / 10, times.end());
    return times[rounds / 10];
  }();
  return measured;
}

/// A time for each stage, and one for each word from another rank that an action waits for.
struct StreamCosts {
  using Time = Seconds;

  std::vector<Seconds> stage;
  Seconds handover = 0;

  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const auto rank_of = [&](ActionId each) { return schedule[schedule[each].queue].from; };
    Seconds time = stage[+schedule[id].stage];
    for (const After& after : schedule.after(id))
      if (rank_of(ActionId{after.action}) != rank_of(id)) time += handover;
    return time;
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule&, ActionId) const { return {}; }
};

/// The division of the chain in `parts` neighbourhoods of which the most costly costs least.
[[nodiscard]] inline std::vector<int> balanced(const std::vector<Seconds>& costs,
                                               std::size_t parts) {
  const std::size_t stages = costs.size();
  // least[p][s]: of the first s stages in p + 1 parts; begin[p][s]: where the last one begins.
  std::vector least(parts, std::vector<Seconds>(stages + 1, 0));
  std::vector begin(parts, std::vector<std::size_t>(stages + 1, 0));
  for (std::size_t s = 1; s <= stages; ++s) least[0][s] = least[0][s - 1] + costs[s - 1];
  for (std::size_t p = 1; p < parts; ++p) {
    for (std::size_t s = p + 1; s <= stages; ++s) {
      least[p][s] = std::numeric_limits<Seconds>::infinity();
      Seconds last = 0;
      for (std::size_t first = s; first-- > p;) {
        last += costs[first];
        const Seconds worst = std::max(last, least[p - 1][first]);
        if (worst < least[p][s]) {
          least[p][s] = worst;
          begin[p][s] = first;
        }
      }
    }
  }
  std::vector<int> division(parts);
  for (std::size_t p = parts, end = stages; p-- > 0;) {
    const std::size_t first = begin[p][end];
    division[p] = static_cast<int>(end - first);
    end = first;
  }
  return division;
}

/// The plan over at most `threads` threads that a simulation says is fastest; of those within a
/// hundredth the one with the fewest threads. `parallel` is that of shared_stream().
[[nodiscard]] inline schedule::StreamPlan choose_stream_plan(const StreamCosts& costs,
                                                             const std::vector<bool>& parallel,
                                                             int threads) {
  const int stages = static_cast<int>(costs.stage.size());
  schedule::StreamPlan best;
  Seconds least = std::numeric_limits<Seconds>::infinity();
  // No number of threads helps a stage that takes one batch at a time.
  Seconds bound = 0;
  for (std::size_t s = 0; s < costs.stage.size(); ++s)
    if (parallel.empty() || !parallel[s]) bound = std::max(bound, costs.stage[s]);
  for (int count = 1; count <= threads && 0.99 * least > bound; ++count) {
    for (int divisions = 1; divisions <= std::min(count, stages); ++divisions) {
      if (count % divisions != 0) continue;
      const schedule::StreamPlan plan{balanced(costs.stage, static_cast<std::size_t>(divisions)),
                                      count / divisions};
      // What as many items more take: without the begin and the end of the stream.
      const auto taken = [&](int items) {
        return simulate(schedule::shared_stream(plan, items, parallel), costs).makespan();
      };
      const int items = 8 * count;
      const Seconds each = (taken(2 * items) - taken(items)) / items;
      if (each >= (count > best.ranks() ? 0.99 : 1) * least) continue;
      least = each;
      best = plan;
    }
  }
  return best;
}

}  // namespace heddle::inline v0::impl
