// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Waiting: a wait that spins briefly, then yields, then naps.

#include <cstdint>

#include <heddle/core/linkage.hpp>
#include <heddle/core/relax.hpp>

namespace heddle::inline v0 {

/// How far a waiting rank may go in giving up its core. `spin` has the lowest latency and needs a
/// core of its own. `yield` suits as many ranks as cores, or more. `nap` leaves the core to others
/// for tens of microseconds at a time.
enum class Idle : std::uint8_t { spin, yield, nap };

/// A single wait. Call the object once per failed poll.
class Waiting {
 public:
  /// Begins to spin. A long wait goes as far as `deepest`.
  explicit Waiting(Idle deepest) noexcept : m_deepest(deepest) {}

  /// Pauses, yields or naps after a failed poll.
  void operator()() {
    ++m_polls;
    if (m_polls < 500 || m_deepest == Idle::spin) {
      impl::relax();
    } else {
      give_up_core();
    }
  }

  /// Returns the number of polls so far.
  [[nodiscard]] std::uint64_t polls() const noexcept { return m_polls; }

 private:
  /// Yields or naps.
  void give_up_core();

  Idle m_deepest;
  std::uint64_t m_polls = 0;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/idle.ipp>
#endif
