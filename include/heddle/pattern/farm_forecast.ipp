// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of farm_forecast.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/farm_forecast.hpp>

namespace heddle::inline v0::pattern {

HEDDLE_INLINE double FarmForecast::utilisation() const {
  if (makespan == 0 || busy.empty()) return 1;
  return std::accumulate(busy.begin(), busy.end(), Seconds{0}) /
         (makespan * static_cast<double>(busy.size()));
}

HEDDLE_INLINE FarmForecast
forecast_farm(const FarmOptions& options, std::int64_t items,
              const std::function<FarmForecast::Attempt(Worker, const FarmTask&)>& attempt) {
  constexpr Seconds never = std::numeric_limits<Seconds>::infinity();
  struct Running {
    FarmTask task;
    Seconds end = 0;
    bool succeeded = true;
  };
  constexpr const char* where = "heddle::pattern::forecast_farm";
  expects(items >= 0, [&] {
    return ErrorInfo{where, "the number of items must be at least 0", text("items = ", items)};
  });
  expects(attempt != nullptr, [] { return ErrorInfo{where, "the function `attempt` is empty"}; });
  FarmDecider decider(options);
  FarmForecast forecast;
  const auto workers = static_cast<std::size_t>(options.workers);
  forecast.busy.resize(workers);
  std::vector<std::optional<Running>> running(workers);
  Seconds now = 0;
  for (;;) {
    Seconds later = never;
    for (std::size_t w = 0; w < workers; ++w) {
      if (running[w]) continue;
      FarmDecider::Next next = decider.next(Worker{w}, now);
      while (next.answer == FarmDecider::Answer::propose) {
        decider.proposed(decider.items() < items);
        next = decider.next(Worker{w}, now);
      }
      if (next.until) later = std::min(later, *next.until);
      if (next.answer != FarmDecider::Answer::work) continue;
      const FarmForecast::Attempt made = attempt(Worker{w}, next.task);
      expects(made.time >= 0 && std::isfinite(now + made.time), [&] {
        return ErrorInfo{where, "a time and the sum of all times must be finite and not negative",
                         text("item ", next.task.item, ", attempt ", next.task.attempt, ": ",
                              made.time, " s, begun at ", now, " s")};
      });
      forecast.begun.push_back(next.task);
      forecast.busy[w] += made.time;
      running[w] = Running{next.task, now + made.time, made.succeeded};
    }
    for (const auto& task : running)
      if (task) later = std::min(later, task->end);
    if (later == never) break;
    now = later;
    for (std::size_t w = 0; w < workers; ++w) {
      if (!running[w] || running[w]->end > now) continue;
      const Running ended = *std::exchange(running[w], std::nullopt);
      forecast.makespan = now;
      const FarmDecider::Fate fate = decider.report(Worker{w}, ended.succeeded, now);
      if (fate == FarmDecider::Fate::finished && !ended.succeeded)
        forecast.failed.push_back(ended.task.item);
    }
  }
  expects(decider.finished_prefix() == decider.items(), [&] {
    return ErrorInfo{where, "the sum of all times and waits must be finite",
                     text("item ", decider.finished_prefix(), " waits at ", now,
                          " s, longest_backoff = ", options.longest_backoff)};
  });
  forecast.late = decider.late();
  return forecast;
}

}  // namespace heddle::inline v0::pattern
