// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The memory report: the peak memory of every rank, as simulated, as measured and as allocated.

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::trace {

/// The result of memory_report().
struct MemoryReport {
  std::string name;                                   ///< the name of the schedule
  std::optional<std::vector<MemoryUse>> simulated{};  ///< the simulated memory of every rank
  std::optional<std::vector<MemoryUse>> measured{};   ///< the measured memory of every rank
  std::vector<Bytes> allocated{};                     ///< Runner::allocated() of every rank
};

/// Compares simulated and measured peaks, and the bytes that the Runner of each rank has allocated,
/// if they are given. These count all slots, used or not, but not the memory of the model itself,
/// such as its weights.
[[nodiscard]] MemoryReport memory_report(const Timeline& simulated, const Timeline& measured,
                                         std::vector<Bytes> allocated = {});

/// Returns the report of a simulated timeline alone.
[[nodiscard]] MemoryReport memory_report(const Timeline& simulated);

/// Returns the report as a table with a block of lines per rank: number and bytes of live
/// activations and of weights, and bytes of all buffers.
[[nodiscard]] std::string to_string(const MemoryReport& report);

/// Prints to_string(report).
std::ostream& operator<<(std::ostream& out, const MemoryReport& report);

}  // namespace heddle::inline v0::trace

#if HEDDLE_DEFINES_TRACE
#include <heddle/trace/memory_report.ipp>
#endif
