// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of clock.hpp.

#include <chrono>
#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/execute/clock.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Clock::Ticks impl::steady_ticks() noexcept {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

HEDDLE_INLINE Clock::Clock() noexcept : m_begin(moment()) {}

HEDDLE_INLINE void Clock::settle() noexcept {
  const Moment end = moment();
  if (end.ticks > m_begin.ticks && end.seconds > m_begin.seconds)
    m_rate = (end.seconds - m_begin.seconds) / static_cast<double>(end.ticks - m_begin.ticks);
}

// Returns the closest of several readings, because a thread may lose its core for milliseconds in
// one of them.
HEDDLE_INLINE Clock::Moment Clock::moment() noexcept {
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

}  // namespace heddle::inline v0
