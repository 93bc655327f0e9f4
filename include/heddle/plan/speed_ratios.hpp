// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SpeedRatios: how fast workers are relative to each other, learned from what they took, and the
/// division of a range that follows from it. For cores of several kinds and for a host beside its
/// device; pattern/balance.hpp runs it on threads.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// The items [first, last) of one worker; empty where both are equal.
struct ItemRange {
  std::int64_t first = 0;  ///< the first item
  std::int64_t last = 0;   ///< one past the last

  /// Number of items.
  [[nodiscard]] constexpr std::int64_t size() const noexcept { return last - first; }
  friend constexpr bool operator==(const ItemRange&, const ItemRange&) = default;
};

/// The relative speeds of workers at one kind of work. Workers differ by kernel (cores with wide
/// vectors gain where there is arithmetic, not where there is memory traffic), so keep one of these
/// for each kernel. Divide with `split`, run, and tell what it took with `observe`.
///
/// The rule is that of Neural Speed's dynamic method for hybrid CPUs: work in proportion to the
/// ratios, and after each round the measured ratios, smoothed by `weight`. Nothing is stolen.
class SpeedRatios {
 public:
  /// What a measured ratio counts for beside the ratio so far. At constant speeds the error of a
  /// ratio shrinks by 1 - weight each round: from 1:1 at a true 3:1 the efficiencies are 0.50,
  /// 0.85, 0.955 and 0.987.
  static constexpr double weight = 0.7;

  /// Equal ratios for `workers` workers, whose shares begin at multiples of `tile` items.
  /// @throws contract_error where either is below 1.
  explicit SpeedRatios(int workers, std::int64_t tile = 1) : m_tile(tile) {
    expects(workers >= 1 && tile >= 1, [&] {
      return Complaint{"heddle::SpeedRatios", "at least one worker and one item a tile are needed",
                       text("workers = ", workers, ", tile = ", tile)};
    });
    m_ratios.assign(static_cast<std::size_t>(workers), 1.0 / workers);
  }

  /// The share of each worker in the speed of all. They add up to 1.
  [[nodiscard]] const std::vector<double>& values() const noexcept { return m_ratios; }

  /// Divides the items [0, items): consecutive ranges, one for each worker in order. Of all
  /// divisions into whole tiles (the last may be shorter) it is one that ends first by the ratios,
  /// except that every worker gets a tile where there are enough, however slow it was: who is not
  /// measured could never come back. Where there are fewer tiles than workers, slow ones get none.
  /// @throws contract_error for a negative number of items.
  [[nodiscard]] std::vector<ItemRange> split(std::int64_t items) const {
    expects(items >= 0, [&] {
      return Complaint{"heddle::SpeedRatios::split", "a range has no negative number of items",
                       text("items = ", items)};
    });
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

  /// Learns from one round: worker w took `times[w]` seconds for `ranges[w]`. A worker without
  /// items was not measured: its time is not looked at, and its ratio stays.
  /// @throws contract_error where there is not one range and one time for each worker, or where a
  ///         worker with items took a time that is not positive and finite; nothing is learned
  ///         then.
  void observe(std::span<const ItemRange> ranges, std::span<const Seconds> times) {
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

 private:
  /// Tiles for each worker: what its ratio gives it for certain, then one at a time to the worker
  /// who would end first with it (D'Hondt's method, which minimises the largest tiles / ratio).
  [[nodiscard]] std::vector<std::int64_t> apportion(std::int64_t tiles) const {
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

  void check(std::span<const ItemRange> ranges, std::span<const Seconds> times) const {
    const std::size_t workers = m_ratios.size();
    expects(ranges.size() == workers && times.size() == workers, [&] {
      return Complaint{
          "heddle::SpeedRatios::observe", "each worker has one range and one time",
          text(ranges.size(), " ranges and ", times.size(), " times for ", workers, " workers")};
    });
    for (std::size_t w = 0; w < workers; ++w) {
      const std::int64_t items = ranges[w].size();
      const double speed = static_cast<double>(items) / times[w];
      expects(items == 0 || (items > 0 && std::isfinite(speed) && speed > 0), [&] {
        return Complaint{"heddle::SpeedRatios::observe",
                         "a time is positive and finite, a range does not end before it begins",
                         text("worker ", w, " took ", times[w], " s for ", items, " items"),
                         "a clock that is too coarse wants longer rounds"};
      });
    }
  }

  std::vector<double> m_ratios;
  std::int64_t m_tile;
};

}  // namespace heddle::inline v0
