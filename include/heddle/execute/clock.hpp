// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Clock: cheap time stamps while a program runs, seconds afterwards.

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// A stamp of the cheapest steady counter: the time-stamp counter on x86-64 (about 8 ns), else
/// std::chrono::steady_clock.
using Ticks = std::uint64_t;

/// Seconds of std::chrono::steady_clock, whose zero is arbitrary but common to a host.
[[nodiscard]] inline Seconds steady_seconds() noexcept {
  return std::chrono::duration<Seconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Converts stamps into steady seconds. The rate is measured between the clock's construction and
/// `settle`, so let it live at least some milliseconds.
class Clock {
 public:
  /// A stamp of this moment.
  [[nodiscard]] static Ticks now() noexcept {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return static_cast<Ticks>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
  }

  Clock() noexcept : m_begin(moment()) {}

  /// Measures the rate anew, from all the time since construction.
  void settle() noexcept {
    const Moment end = moment();
    if (end.ticks > m_begin.ticks && end.seconds > m_begin.seconds)
      m_rate = (end.seconds - m_begin.seconds) / static_cast<double>(end.ticks - m_begin.ticks);
  }

  /// Steady seconds at which `ticks` was taken. `settle` must have been called.
  [[nodiscard]] Seconds seconds(Ticks ticks) const noexcept {
    return m_begin.seconds +
           m_rate * static_cast<double>(static_cast<std::int64_t>(ticks - m_begin.ticks));
  }

 private:
  /// One moment on both clocks.
  struct Moment {
    Ticks ticks = 0;
    Seconds seconds = 0;
  };

  /// The closest of several readings: a thread may lose its core for milliseconds in one of them.
  static Moment moment() noexcept {
    Moment closest;
    Ticks least = ~Ticks{0};
    for (int reading = 0; reading < 8; ++reading) {
      const Ticks before = now();
      const Seconds seconds = steady_seconds();
      const Ticks width = now() - before;
      if (width >= least) continue;
      least = width;
      closest = {before + width / 2, seconds};
    }
    return closest;
  }

  Moment m_begin;
  double m_rate = 0;
};

}  // namespace heddle::inline v0
