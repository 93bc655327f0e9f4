// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Farms whose items wait for 5 to 15 ms, against the same farms in virtual time.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include <heddle/core/random.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/pattern/farm_decider.hpp>
#include <heddle/pattern/farm_forecast.hpp>
#include <heddle/pattern/farm_outcome.hpp>

namespace heddle::test {

/// A farm of waits. `source`, `work` and `sink` are those of the farm.
struct FarmWaits {
  std::int64_t items;
  std::int64_t given = 0;
  Seconds start = 0;
  Seconds end = 0;
  std::vector<Seconds> times = {};  ///< by item, measured

  std::optional<std::int64_t> source() {
    if (given == 0) start = steady_seconds();
    return given < items ? std::optional<std::int64_t>(given++) : std::nullopt;
  }
  /// Waits, and returns how long it took.
  static Seconds work(std::int64_t item) {
    const Seconds begin = steady_seconds();
    const Seconds wait =
        0.005 + 0.01 * Random(3, "waits").uniform(static_cast<std::uint64_t>(item));
    std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    return steady_seconds() - begin;
  }
  void sink(const heddle::pattern::FarmOutcome<Seconds>& outcome) {
    times.push_back(*outcome.value);
    end = steady_seconds();
  }

  /// Returns the time of the farm by that of the decider, replayed with the measured times.
  [[nodiscard]] double over_forecast(int workers) const {
    const heddle::pattern::FarmForecast forecast = heddle::pattern::forecast_farm(
        {.workers = workers}, items, [&](Worker, const heddle::pattern::FarmTask& task) {
          return heddle::pattern::FarmForecast::Attempt{times[static_cast<std::size_t>(task.item)],
                                                        true};
        });
    return (end - start) / forecast.makespan;
  }
};

}  // namespace heddle::test
