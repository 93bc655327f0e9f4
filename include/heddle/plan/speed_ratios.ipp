// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of speed_ratios.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/speed_ratios.hpp>

namespace heddle::inline v0::plan {

HEDDLE_INLINE SpeedRatios::SpeedRatios(int workers, std::int64_t tile) : m_tile(tile) {
  expects(workers >= 1 && workers <= heddle::impl::most_threads && tile >= 1, [&] {
    return ErrorInfo{"heddle::plan::SpeedRatios",
                     "at least one worker and one item per tile are needed",
                     text("workers = ", workers, ", tile = ", tile),
                     text("use 1 to ", heddle::impl::most_threads, " workers")};
  });
  m_ratios.assign(static_cast<std::size_t>(workers), 1.0 / workers);
}

HEDDLE_INLINE std::vector<ItemRange> SpeedRatios::split(std::int64_t items) const {
  expects(items >= 0, [&] {
    return ErrorInfo{"heddle::plan::SpeedRatios::split", "the number of items must be at least 0",
                     text("items = ", items)};
  });
  expect_workers("heddle::plan::SpeedRatios::split");
  const std::vector<std::int64_t> tiles = apportion(items / m_tile + (items % m_tile != 0));
  std::vector<ItemRange> ranges;
  std::int64_t first = 0;
  for (const std::int64_t count : tiles) {
    // Compared before it is multiplied, so that ranges up to the largest integer do not overflow.
    const bool ends = count > (items - first) / m_tile;
    const std::int64_t last = ends ? items : first + count * m_tile;
    ranges.push_back({first, last});
    first = last;
  }
  return ranges;
}

HEDDLE_INLINE void SpeedRatios::observe(std::span<const ItemRange> ranges,
                                        std::span<const Seconds> times) {
  expect_workers("heddle::plan::SpeedRatios::observe");
  check(ranges, times);
  std::vector<double> speeds(m_ratios.size());  // 0 where not measured
  for (std::size_t w = 0; w < speeds.size(); ++w)
    if (ranges[w].size() > 0) speeds[w] = static_cast<double>(ranges[w].size()) / times[w];
  // A worker a thousand million times slower than the fastest counts as just that slow, so that
  // ratios stay numbers whatever a clock says.
  const double least = 1e-9 * *std::max_element(speeds.begin(), speeds.end());
  std::size_t slowest = speeds.size();
  double before = 0;
  for (std::size_t w = 0; w < speeds.size(); ++w) {
    if (speeds[w] == 0) continue;
    speeds[w] = std::max(speeds[w], least);
    before += m_ratios[w];
    if (slowest == speeds.size() || speeds[w] < speeds[slowest]) slowest = w;
  }
  if (slowest == speeds.size()) return;

  // What is smoothed are the ratios to the slowest worker, as in the original for two kinds of
  // core; then those who were measured have the sum that they had before.
  const double old_unit = m_ratios[slowest];
  const double new_unit = speeds[slowest];
  double after = 0;
  std::vector<double> smoothed(speeds.size());
  for (std::size_t w = 0; w < speeds.size(); ++w)
    if (speeds[w] != 0)
      after += smoothed[w] =
          weight * (speeds[w] / new_unit) + (1 - weight) * (m_ratios[w] / old_unit);
  for (std::size_t w = 0; w < speeds.size(); ++w)
    if (speeds[w] != 0) m_ratios[w] = smoothed[w] * (before / after);
}

HEDDLE_INLINE void SpeedRatios::expect_workers(const char* where) const {
  expects(!m_ratios.empty(), [&] {
    return ErrorInfo{where,
                     "the object has no workers, because it was moved from",
                     {},
                     "use the object that it was moved to, or assign another one"};
  });
}

HEDDLE_INLINE std::vector<std::int64_t> SpeedRatios::apportion(std::int64_t tiles) const {
  const auto workers = static_cast<std::int64_t>(m_ratios.size());
  const std::int64_t least = tiles >= workers ? 1 : 0;
  const auto divided = static_cast<double>(tiles - least * workers);
  std::vector<std::int64_t> counts(m_ratios.size(), least);
  std::int64_t left = tiles - least * workers;
  for (std::size_t w = 0; w < counts.size(); ++w) {
    const double quota = std::floor(m_ratios[w] * divided) - static_cast<double>(least);
    if (quota <= 0) continue;
    // Beyond 2^53 tiles a quota may be rounded up to more than there is.
    const std::int64_t more =
        quota < static_cast<double>(left) ? static_cast<std::int64_t>(quota) : left;
    counts[w] += more;
    left -= more;
  }
  for (; left > 0; --left) {
    const auto end = [&](std::size_t w) {
      return static_cast<double>(counts[w] + 1) / m_ratios[w];
    };
    std::size_t next = 0;
    for (std::size_t w = 1; w < counts.size(); ++w)
      if (end(w) < end(next)) next = w;
    ++counts[next];
  }
  return counts;
}

HEDDLE_INLINE void SpeedRatios::check(std::span<const ItemRange> ranges,
                                      std::span<const Seconds> times) const {
  const std::size_t workers = m_ratios.size();
  expects(ranges.size() == workers && times.size() == workers, [&] {
    return ErrorInfo{
        "heddle::plan::SpeedRatios::observe", "each worker needs one range and one time",
        text(ranges.size(), " ranges and ", times.size(), " times for ", workers, " workers")};
  });
  for (std::size_t w = 0; w < workers; ++w) {
    const std::int64_t items = ranges[w].size();
    const double speed = static_cast<double>(items) / times[w];
    expects(items == 0 || (items > 0 && std::isfinite(speed) && speed > 0), [&] {
      return ErrorInfo{
          "heddle::plan::SpeedRatios::observe",
          "times must be positive and finite, and ranges must not end before they begin",
          text("worker ", w, " took ", times[w], " s for ", items, " items"),
          "make rounds longer if the clock is too coarse"};
    });
  }
}

}  // namespace heddle::inline v0::plan
