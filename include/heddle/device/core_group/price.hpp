// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The time that one core group of the real machine would need for the transfers of a launch.
/// Arithmetic and transfers between cores are free in this model, so the result is a lower bound of
/// the time.

#include <algorithm>
#include <cstdint>

#include <heddle/device/core_group/counters.hpp>

namespace heddle::inline v0::impl {

/// Values that others measured on one core group of a machine with the name sw39000, at 2.25 GHz,
/// with one request in flight per core (github.com/liuchang2289880191/sw_test, bench/).
struct CoreGroupPrices {
  static constexpr std::uint64_t get_nanoseconds = 196;  ///< latency of a get
  static constexpr std::uint64_t put_nanoseconds = 105;  ///< latency of a put
  static constexpr double get_rate = 47e9;           ///< bytes per second of all 64 cores together
  static constexpr double put_rate = 36.5e9;         ///< bytes per second of puts, likewise
  static constexpr double misaligned_get = 1 / 0.7;  ///< time relative to an aligned get
  /// The additional time for each 128 B segment that a misaligned put fills partly, in units of the
  /// time of one segment. A put of 128 B that is misaligned by 4 B fills two segments partly and
  /// takes 12.7 times as long as an aligned one.
  static constexpr double partial_segment = (12.7 - 1) / 2;
};

/// Returns max(the latencies of the slowest core, bytes / bandwidth), in seconds. `latency` is the
/// sum over the requests of the slowest core, in nanoseconds. A direct load or store counts as much
/// as a request; this is an assumption that has not been measured.
[[nodiscard]] inline double modelled_seconds(const CoreGroupCounters& counters,
                                             std::uint64_t latency) noexcept {
  using Price = CoreGroupPrices;
  const auto gets = static_cast<double>(counters.get_bytes);
  const auto off = static_cast<double>(counters.misaligned_get_bytes);
  const auto puts = static_cast<double>(counters.put_bytes);
  const auto partial = 128 * static_cast<double>(counters.misaligned_put_segments);
  const double transfers = (gets + (Price::misaligned_get - 1) * off) / Price::get_rate +
                           (puts + Price::partial_segment * partial) / Price::put_rate;
  return std::max(static_cast<double>(latency) * 1e-9, transfers);
}

}  // namespace heddle::inline v0::impl
