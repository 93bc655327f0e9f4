// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Waiting: spin briefly, then yield, then nap.

#include <chrono>
#include <cstdint>
#include <thread>

#include <heddle/core/relax.hpp>

namespace heddle::inline v0 {

/// How far a waiting rank may go in giving up its core. `spin` has the least latency and wants a
/// core of its own; `yield` suits as many ranks as cores or more; `nap` leaves the core to others
/// for tens of microseconds at a time.
enum class Idle : std::uint8_t { spin, yield, nap };

/// One wait. Call the object once per failed poll.
class Waiting {
 public:
  /// Begins to spin; goes as far as `deepest` when it takes long.
  explicit Waiting(Idle deepest) noexcept : m_deepest(deepest) {}

  /// After a failed poll: pauses, yields or naps.
  void operator()() {
    ++m_polls;
    if (m_polls < 500 || m_deepest == Idle::spin) {
      relax();
    } else if (m_polls < 600 || m_deepest == Idle::yield) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  /// Polls so far.
  [[nodiscard]] std::uint64_t polls() const noexcept { return m_polls; }

 private:
  Idle m_deepest;
  std::uint64_t m_polls = 0;
};

}  // namespace heddle::inline v0
