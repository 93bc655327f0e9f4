// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The progress line of a long run: on rank 0, and only where somebody watches.

#include <filesystem>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>

#include <heddle/core/text.hpp>
#include <heddle/execute/clock.hpp>

namespace examples {

/// True where standard output ends at a terminal. Open MPI hands its ranks a pseudo-terminal of no
/// size whatever its own output is; there the launcher's output decides, where the system shows it.
[[nodiscard]] inline bool is_watched() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return true;
  std::error_code unknown;
  const auto launcher = std::filesystem::read_symlink(
      heddle::text("/proc/", getppid(), "/fd/", STDOUT_FILENO), unknown);
  return !unknown &&
         (launcher.string().starts_with("/dev/pts/") || launcher.string().starts_with("/dev/tty"));
}

/// Loss, tokens per second and the time left, on one line that is written over.
class Progress {
 public:
  Progress(bool speaks, int steps, double tokens_per_step)
      : m_speaks(speaks && is_watched()),
        m_steps(steps),
        m_tokens(tokens_per_step),
        m_start(heddle::steady_seconds()) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (m_speaks) std::cout << '\n';
  }

  /// Call after step number `step`.
  void operator()(int step, double loss) {
    if (!m_speaks) return;
    const double seconds = heddle::steady_seconds() - m_start;
    std::ostringstream line;
    line << "\rstep " << step + 1 << '/' << m_steps << "  loss " << std::fixed
         << std::setprecision(4) << loss << std::setprecision(0) << "  "
         << m_tokens * (step + 1) / seconds << " tokens/s  "
         << seconds / (step + 1) * (m_steps - step - 1) << " s left   ";
    std::cout << line.str() << std::flush;
  }

 private:
  bool m_speaks;
  int m_steps;
  double m_tokens;
  double m_start;
};

}  // namespace examples
