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
  [[nodiscard]] static Ticks now() noexcept {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return static_cast<Ticks>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
  }

  Clock() noexcept : m_ticks(now()), m_seconds(steady_seconds()) {}

  /// Measures the rate anew, from all the time since construction.
  void settle() noexcept {
    const Ticks ticks = now();
    const Seconds seconds = steady_seconds();
    if (ticks > m_ticks && seconds > m_seconds)
      m_rate = (seconds - m_seconds) / static_cast<double>(ticks - m_ticks);
  }

  /// Steady seconds at which `ticks` was taken. `settle` must have been called.
  [[nodiscard]] Seconds seconds(Ticks ticks) const noexcept {
    return m_seconds +
           m_rate * static_cast<double>(static_cast<std::int64_t>(ticks - m_ticks));
  }

 private:
  Ticks m_ticks;
  Seconds m_seconds;
  double m_rate = 0;
};

}  // namespace heddle::inline v0
