// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SleepNoise: how much other programs disturb this one, for tests that judge times.

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>

namespace heddle::test {

/// The noise of the machine: how many sleeps of four threads that do nothing else end too late.
/// Nothing of the tested code touches these sleeps, so they tell a disturbed measurement from a
/// slow one. A single thread is often woken in time while those that work are not.
class SleepNoise {
 public:
  /// The sleeps that ended.
  struct Sleeps {
    int all = 0, late = 0;

    /// Returns whether the machine was quiet: at most 2 % of the sleeps were late.
    [[nodiscard]] bool quiet() const { return late <= 0.02 * all; }
  };

  /// A sleep is late if it ends `late` or more after it should.
  explicit SleepNoise(Seconds late) : m_late(late) {
    for (std::thread& each : m_threads) each = std::thread([this] { measure(); });
  }
  SleepNoise(const SleepNoise&) = delete;
  SleepNoise& operator=(const SleepNoise&) = delete;
  ~SleepNoise() {
    if (!m_done) (void)end();
  }

  /// Ends the threads.
  Sleeps end() {
    m_done = true;
    for (std::thread& each : m_threads) each.join();
    return {m_all, m_late_ones};
  }

 private:
  static constexpr Seconds usual = 8e-3;

  void measure() {
    while (!m_done) {
      const Seconds start = steady_seconds();
      std::this_thread::sleep_for(std::chrono::duration<double>(usual));
      ++m_all;
      if (steady_seconds() - start >= usual + m_late) ++m_late_ones;
    }
  }

  Seconds m_late;
  std::atomic<bool> m_done = false;
  std::atomic<int> m_all = 0, m_late_ones = 0;
  std::array<std::thread, 4> m_threads;
};

}  // namespace heddle::test
