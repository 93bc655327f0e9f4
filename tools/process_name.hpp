// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ProcessName: which process a report is of. For libraries that are loaded into programs.

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <fcntl.h>
#include <span>
#include <string_view>
#include <unistd.h>

namespace heddle_tools {

/// Names this process: "process 4711, rank 2: ./program --steps 3". The rank is the one that a
/// launcher of MPI programs says, if there is one. A long command line ends with "...". Allocates
/// no memory.
class ProcessName {
 public:
  ProcessName() {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), ::getpid()).ptr;
    append("process ");
    append({digits.data(), end});
    for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
      if (const char* const rank = std::getenv(name); rank != nullptr) {
        append(", rank ");
        append(rank);
        break;
      }
    append(": ");
    append_command();
  }

  [[nodiscard]] std::string_view text() const noexcept { return {m_text.data(), m_size}; }

 private:
  static constexpr std::string_view cut = "...";

  void append(std::string_view text) noexcept {
    const std::size_t room = m_text.size() - m_size;
    std::ranges::copy(text.substr(0, room), m_text.begin() + m_size);
    m_size += std::min(room, text.size());
  }

  void append_command() noexcept {
    const int file = ::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file < 0) return append(::program_invocation_name);
    const std::span room = std::span(m_text).subspan(m_size);
    const ssize_t got = ::read(file, room.data(), room.size());
    ::close(file);
    if (got <= 0) return append(::program_invocation_name);
    // Every argument ends with a zero. One may have several lines; a report has one.
    const std::span command = room.first(static_cast<std::size_t>(got));
    for (char& letter : command)
      if (static_cast<unsigned char>(letter) < ' ') letter = ' ';
    m_size += command.size();
    if (command.size() == room.size())
      std::ranges::copy(cut, m_text.end() - cut.size());
    else
      --m_size;
  }

  std::array<char, 512> m_text;
  std::size_t m_size = 0;
};

}  // namespace heddle_tools
