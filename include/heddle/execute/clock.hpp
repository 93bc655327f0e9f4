// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Clock: takes cheap time stamps while a program runs and converts them into seconds afterwards.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns the count of std::chrono::steady_clock: the stamps where no cheaper counter is known.
[[nodiscard]] std::uint64_t steady_ticks() noexcept;

}  // namespace impl

/// Converts time stamps into steady seconds. The rate is measured between the construction of the
/// clock and the call of `settle`, so at least some milliseconds should lie between them.
class Clock {
 public:
  /// A time stamp of the cheapest steady counter: the time-stamp counter on x86-64 (about 8 ns),
  /// else std::chrono::steady_clock.
  using Ticks = std::uint64_t;

  /// Returns the time stamp of this moment.
  [[nodiscard]] static Ticks now() noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return impl::steady_ticks();
#endif
  }

  /// Begins to measure the rate.
  Clock() noexcept;

  /// Measures the rate again, over all the time since the construction.
  void settle() noexcept;

  /// Returns the steady seconds at which the stamp `ticks` was taken. Call `settle` before.
  [[nodiscard]] Seconds seconds(Ticks ticks) const noexcept {
    return m_begin.seconds +
           m_rate * static_cast<double>(static_cast<std::int64_t>(ticks - m_begin.ticks));
  }

 private:
  /// The same moment on both clocks.
  struct Moment {
    Ticks ticks = 0;
    Seconds seconds = 0;
  };

  static Moment moment() noexcept;

  Moment m_begin;
  double m_rate = 0;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/clock.ipp>
#endif
