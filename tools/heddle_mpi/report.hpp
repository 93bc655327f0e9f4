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
#include <heddle/execute/clock.hpp>

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

  /// Does `work`, which packs or unpacks a message that, not packed, would take `gain` times as
  /// long.
  void timed(double gain, const auto& work) {
    if (!m_wanted) return work();
    const heddle::Seconds begin = heddle::steady_seconds();
    work();
    m_gained.fetch_add((gain - 1) * (heddle::steady_seconds() - begin), std::memory_order_relaxed);
  }

  /// The time that packing messages has gained by the table of gains. An estimate, and rather too
  /// low: it knows the time of packing and unpacking, and not how long the messages were under way.
  [[nodiscard]] heddle::Seconds gained() const { return m_gained; }

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
  std::atomic<heddle::Seconds> m_gained = 0;
};

}  // namespace heddle_mpi
