// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What both networks of this benchmark share: stages of waits, the phases through which a network
/// goes, and pairs of steps by AdaptiveRunner and by plain 1F1B.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/execute.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>

#include "../../support.hpp"

namespace adaptive {

namespace hd = heddle;

inline constexpr int ranks = 4;
inline constexpr int microbatches = 32;

/// For so many pairs of steps a message takes `slowness` forwards; 0: as long as it takes.
struct Phase {
  double slowness;
  int pairs;
};

/// Every slow phase is judged by itself, from the step on in which it begins; so are the free steps
/// before, between and after, together. After the last there are enough for 1F1B to come back.
inline constexpr Phase phases[] = {{0, 15},   {0.1, 31}, {0, 8},    {0.25, 31}, {0, 8},
                                   {0.5, 31}, {0, 8},    {0.7, 31}, {0, 31}};

/// A stage that waits, for a time and not until one: what comes on top of it is not hidden. It
/// counts what it was asked for, so that nobody does less.
struct Waits {
  hd::Seconds forward;
  std::int64_t forwards = 0;
  std::int64_t backwards = 0;

  void operator()(const hd::Task& task) {
    const bool is_forward = task.kind() == hd::Kind::forward;
    if (!is_forward && task.kind() != hd::Kind::backward) return;
    ++(is_forward ? forwards : backwards);
    std::this_thread::sleep_for(std::chrono::duration<hd::Seconds>((is_forward ? 1 : 2) * forward));
  }
};

/// Runs all phases on this rank; rank 0 prints. `slow(c)` makes messages take c forwards, on all
/// ranks before it returns; `slowest(seconds)` is the largest value of all ranks.
template <class Place, class Slow, class Slowest>
void compare(const char* name, Place& place, hd::Seconds forward, hd::Bytes message, Slow&& slow,
             Slowest&& slowest) {
  const bool prints = hd::transport_of(place).rank() == hd::Rank{0};
  const hd::StageSizes sizes{.activation = message};
  std::vector<hd::Schedule> candidates;
  for (const int k : {1, 2, 4})
    candidates.push_back(hd::schedule::kfkb(
        {.ranks = ranks, .microbatches = microbatches, .group = k, .sizes = sizes}));
  Waits ours{forward};
  Waits theirs{forward};
  const hd::RunOptions options{.execute = {.idle = hd::Idle::nap}};
  hd::AdaptiveRunner adaptive(ours, hd::plan::ScheduleChoice(candidates), place,
                              {.run = options, .every = 4});
  hd::Runner fixed(theirs, candidates.front(), place, options);

  const auto seconds_of = [&](auto&& step) {
    slowest(0);  // begins after all ranks are there
    return slowest(bench::seconds_of(step));
  };
  const auto warm_up = [&] { adaptive.step(), fixed.step(), fixed.drain(); };
  warm_up();

  std::vector<double> free_ours, free_theirs;
  bench::Summary mean{1, 1, 1, 1, 1, 0};
  int slow_phases = 0;
  for (const Phase& phase : phases) {
    slow(phase.slowness);
    std::vector<double> time_ours, time_theirs;
    for (int pair = 0; pair < phase.pairs; ++pair) {
      for (const bool is_ours : {pair % 2 == 0, pair % 2 != 0}) {
        if (is_ours)
          time_ours.push_back(seconds_of([&] { adaptive.step(); }));
        else  // recorded steps end with all messages complete
          time_theirs.push_back(seconds_of([&] { fixed.step(), fixed.drain(); }));
      }
      bench::require_equal("forwards", ours.forwards, theirs.forwards);
      bench::require_equal("backwards", ours.backwards, theirs.backwards);
    }
    if (!prints) continue;
    const hd::plan::ScheduleChoice& choice = adaptive.choice();
    std::cout << name << ": transfers of " << phase.slowness << " F, seen as "
              << choice.costs().between(hd::Stage{0}, hd::Stage{1}) / forward << ", "
              << choice.costs().between(hd::Stage{1}, hd::Stage{2}) / forward << ", "
              << choice.costs().between(hd::Stage{2}, hd::Stage{3}) / forward << " F; at the end '"
              << choice.schedule().name() << "'\n";
    if (phase.slowness == 0) {
      free_ours.insert(free_ours.end(), time_ours.begin(), time_ours.end());
      free_theirs.insert(free_theirs.end(), time_theirs.begin(), time_theirs.end());
      continue;
    }
    const bench::Summary ratio = bench::ratios(time_theirs, time_ours);
    bench::print_ratio(name, hd::text("1f1b_at_", phase.slowness, "F"), ratio);
    ++slow_phases;
    mean = {mean.median * ratio.median, mean.low * ratio.low, mean.high * ratio.high,
            mean.from * ratio.from,     mean.to * ratio.to,   mean.count + ratio.count};
  }
  if (!prints) return;
  for (double* const value : {&mean.median, &mean.low, &mean.high, &mean.from, &mean.to})
    *value = std::pow(*value, 1.0 / slow_phases);
  bench::print_ratio(name, "1f1b_geometric_mean", mean);
  bench::print_ratio(name, "1f1b_free", bench::ratios(free_theirs, free_ours));
}

}  // namespace adaptive
