// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ProgressLine: how far the work of a tool is, in one line of a terminal.

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

namespace tool {

/// Draws what is being done, and for how many seconds, in one line of the standard error. It draws
/// nothing in the first second, and nothing if the standard error is no terminal. The line is
/// removed when the object is destroyed.
class ProgressLine {
 public:
  /// `words` is what is being done.
  explicit ProgressLine(std::string words = {}) : m_words(std::move(words)) {
    if (::isatty(STDERR_FILENO) == 1) m_thread = std::thread([this] { draw_until_ended(); });
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (!m_thread.joinable()) return;
    {
      const std::lock_guard lock(m_mutex);
      m_ended = true;
    }
    m_changed.notify_one();
    m_thread.join();
    if (m_drawn) std::cerr << erase << std::flush;
  }

  /// Says what is being done from now on.
  void say(std::string words) {
    const std::lock_guard lock(m_mutex);
    m_words = std::move(words);
  }
  /// Calls `print()` while the line is away, so that it may print to the same terminal.
  template <class Print>
  void print_above(Print&& print) {
    const std::lock_guard lock(m_mutex);
    if (m_drawn) std::cerr << erase << std::flush;
    print();
  }

 private:
  void draw_until_ended() {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    std::unique_lock lock(m_mutex);
    while (!m_changed.wait_for(lock, std::chrono::milliseconds(500), [&] { return m_ended; })) {
      const auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
      if (seconds < 1) continue;
      m_drawn = true;
      std::cerr << erase << m_words << ", " << seconds << " s" << std::flush;
    }
  }

  static constexpr const char* erase = "\r\033[K";

  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::string m_words;
  bool m_ended = false, m_drawn = false;
  std::thread m_thread;
};

}  // namespace tool
