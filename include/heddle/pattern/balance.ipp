// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of balance.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/pattern/balance.hpp>
#include <heddle/plan/speed_ratios.hpp>

namespace heddle::inline v0::pattern {

HEDDLE_INLINE BalancedRound balance(plan::SpeedRatios& ratios, std::int64_t items,
                                    heddle::impl::FunctionRef<void(Worker, plan::ItemRange)> work) {
  BalancedRound round{ratios.split(items), {}};
  const std::size_t workers = round.ranges.size();
  round.times.resize(workers);
  std::vector<std::exception_ptr> errors(workers);
  const auto run = [&](std::size_t w) {
    if (round.ranges[w].size() == 0) return;
    try {
      const Seconds begin = steady_seconds();
      work(Worker{w}, round.ranges[w]);
      // Less than a tick of the clock is one tick: no worker is infinitely fast.
      round.times[w] = std::max(steady_seconds() - begin, Seconds{1e-9});
    } catch (...) {
      errors[w] = std::current_exception();
    }
  };
  std::vector<std::size_t> with_thread;
  for (std::size_t w = 1; w < workers; ++w)
    if (round.ranges[w].size() > 0) with_thread.push_back(w);
  {
    heddle::impl::Threads others(static_cast<int>(with_thread.size()),
                                 [&](int i) { run(with_thread[static_cast<std::size_t>(i - 1)]); });
    others.begin_all("heddle::pattern::balance");
    run(0);
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  ratios.observe(round.ranges, round.times);
  return round;
}

}  // namespace heddle::inline v0::pattern
