// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// MemoryRows: the rows under a picture of a timeline that show the memory of every rank: all
/// memory, the live activations in front of it, and a line for the weights of all versions.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/trace/internal/number.hpp>
#include <heddle/trace/internal/svg_writer.hpp>

namespace heddle::inline v0::trace::impl {

/// The memory rows of a timeline. All rows have one scale, on which the highest peak fills its row.
/// If the schedule has no sizes, rows show only the number of live activations.
class MemoryRows {
 public:
  static constexpr const char* all_fill = "#aebccd";
  static constexpr const char* activations_fill = "#6b8fc4";
  static constexpr const char* weights_line = "#8a3ffc";

  explicit MemoryRows(const Timeline& timeline) : m_ranks(schedule::memory_use(timeline)) {
    for (const MemoryUse& use : m_ranks) m_most = std::max(m_most, schedule::peak(use.all).bytes);
    m_sized = m_most != 0;
    if (m_sized) return;
    for (const MemoryUse& use : m_ranks)
      m_most = std::max(m_most, schedule::peak(use.activations).parts);
  }

  /// Returns the number of rows.
  [[nodiscard]] std::size_t ranks() const noexcept { return m_ranks.size(); }
  /// Returns true if the curves are in bytes.
  [[nodiscard]] bool sized() const noexcept { return m_sized; }

  /// Returns the label of the row of a rank, which gives its peaks.
  [[nodiscard]] std::string label(std::size_t rank) const {
    const MemoryUse& use = m_ranks[rank];
    const std::string live = text(schedule::peak(use.activations).parts, " live");
    return m_sized ? bytes_text(schedule::peak(use.all).bytes) + ", " + live : live;
  }

  /// Draws the row of `rank` into `box`. `x(time)` returns the position of a time.
  template <class X>
  void draw(SvgWriter& svg, std::size_t rank, const Box& box, X&& x) const {
    const MemoryUse& use = m_ranks[rank];
    const auto filled = [](const char* colour) { return text("fill=\"", colour, "\""); };
    if (m_sized) curve(svg, use.all, filled(all_fill), box, x);
    curve(svg, use.activations, filled(activations_fill), box, x);
    if (m_sized)
      curve(svg, use.weights,
            text("fill=\"none\" stroke=\"", weights_line, "\" stroke-width=\"1.5\""), box, x);
  }

 private:
  template <class X>
  void curve(SvgWriter& svg, const MemoryCurve<Seconds>& steps, const std::string& style,
             const Box& box, X&& x) const {
    if (steps.empty()) return;
    std::string path;
    const auto to = [&path](char command, double number) {
      append_fixed(path += command, number, 2);
    };
    const double base = box.y + box.height;
    to('M', x(steps.front().at));
    to(',', base);
    for (const auto& [at, holds] : steps) {
      const auto amount = static_cast<double>(m_sized ? holds.bytes : holds.parts);
      to('H', x(at));
      to('V', base - box.height * amount / static_cast<double>(m_most));
    }
    svg.path(path, style);
  }

  std::vector<MemoryUse> m_ranks;
  std::uint64_t m_most = 0;
  bool m_sized = false;
};

}  // namespace heddle::inline v0::trace::impl
