// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A picture of live memory over time.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/memory/trace/trace.hpp>
#include <heddle/trace/internal/svg_writer.hpp>

namespace memory_tool {

namespace impl {

/// "3.2 MB".
[[nodiscard]] inline std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  std::ostringstream out;
  out << std::setprecision(3) << bytes << ' ' << units[unit];
  return std::move(out).str();
}

}  // namespace impl

/// An SVG picture: bytes that are out over time, the five labels with the most of them at the peak
/// in colours of their own, one above the other.
[[nodiscard]] inline std::string picture(const heddle::memory::Trace& trace,
                                         const std::string& title) {
  constexpr double width = 900, height = 360, left = 80, right = 860, top = 60, bottom = 290;
  constexpr std::size_t columns = 800, shown = 5;
  const char* const colours[] = {"#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#9498a0"};
  const auto& events = trace.events();
  const double end = events.empty() ? 0 : events.back().time;
  const auto column_of = [&](double time) {
    return end > 0 ? std::min(columns - 1, static_cast<std::size_t>(time / end * columns)) : 0;
  };
  // Of each label, what is out in each column: the most of the column, so that no peak is lost.
  const std::size_t labels = trace.labels().size();
  std::vector<std::vector<std::uint64_t>> most(labels, std::vector<std::uint64_t>(columns));
  std::vector<std::uint64_t> now(labels), bytes(trace.blocks()), at_peak(labels);
  std::vector<std::uint32_t> label(trace.blocks());
  std::uint64_t all = 0, peak = 0;
  std::vector<std::uint64_t> total(columns);
  std::size_t column = 0;
  for (const heddle::memory::Trace::Event& event : events) {
    for (const std::size_t to = column_of(event.time); column < to;) {
      ++column;
      total[column] = all;
      for (std::size_t l = 0; l < labels; ++l) most[l][column] = now[l];
    }
    if (event.taken) {
      bytes[event.block] = event.bytes;
      label[event.block] = event.label;
      all += event.bytes;
      now[event.label] += event.bytes;
    } else {
      all -= bytes[event.block];
      now[label[event.block]] -= bytes[event.block];
    }
    if (all > total[column]) {
      total[column] = all;
      for (std::size_t l = 0; l < labels; ++l) most[l][column] = now[l];
    }
    if (all > peak) {
      peak = all;
      at_peak = now;
    }
  }
  std::vector<std::size_t> order(labels);
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return at_peak[a] > at_peak[b]; });

  heddle::trace::impl::SvgWriter svg;
  svg.open("svg",
           heddle::text("xmlns=\"http://www.w3.org/2000/svg\" width=\"", width, "\" height=\"",
                        height, "\" viewBox=\"0 0 ", width, " ", height,
                        "\" role=\"img\" font-family=\"ui-sans-serif, system-ui, sans-serif\""));
  svg.rect({0.5, 0.5, width - 1, height - 1}, "rx=\"8\" fill=\"#ffffff\" stroke=\"#d0d7de\"");
  svg.text(20, 31, title, "font-size=\"17\" font-weight=\"600\" fill=\"#1f2328\"");
  svg.text(right, 31,
           heddle::text("peak ", impl::bytes_text(static_cast<double>(peak)), ", ", trace.blocks(),
                        " blocks"),
           "font-size=\"13\" fill=\"#59636e\" text-anchor=\"end\"");
  const double scale = peak > 0 ? (bottom - top) / static_cast<double>(peak) : 0;
  const auto x = [&](std::size_t c) {
    return left + (right - left) * static_cast<double>(c) / columns;
  };
  // From above: each layer is drawn over the sum of those below it.
  std::vector<std::uint64_t> height_of = total;
  for (std::size_t layer = 0; layer < std::min(shown + 1, labels); ++layer) {
    const bool rest = layer == shown;
    std::ostringstream path;
    path << std::fixed << std::setprecision(2) << 'M' << left << ' ' << bottom;
    for (std::size_t c = 0; c < columns; ++c) {
      const double y = bottom - scale * static_cast<double>(height_of[c]);
      path << 'L' << x(c) << ' ' << y << 'L' << x(c + 1) << ' ' << y;
    }
    path << 'L' << right << ' ' << bottom << 'Z';
    svg.path(path.str(), heddle::text("fill=\"", colours[layer], "\""));
    if (rest) break;
    for (std::size_t c = 0; c < columns; ++c) height_of[c] -= most[order[layer]][c];
  }
  for (int tick = 0; tick <= 4; ++tick) {
    const double value = static_cast<double>(peak) * tick / 4;
    const double y = bottom - scale * value;
    svg.line(left, y, right, y, "stroke=\"#1f2328\" stroke-opacity=\"0.15\"");
    svg.text(left - 8, y + 4, impl::bytes_text(value),
             "font-size=\"12\" fill=\"#59636e\" text-anchor=\"end\"");
    svg.text(left + (right - left) * tick / 4, bottom + 18,
             heddle::text(std::round(end * tick / 4 * 1000) / 1000, " s"),
             "font-size=\"12\" fill=\"#59636e\" text-anchor=\"middle\"");
  }
  double at = left;
  for (std::size_t layer = 0; layer < std::min(shown + 1, labels); ++layer) {
    std::string name = layer == shown ? "others" : trace.labels()[order[layer]];
    if (name.empty()) name = "no label";
    if (name.size() > 20) name = name.substr(0, 17) + "...";
    svg.rect({at, height - 34, 12, 12}, heddle::text("fill=\"", colours[layer], "\""));
    svg.text(at + 17, height - 24, name, "font-size=\"12\" fill=\"#1f2328\"");
    at += 34 + 7.2 * static_cast<double>(std::min<std::size_t>(name.size(), 20));
  }
  svg.close("svg");
  return std::move(svg).take();
}

}  // namespace memory_tool
