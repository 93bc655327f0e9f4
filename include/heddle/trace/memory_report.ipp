// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of memory_report.hpp.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/check_spans.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/trace/impl/labels.hpp>
#include <heddle/trace/internal/number.hpp>
#include <heddle/trace/memory_report.hpp>

namespace heddle::inline v0::trace {

namespace impl {

// Returns "3: 1.5 MB", or "3" if there are no sizes.
[[nodiscard]] inline std::string holding_text(const Footprint& holding) {
  return text(holding.parts) + (holding.bytes == 0 ? "" : ": " + bytes_text(holding.bytes));
}

[[nodiscard]] inline std::vector<MemoryUse> checked_use(const Timeline& timeline) {
  heddle::impl::check_spans("heddle::trace::memory_report", timeline);
  return schedule::memory_use(timeline);
}

}  // namespace impl

HEDDLE_INLINE MemoryReport memory_report(const Timeline& simulated, const Timeline& measured,
                                         std::vector<Bytes> allocated) {
  const auto ranks = static_cast<std::size_t>(measured.schedule().ranks());
  expects(allocated.empty() || allocated.size() == ranks, [&] {
    return ErrorInfo{"heddle::trace::memory_report",
                     "`allocated` must be empty or have one number of bytes per rank",
                     text(allocated.size(), " numbers, ", ranks, " ranks")};
  });
  return {measured.schedule().name(), impl::checked_use(simulated), impl::checked_use(measured),
          std::move(allocated)};
}

HEDDLE_INLINE MemoryReport memory_report(const Timeline& simulated) {
  return {simulated.schedule().name(), impl::checked_use(simulated), {}, {}};
}

HEDDLE_INLINE std::string to_string(const MemoryReport& report) {
  const std::pair<const char*, const std::optional<std::vector<MemoryUse>>*> sides[] = {
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
      const MemoryUse& use = (**side)[rank];
      row(std::exchange(label, ""), name,
          {impl::holding_text(schedule::peak(use.activations)),
           impl::holding_text(schedule::peak(use.weights)),
           impl::bytes_text(schedule::peak(use.all).bytes)});
    }
    if (rank < report.allocated.size())
      row(std::exchange(label, ""), "allocated",
          {"", "", impl::bytes_text(report.allocated[rank])});
  }
  return out;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const MemoryReport& report) {
  return out << to_string(report);
}

}  // namespace heddle::inline v0::trace
