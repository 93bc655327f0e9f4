// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TimeStrips: draws a timeline to scale in characters, with a line per rank. It is cut into bands
/// if it is too long for the names of its actions.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/trace/impl/guests.hpp>

namespace heddle::inline v0::trace::impl {

/// Returns the letter of a kind.
[[nodiscard]] constexpr char letter(Kind kind) noexcept {
  constexpr char letters[kind_count + 1] = "FIWBm+cgux";
  return letters[static_cast<std::size_t>(kind)];
}

/// The lines of to_grid(timeline).
class TimeStrips {
 public:
  /// A drawing: bands that follow each other in time, each with a line of `columns` characters per
  /// rank.
  struct Drawing {
    std::size_t columns = 0;
    std::vector<std::vector<std::string>> bands = {};  ///< the lines of the ranks of each band
    bool all_named = false;  ///< every F, B, I and W that takes time shows its name
  };

  explicit TimeStrips(const Timeline& timeline)
      : m_schedule(timeline.schedule()), m_makespan(timeline.makespan()) {
    std::vector<std::optional<Stage>> stage_of(static_cast<std::size_t>(m_schedule.ranks()));
    for (std::size_t i = 0; i < m_schedule.size(); ++i) {
      const ActionId id{i};
      const Action& action = m_schedule[id];
      const Queue& queue = m_schedule[action.queue];
      if (!queue.local()) continue;
      const Span& span = timeline[id];
      const auto add = [&](Rank rank) {
        m_boxes.push_back({id, rank, span.start - timeline.begin(), span.end - timeline.begin()});
      };
      add(queue.from);
      for (const Rank guest : guests(m_schedule, id)) add(guest);
      if (action.kind > Kind::backward) continue;
      const Stage stage = stage_of[+queue.from].value_or(action.stage);
      m_stages_differ = m_stages_differ || stage != action.stage;
      stage_of[+queue.from] = stage;
    }
  }

  /// Returns a drawing with all names in as few bands as possible, at most `most_bands`, or
  /// nothing.
  [[nodiscard]] std::optional<Drawing> named(std::size_t columns, std::size_t most_bands) const {
    const double needed = columns_for_names(0);
    for (std::size_t bands = 1; bands <= most_bands; ++bands) {
      if (static_cast<double>(bands * columns) < needed) continue;
      // Narrower bands of equal length are tried first, because boxes often end where they end.
      const auto even = static_cast<std::size_t>(std::ceil(needed / static_cast<double>(bands)));
      for (const std::size_t width : {bands == 1 ? columns : even, columns})
        if (Drawing drawing = draw(width, bands); drawing.all_named) return drawing;
    }
    return {};
  }

  /// Returns the columns that a single band needs for all names, if boxes do not overlap on a rank.
  [[nodiscard]] std::optional<std::size_t> columns_of_one_band() const {
    for (const std::size_t spare : {0u, 1u}) {
      const double needed = columns_for_names(spare);
      if (needed > 1e5) return {};  // nobody would draw that
      const auto columns = static_cast<std::size_t>(needed);
      if (columns > 0 && draw(columns, 1).all_named) return columns;
    }
    return {};
  }

  [[nodiscard]] Drawing draw(std::size_t columns, std::size_t bands) const {
    const std::vector<std::vector<Cell>> cells = cover(columns * bands);
    std::vector<char> has_name(m_boxes.size(), 0);
    Drawing drawing{columns};
    for (std::size_t band = 0; band < bands; ++band) {
      auto& lines = drawing.bands.emplace_back();
      for (const auto& row : cells)
        lines.push_back(line(row, band * columns, (band + 1) * columns, has_name));
    }
    drawing.all_named = true;
    for (std::size_t b = 0; b < m_boxes.size(); ++b)
      drawing.all_named = drawing.all_named && (has_name[b] || !wants_name(m_boxes[b]));
    return drawing;
  }

