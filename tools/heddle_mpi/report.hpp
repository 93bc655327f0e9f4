// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Counters of what the interposer did, and the lines of its report.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle_mpi {

/// The calls that the interposer may answer itself.
enum class Call : std::uint8_t { pack, unpack, send, recv, isend, irecv };
inline constexpr std::array call_names = {"MPI_Pack", "MPI_Unpack", "MPI_Send",
                                          "MPI_Recv", "MPI_Isend",  "MPI_Irecv"};

/// Calls with strided datatypes: those answered here, and those left to the library. It counts
/// where HEDDLE_MPI_REPORT wants to know.
class Counters {
 public:
  void ours(Call call, heddle::Bytes bytes) noexcept {
    if (!m_wanted) return;
    Line& line = m_lines[static_cast<std::size_t>(call)];
    line.ours.fetch_add(1, std::memory_order_relaxed);
    line.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  void theirs(Call call) noexcept {
    if (!m_wanted) return;
    m_lines[static_cast<std::size_t>(call)].theirs.fetch_add(1, std::memory_order_relaxed);
  }

  /// `first`, then "MPI_Send 3 packed (1536 B) and 2 left to the library", of every call in use.
  [[nodiscard]] std::string lines(std::string_view first) const {
    std::string all;
    for (std::size_t c = 0; c < m_lines.size(); ++c) {
      const Line& line = m_lines[c];
      if (line.ours + line.theirs == 0) continue;
      all += heddle::text(first, call_names[c], ' ', line.ours, " packed (", line.bytes, " B) and ",
                          line.theirs, " left to the library\n");
    }
    return all;
  }

 private:
  struct Line {
    std::atomic<std::uint64_t> ours = 0;
    std::atomic<std::uint64_t> bytes = 0;
    std::atomic<std::uint64_t> theirs = 0;
  };
  const bool m_wanted = std::getenv("HEDDLE_MPI_REPORT") != nullptr;
  std::array<Line, call_names.size()> m_lines;
};

}  // namespace heddle_mpi
