// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SpeedRatios: learns the relative speeds of workers from measured times and divides a range of
/// items by them. It serves cores of several kinds, and a host beside its device.
/// pattern/balance.hpp runs it on threads.

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::plan {

/// The items [first, last) of one worker. The range is empty if both are equal.
struct ItemRange {
  std::int64_t first = 0;  ///< the first item
  std::int64_t last = 0;   ///< one past the last

  /// Returns the number of items.
  [[nodiscard]] constexpr std::int64_t size() const noexcept { return last - first; }
  friend constexpr bool operator==(const ItemRange&, const ItemRange&) = default;
};

/// The relative speeds of workers for one kind of work. Use one object per kernel, because the
/// speeds depend on the kernel: wide vectors speed up arithmetic but not memory traffic. Divide the
/// items with `split`, run, and pass the times to `observe`.
///
/// The rule is that of Neural Speed's dynamic method for hybrid CPUs. Workers get work in
/// proportion to their ratios, and after each round the measured ratios are smoothed by `weight`.
/// There is no work stealing.
class SpeedRatios {
 public:
  /// The weight of a measured ratio; the ratio so far has 1 - weight. At constant speeds the error
  /// of a ratio shrinks by the factor 1 - weight in each round. If the ratios start at 1:1 and the
  /// true ratio is 3:1, the efficiencies are 0.50, 0.85, 0.955 and 0.987.
  static constexpr double weight = 0.7;

  /// Constructs equal ratios for `workers` workers. Their ranges begin at multiples of `tile`
  /// items.
  /// @throws contract_error if either number is below 1, or if there are more than 2^22 workers.
  explicit SpeedRatios(int workers, std::int64_t tile = 1);

  /// Returns the share of each worker in the total speed. The shares add up to 1.
  [[nodiscard]] const std::vector<double>& values() const noexcept { return m_ratios; }

  /// Divides the items [0, items) into consecutive ranges, one for each worker in order. The ranges
  /// are whole tiles; the last tile may be shorter. The division minimises the predicted time, but
  /// every worker gets at least one tile if there are enough, because a worker that is not measured
  /// could never get faster. If there are fewer tiles than workers, slow workers get none.
  /// @throws contract_error if `items` is negative, or if the object was moved from.
  [[nodiscard]] std::vector<ItemRange> split(std::int64_t items) const;

  /// Learns from one round in which worker w took `times[w]` seconds for `ranges[w]`. If a worker
  /// had no items, its time is ignored and its ratio stays.
  /// @throws contract_error if there is not one range and one time for each worker, or if the time
  ///         of a worker with items is not positive and finite; then nothing is learned. It also
  ///         throws if the object was moved from.
  void observe(std::span<const ItemRange> ranges, std::span<const Seconds> times);

 private:
  /// Returns the tiles of each worker. Each gets its ratio rounded down; the others are given one
  /// by one to the worker that would end first (D'Hondt's method, which minimises the largest tiles
  /// / ratio).
  [[nodiscard]] std::vector<std::int64_t> apportion(std::int64_t tiles) const;

  void check(std::span<const ItemRange> ranges, std::span<const Seconds> times) const;
  void expect_workers(const char* where) const;

  std::vector<double> m_ratios;
  std::int64_t m_tile;
};

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/speed_ratios.ipp>
#endif
