// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The rows under a picture of a timeline that show what every rank holds: all memory, and in front
/// of it the live activations.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/trace/impl/number.hpp>
#include <heddle/trace/impl/svg_writer.hpp>

namespace heddle::inline v0::trace::impl {

/// All rows have one scale: the peak of the rank that holds most fills its row. Without sizes there
/// are only live activations, in numbers.
class MemoryRows {
 public:
  static constexpr const char* all_fill = "#aebccd";
  static constexpr const char* activations_fill = "#6b8fc4";

  explicit MemoryRows(const Timeline& timeline) : m_ranks(memory_use(timeline)) {
    for (const MemoryUse& use : m_ranks) m_most = std::max(m_most, peak(use.all).bytes);
    m_sized = m_most != 0;
    if (m_sized) return;
    for (const MemoryUse& use : m_ranks) m_most = std::max(m_most, peak(use.activations).parts);
  }

  /// Whether the curves are in bytes.
  [[nodiscard]] bool sized() const noexcept { return m_sized; }

  /// What a rank holds at most, as its row says.
  [[nodiscard]] std::string label(std::size_t rank) const {
    const MemoryUse& use = m_ranks[rank];
    const std::string live = text(peak(use.activations).parts, " live");
    return m_sized ? bytes_text(peak(use.all).bytes) + ", " + live : live;
  }

  /// Draws the row of `rank` into `box`; `x(time)` is where a time is.
  template <class X>
  void draw(SvgWriter& svg, std::size_t rank, const Box& box, X&& x) const {
    const MemoryUse& use = m_ranks[rank];
    if (m_sized) area(svg, use.all, all_fill, box, x);
    area(svg, use.activations, activations_fill, box, x);
  }

 private:
  template <class X>
  void area(SvgWriter& svg, const MemoryCurve<Seconds>& curve, const char* fill, const Box& box,
            X&& x) const {
    if (curve.empty()) return;
    std::string path;
    const auto to = [&path](char command, double number) {
      append_fixed(path += command, number, 2);
    };
    const double base = box.y + box.height;
    to('M', x(curve.front().at));
    to(',', base);
    for (const auto& [at, holds] : curve) {
      const auto amount = static_cast<double>(m_sized ? holds.bytes : holds.parts);
      to('H', x(at));
      to('V', base - box.height * amount / static_cast<double>(m_most));
    }
    svg.path(path + "Z", text("fill=\"", fill, "\""));
  }

  std::vector<MemoryUse> m_ranks;
  std::uint64_t m_most = 0;
  bool m_sized = false;
};

}  // namespace heddle::inline v0::trace::impl
