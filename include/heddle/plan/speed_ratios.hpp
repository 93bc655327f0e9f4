// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SpeedRatios: how fast workers are relative to each other, learned from what they took, and the
/// division of a range that follows from it. For cores of several kinds and for a host beside its
/// device; pattern/balance.hpp runs it on threads.

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
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
  explicit SpeedRatios(int workers, std::int64_t tile = 1);

  /// The share of each worker in the speed of all. They add up to 1.
  [[nodiscard]] const std::vector<double>& values() const noexcept { return m_ratios; }

  /// Divides the items [0, items): consecutive ranges, one for each worker in order. Of all
  /// divisions into whole tiles (the last may be shorter) it is one that ends first by the ratios,
  /// except that every worker gets a tile where there are enough, however slow it was: who is not
  /// measured could never come back. Where there are fewer tiles than workers, slow ones get none.
  /// @throws contract_error for a negative number of items.
  [[nodiscard]] std::vector<ItemRange> split(std::int64_t items) const;

  /// Learns from one round: worker w took `times[w]` seconds for `ranges[w]`. A worker without
  /// items was not measured: its time is not looked at, and its ratio stays.
  /// @throws contract_error where there is not one range and one time for each worker, or where a
  ///         worker with items took a time that is not positive and finite; nothing is learned
  ///         then.
  void observe(std::span<const ItemRange> ranges, std::span<const Seconds> times);

 private:
  /// Tiles for each worker: what its ratio gives it for certain, then one at a time to the worker
  /// who would end first with it (D'Hondt's method, which minimises the largest tiles / ratio).
  [[nodiscard]] std::vector<std::int64_t> apportion(std::int64_t tiles) const;

  void check(std::span<const ItemRange> ranges, std::span<const Seconds> times) const;

  std::vector<double> m_ratios;
  std::int64_t m_tile;
};

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/speed_ratios.ipp>
#endif
