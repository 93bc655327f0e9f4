// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_grid(): schedules and timelines as text, ranks downwards and time to the right, for the
/// terminal.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/trace/impl/check.hpp>
#include <heddle/trace/impl/guests.hpp>
#include <heddle/trace/impl/number.hpp>

namespace heddle::inline v0 {

namespace trace::impl {

/// "rank  3" with the numbers of all ranks right-aligned.
[[nodiscard]] inline std::string rank_label(std::size_t rank, int ranks) {
  const std::string number = text(rank);
  const std::size_t width = text(std::max(ranks - 1, 0)).size();
  return "rank " + std::string(width - number.size(), ' ') + number;
}

[[nodiscard]] inline std::string name_or(const Schedule& schedule, const char* otherwise) {
  return schedule.name().empty() ? otherwise : schedule.name();
}

/// Appends the line without the blanks at its end.
inline void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

/// A letter per kind.
[[nodiscard]] constexpr char letter(Kind kind) noexcept {
  constexpr char letters[kind_count + 1] = "FIWBm+cgux";
  return letters[static_cast<std::size_t>(kind)];
}

/// One rank's line of a proportional grid: in every cell the action that covers most of it.
class Strip {
 public:
  Strip(std::size_t cells, double per_second) : m_cells(cells), m_per_second(per_second) {}

  /// Times in seconds from the timeline's begin.
  void add(std::uint32_t action, Seconds from, Seconds to) {
    const double first = from * m_per_second;
    const double last = to * m_per_second;
    for (auto c = static_cast<std::size_t>(std::max(first, 0.0)); c < m_cells.size(); ++c) {
      const auto left = static_cast<double>(c);
      const double covered = std::min(last, left + 1) - std::max(first, left);
      if (!(covered > 0)) return;
      m_cells[c].covered += covered;
      if (covered <= m_cells[c].most) continue;
      m_cells[c].most = covered;
      m_cells[c].action = action;
    }
  }

  /// An action is its letter, its microbatch where there is room, and dashes: `F0-B0---`. A cell
  /// that is idle for more than half its time is a dot.
  [[nodiscard]] std::string line(const Schedule& schedule) const {
    const auto at = [&](std::size_t c) {
      // Rounding may leave a half-covered cell a hair below one half.
      return m_cells[c].covered < 0.5 - 1e-9 ? nobody : m_cells[c].action;
    };
    std::string result;
    for (std::size_t c = 0; c < m_cells.size();) {
      std::size_t next = c + 1;
      while (next < m_cells.size() && at(next) == at(c)) ++next;
      const std::size_t room = next - c;
      if (at(c) == nobody) {
        result.append(room, '.');
      } else {
        const Action& action = schedule[ActionId{at(c)}];
        std::string box(1, letter(action.kind));
        const std::string number = text(action.item);
        if (action.kind != Kind::update && box.size() + number.size() <= room) box += number;
        box.resize(room, '-');
        result += box;
      }
      c = next;
    }
    return result;
  }

 private:
  static constexpr std::uint32_t nobody = 0xffffffffu;
  struct Cell {
    double covered = 0;
    double most = 0;
    std::uint32_t action = nobody;
  };
  std::vector<Cell> m_cells;
  double m_per_second;
};

}  // namespace trace::impl

/// The order of a schedule's compute actions, in slots of equal length: every F, I, W and B takes
/// one slot, everything else none. A line per rank (per lane where a rank computes in several), a
/// cell per slot, `.` where the rank has to wait; fused actions stand in brackets.
///
///     1F1B P=2 M=2: 2 ranks, 14 actions
///     rank 0  0F0 0F1 .   0B0 .   0B1
///     rank 1  .   1F0 1B0 1F1 1B1 .
///     6 slots, 4 of 12 cells idle
[[nodiscard]] inline std::string to_grid(const Schedule& schedule) {
  using Slots = std::int64_t;
  const auto timeline = simulate(
      schedule, BasicStageCosts<Slots>{
                    .forward = 1, .backward_input = 1, .backward_weight = 1, .backward = 1});
  struct Row {
    Queue queue;
    std::vector<std::pair<std::size_t, std::string>> cells = {};  ///< slot and text
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
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line = labels[r];
    line.resize(margin + 1, ' ');
    std::size_t filled = 0;
    const auto append_cell = [&](const std::string& cell) {
      line += " " + cell + std::string(width - cell.size(), ' ');
      ++filled;
    };
    for (const auto& [slot, cell] : rows[r].cells) {
      while (filled < slot) append_cell(".");
      append_cell(cell);
    }
    while (filled < slots) append_cell(".");
    trace::impl::append_line(out, std::move(line));
  }
  const std::size_t all = slots * rows.size();
  return out + text(slots, slots == 1 ? " slot, " : " slots, ", all - cells, " of ", all,
                    " cells idle\n");
}

/// A timeline to scale, `columns` characters wide, a line per rank. Letters: F, B, I, W; u update,
/// + combine, c cast, g group, x user, m a move within the rank; `.` idle.
///
///     1F1B P=2 M=2: makespan 9 s, bubble ratio 33.3%
///     rank 0  F0F1..B0--..B1--
///     rank 1  ..F0B0--F1B1--..
///             0 s          9 s
[[nodiscard]] inline std::string to_grid(const Timeline& timeline, int columns = 100) {
  expects(columns >= 1, [&] {
    return Complaint{"heddle::to_grid", "a picture needs at least one column",
                     text("columns = ", columns)};
  });
  trace::impl::check("heddle::to_grid", timeline);
  const Schedule& schedule = timeline.schedule();
  const Seconds begin = timeline.begin();
  const Seconds makespan = timeline.makespan();
  const auto width = static_cast<std::size_t>(columns);
  const double per_second = makespan > 0 ? static_cast<double>(columns) / makespan : 0;
  std::vector<trace::impl::Strip> strips(static_cast<std::size_t>(schedule.ranks()),
                                         {width, per_second});
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Queue& queue = schedule[schedule[ActionId{i}].queue];
    if (!queue.local()) continue;
    const Span& span = timeline[ActionId{i}];
    const auto add = [&](Rank rank) {
      strips[+rank].add(static_cast<std::uint32_t>(i), span.start - begin, span.end - begin);
    };
    add(queue.from);
    for (const Rank guest : trace::impl::guests(schedule, ActionId{i})) add(guest);
  }

  std::string out = text(trace::impl::name_or(schedule, "timeline"), ": makespan ",
                         trace::impl::time_text(makespan), ", bubble ratio ",
                         trace::impl::percent_text(timeline.bubble_ratio()), "\n");
  for (std::size_t rank = 0; rank < strips.size(); ++rank)
    out +=
        trace::impl::rank_label(rank, schedule.ranks()) + "  " + strips[rank].line(schedule) + "\n";
  const std::string zero = "0 " + trace::impl::unit_for(makespan).name;
  const std::string last = trace::impl::time_text(makespan);
  const std::size_t margin = trace::impl::rank_label(0, schedule.ranks()).size() + 2;
  const std::size_t used = zero.size() + last.size();
  return out + std::string(margin, ' ') + zero + std::string(width > used ? width - used : 1, ' ') +
         last + "\n";
}

}  // namespace heddle::inline v0
