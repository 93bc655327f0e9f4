// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// forecast_farm(): a farm in virtual time, by the decider that the real farms use.

#include <cstdint>
#include <functional>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/pattern/farm_decider.hpp>

namespace heddle::inline v0::pattern {

/// A farm in virtual time.
struct FarmForecast {
  /// An attempt in virtual time.
  struct Attempt {
    Seconds time = 0;       ///< how long it takes
    bool succeeded = true;  ///< whether it brings a result
  };

  Seconds makespan = 0;              ///< the time when the last attempt ends
  std::vector<Seconds> busy;         ///< by worker: the time that it works
  std::vector<FarmTask> begun;       ///< the attempts in the order in which they begin
  std::vector<std::int64_t> failed;  ///< items that failed at every attempt
  std::int64_t late = 0;             ///< results that came too late

  /// Returns the mean share of the makespan in which a worker works; 1 if nothing takes any time.
  [[nodiscard]] double utilisation() const;
};

/// Runs a farm of `items` items in virtual time. `attempt(worker, task)` says how long an attempt
/// takes and whether it succeeds. Giving an item to a worker takes no time.
/// @throws contract_error as FarmDecider does, if `items` is negative, if `attempt` is empty, or if
///         a time is negative or the times do not add up to a finite one.
[[nodiscard]] FarmForecast forecast_farm(
    const FarmOptions& options, std::int64_t items,
    const std::function<FarmForecast::Attempt(Worker, const FarmTask&)>& attempt);

}  // namespace heddle::inline v0::pattern

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/farm_forecast.ipp>
#endif
