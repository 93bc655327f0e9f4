// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The memory report: the most that every rank holds, as simulated, as measured and as allocated.

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::trace {

/// The most that a rank holds at any time. The three need not be reached together.
struct MemoryPeaks {
  Holding activations;  ///< live activations
  Holding weights;      ///< a part for each stage and version
  Holding all;          ///< all buffers on the rank
};

/// The peaks of every rank of a simulated or measured timeline.
[[nodiscard]] std::vector<MemoryPeaks> memory_peaks(const Timeline& timeline);

/// What memory_report() found.
struct MemoryReport {
  std::string name;                                     ///< of the schedule
  std::optional<std::vector<MemoryPeaks>> simulated{};  ///< of every rank
  std::optional<std::vector<MemoryPeaks>> measured{};   ///< of every rank
  std::vector<Bytes> allocated{};                       ///< Runner::allocated() of every rank
};

/// Simulated beside measured, and the bytes that the Runner of each rank has allocated, where they
/// are known: for all slots, whether a value is in them or not, but not for what the model holds
/// itself, such as its weights.
[[nodiscard]] MemoryReport memory_report(const Timeline& simulated, const Timeline& measured,
                                         std::vector<Bytes> allocated = {});

/// A simulated timeline alone.
[[nodiscard]] MemoryReport memory_report(const Timeline& simulated);

/// The report as a table, a block of lines per rank: number and bytes of live activations and of
/// weights, and bytes of all buffers.
[[nodiscard]] std::string to_string(const MemoryReport& report);

/// As to_string.
std::ostream& operator<<(std::ostream& out, const MemoryReport& report);

}  // namespace heddle::inline v0::trace

#if HEDDLE_HEADER_ONLY
#include <heddle/trace/memory_report.ipp>
#endif