 private:
  /// The time that an action covers on a rank, in seconds from the begin of the timeline.
  struct Box {
    ActionId id;
    Rank rank;
    Seconds from, to;
  };
  static constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();
  struct Cell {
    double covered = 0;
    double most = 0;
    std::size_t box = nobody;
  };

  [[nodiscard]] bool wants_name(const Box& box) const {
    return m_schedule[box.id].kind <= Kind::backward && box.to > box.from;
  }

  /// Returns "F0", or "3F0" if ranks have several stages.
  [[nodiscard]] std::string name(ActionId id) const {
    const Action& action = m_schedule[id];
    if (action.kind == Kind::update) return "u";
    const bool staged = m_stages_differ && action.kind <= Kind::backward;
    return staged ? text(action.stage, letter(action.kind), action.item)
                  : text(letter(action.kind), action.item);
  }
  /// Returns the characters that a name needs. A name that begins with a digit needs a space after
  /// it.
  [[nodiscard]] std::size_t room_for(const std::string& name) const {
    return name.size() + (name[0] >= '0' && name[0] <= '9');
  }

  /// Returns the columns at which every box has room for its name and `spare` cells.
  [[nodiscard]] double columns_for_names(std::size_t spare) const {
    double columns = 0;
    for (const Box& box : m_boxes)
      if (wants_name(box))
        columns = std::max(columns, static_cast<double>(room_for(name(box.id)) + spare) *
                                        m_makespan / (box.to - box.from));
    return std::ceil(columns * (1 - 1e-12));
  }

  /// Returns the cells of every rank. Each cell has the box that covers most of it.
  [[nodiscard]] std::vector<std::vector<Cell>> cover(std::size_t columns) const {
    std::vector<std::vector<Cell>> cells(static_cast<std::size_t>(m_schedule.ranks()),
                                         std::vector<Cell>(columns));
    const double per_second = m_makespan > 0 ? static_cast<double>(columns) / m_makespan : 0;
    for (std::size_t b = 0; b < m_boxes.size(); ++b) {
      const double first = m_boxes[b].from * per_second;
      const double last = m_boxes[b].to * per_second;
      auto& row = cells[+m_boxes[b].rank];
      for (auto c = static_cast<std::size_t>(std::max(first, 0.0)); c < row.size(); ++c) {
        const auto left = static_cast<double>(c);
        const double covered = std::min(last, left + 1) - std::max(first, left);
        if (!(covered > 0)) break;
        row[c].covered += covered;
        if (covered <= row[c].most) continue;
        row[c].most = covered;
        row[c].box = b;
      }
    }
    return cells;
  }

  /// Returns the line of a row. An action is its name, or its letter if there is no room, and
  /// dashes: `F0-B0---`. A cell that is idle for more than half of its time is a dot.
  [[nodiscard]] std::string line(const std::vector<Cell>& row, std::size_t from, std::size_t to,
                                 std::vector<char>& has_name) const {
    const auto at = [&](std::size_t c) {
      // Rounding may leave a half-covered cell a hair below one half.
      return row[c].covered < 0.5 - 1e-9 ? nobody : row[c].box;
    };
    std::string result;
    for (std::size_t c = from; c < to;) {
      std::size_t next = c + 1;
      while (next < to && at(next) == at(c)) ++next;
      const std::size_t room = next - c;
      if (at(c) == nobody) {
        result.append(room, '.');
      } else {
        const ActionId id = m_boxes[at(c)].id;
        std::string shown = name(id);
        if (room_for(shown) <= room)
          has_name[at(c)] = 1;
        else
          shown = letter(m_schedule[id].kind);
        shown.resize(room, '-');
        result += shown;
      }
      c = next;
    }
    return result;
  }

  const Schedule& m_schedule;
  Seconds m_makespan;
  bool m_stages_differ = false;  ///< a rank computes for several stages
  std::vector<Box> m_boxes;
};

}  // namespace heddle::inline v0::trace::impl
