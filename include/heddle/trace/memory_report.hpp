// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The memory report: the most that every rank holds, as simulated, as measured and as allocated.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/trace/grid.hpp>
#include <heddle/trace/impl/check.hpp>
#include <heddle/trace/impl/number.hpp>
#include <heddle/trace/report.hpp>

namespace heddle::inline v0::trace {

/// The most that a rank holds at any time. The three need not be reached together.
struct MemoryPeaks {
  Holding activations;  ///< live activations
  Holding weights;      ///< a part for each stage and version
  Holding all;          ///< all buffers on the rank
};

/// The peaks of every rank of a simulated or measured timeline.
[[nodiscard]] inline std::vector<MemoryPeaks> memory_peaks(const Timeline& timeline) {
  impl::check("heddle::trace::memory_peaks", timeline);
  std::vector<MemoryPeaks> result;
  for (const MemoryUse& use : memory_use(timeline))
    result.push_back({peak(use.activations), peak(use.weights), peak(use.all)});
  return result;
}

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
[[nodiscard]] inline MemoryReport memory_report(const Timeline& simulated, const Timeline& measured,
                                                std::vector<Bytes> allocated = {}) {
  const auto ranks = static_cast<std::size_t>(measured.schedule().ranks());
  expects(allocated.empty() || allocated.size() == ranks, [&] {
    return Complaint{"heddle::trace::memory_report", "every rank has allocated a number of bytes",
                     text(allocated.size(), " numbers, ", ranks, " ranks")};
  });
  return {measured.schedule().name(), memory_peaks(simulated), memory_peaks(measured),
          std::move(allocated)};
}

/// A simulated timeline alone.
[[nodiscard]] inline MemoryReport memory_report(const Timeline& simulated) {
  return {simulated.schedule().name(), memory_peaks(simulated), {}, {}};
}

namespace impl {

/// "3: 1.5 MB"; without sizes "3".
[[nodiscard]] inline std::string holding_text(const Holding& holding) {
  return text(holding.parts) + (holding.bytes == 0 ? "" : ": " + bytes_text(holding.bytes));
}

}  // namespace impl

/// The report as a table, a block of lines per rank: number and bytes of live activations and of
/// weights, and bytes of all buffers.
[[nodiscard]] inline std::string to_string(const MemoryReport& report) {
  const std::pair<const char*, const std::optional<std::vector<MemoryPeaks>>*> sides[] = {
      {"simulated", &report.simulated}, {"measured", &report.measured}};
  std::size_t ranks = report.allocated.size();
  for (const auto& [name, side] : sides)
    if (*side) ranks = std::max(ranks, (*side)->size());
  std::string out = "most memory" + (report.name.empty() ? "" : " of " + report.name) + ":\n";
  const std::size_t margin = impl::rank_label(0, static_cast<int>(ranks)).size() + 2;
  const auto row = [&](std::string label, const char* name, const std::vector<std::string>& cells) {
    label.resize(margin, ' ');
    label.append(name).resize(margin + 9, ' ');
    for (const std::string& cell : cells) impl::append_cell(label, cell, 16);
    out += label + "\n";
  };
  row("", "", {"activations", "weights", "all"});
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::string label = impl::rank_label(rank, static_cast<int>(ranks));
    for (const auto& [name, side] : sides) {
      if (!*side || rank >= (*side)->size()) continue;
      const MemoryPeaks& peaks = (**side)[rank];
      row(std::exchange(label, ""), name,
          {impl::holding_text(peaks.activations), impl::holding_text(peaks.weights),
           impl::bytes_text(peaks.all.bytes)});
    }
    if (rank < report.allocated.size())
      row(std::exchange(label, ""), "allocated",
          {"", "", impl::bytes_text(report.allocated[rank])});
  }
  return out;
}

/// As to_string.
inline std::ostream& operator<<(std::ostream& out, const MemoryReport& report) {
  return out << to_string(report);
}

}  // namespace heddle::inline v0::trace
