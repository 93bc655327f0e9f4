// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of grid.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/check_spans.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/trace/grid.hpp>
#include <heddle/trace/impl/labels.hpp>
#include <heddle/trace/impl/time_strips.hpp>
#include <heddle/trace/internal/number.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::string to_grid(const Schedule& schedule, int columns) {
  expects(columns >= 0, [&] {
    return ErrorInfo{"heddle::to_grid", "the width must be at least 0 columns",
                     text("columns = ", columns), "use 0 for no limit"};
  });
  using Slots = std::int64_t;
  const auto timeline = simulate(
      schedule, BasicStageCosts<Slots>{
                    .forward = 1, .backward_input = 1, .backward_weight = 1, .backward = 1});
  struct Row {
    Queue queue;
    std::vector<std::pair<std::size_t, std::string>> cells = {};  // slot and text
  };
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<Row> rows;
  for (int rank = 0; rank < schedule.ranks(); ++rank)
    rows.push_back({{Rank{rank}, Rank{rank}, {}}});
  std::vector<std::size_t> row_of(schedule.queues().size(), none);
  std::size_t slots = 0;
  std::size_t width = 1;
  std::size_t cells = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind > Kind::backward) continue;
    const Queue& queue = schedule[action.queue];
    std::size_t& row = row_of[+action.queue];
    if (row == none) {
      row = +queue.lane == 0 ? +queue.from : rows.size();
      if (row == rows.size()) rows.push_back({queue});
    }
    const auto slot = static_cast<std::size_t>(timeline[ActionId{i}].start);
    const bool first = action.flags & flag::with_next;
    const bool second = i > 0 && schedule[ActionId{i - 1}].flags & flag::with_next;
    rows[row].cells.emplace_back(
        slot, text(first ? "(" : "", action.stage, action.kind, action.item, second ? ")" : ""));
    width = std::max(width, rows[row].cells.back().second.size());
    slots = std::max(slots, slot + 1);
    ++cells;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.queue.from, a.queue.lane) < std::pair(b.queue.from, b.queue.lane);
  });

  std::string out = text(trace::impl::name_or(schedule, "schedule"), ": ", schedule.ranks(),
                         schedule.ranks() == 1 ? " rank, " : " ranks, ", schedule.size(),
                         schedule.size() == 1 ? " action\n" : " actions\n");
  std::vector<std::string> labels;
  std::size_t margin = 0;
  for (const Row& row : rows) {
    labels.push_back(trace::impl::rank_label(+row.queue.from, schedule.ranks()));
    if (+row.queue.lane != 0) labels.back() += text(" lane ", row.queue.lane);
    margin = std::max(margin, labels.back().size());
  }
  const auto room = static_cast<std::size_t>(columns);
  const std::size_t band = std::max<std::size_t>(1, columns == 0 ? slots : room / (width + 1));
  std::vector<std::size_t> next(rows.size());  // cell of each row
  for (std::size_t begin = 0; begin == 0 || begin < slots; begin += band) {
    const std::size_t end = std::min(begin + band, slots);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::string line = labels[r];
      line.resize(margin + 1, ' ');
      for (std::size_t slot = begin; slot < end; ++slot) {
        const auto& row = rows[r].cells;
        const bool busy = next[r] < row.size() && row[next[r]].first == slot;
        std::string cell = busy ? row[next[r]++].second : ".";
        cell.resize(width, ' ');
        line += " " + cell;
      }
      trace::impl::append_line(out, std::move(line));
    }
    if (band < slots)
      out += std::string(margin + 2, ' ') + text("slots ", begin, " to ", end - 1, "\n");
  }
  const std::size_t all = slots * rows.size();
  return out + text(slots, slots == 1 ? " slot, " : " slots, ", all - cells, " of ", all,
                    " cells idle\n");
}

HEDDLE_INLINE std::string to_grid(const Timeline& timeline, int columns,
                                  const std::optional<std::string>& unit) {
  expects(columns >= 1, [&] {
    return ErrorInfo{"heddle::to_grid", "a picture needs at least one column",
                     text("columns = ", columns)};
  });
  heddle::impl::check_spans("heddle::to_grid", timeline);
  constexpr std::size_t most_bands = 10;
  const Schedule& schedule = timeline.schedule();
  const Seconds makespan = timeline.makespan();
  const trace::impl::TimeUnit shown = trace::impl::unit_for(makespan, unit);
  const trace::impl::TimeStrips strips(timeline);
  const auto width = static_cast<std::size_t>(columns);
  auto drawing = strips.named(width, most_bands);
  const bool shortened = !drawing;
  if (shortened) drawing = strips.draw(width, 1);

  std::string out = text(trace::impl::name_or(schedule, "timeline"), ": makespan ",
                         trace::impl::time_text(makespan, shown), ", bubble ratio ",
                         trace::impl::percent_text(timeline.bubble_ratio()), "\n");
  const std::size_t margin = trace::impl::rank_label(0, schedule.ranks()).size() + 2;
  const auto bands = static_cast<double>(drawing->bands.size());
  double begin = 0;  // of a band, counted in bands
  for (const auto& lines : drawing->bands) {
    for (std::size_t rank = 0; rank < lines.size(); ++rank)
      out += trace::impl::rank_label(rank, schedule.ranks()) + "  " + lines[rank] + "\n";
    const std::string first = trace::impl::time_text(makespan * begin / bands, shown);
    const std::string last = trace::impl::time_text(makespan * ++begin / bands, shown);
    const std::size_t used = first.size() + last.size();
    const std::size_t gap = drawing->columns > used ? drawing->columns - used : 1;
    out += std::string(margin, ' ') + first + std::string(gap, ' ') + last + "\n";
  }
  if (const auto enough = shortened ? strips.columns_of_one_band() : std::nullopt)
    out += text("names are shortened: ", *enough, " columns have room for them\n");
  return out;
}

}  // namespace heddle::inline v0
