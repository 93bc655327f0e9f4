// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The labels of ranks and schedules, and the cells of tables, that grids, pictures and reports
/// share.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <heddle/core/text.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::trace::impl {

/// Returns "rank  3", with the numbers of all ranks right-aligned.
[[nodiscard]] inline std::string rank_label(std::size_t rank, int ranks) {
  const std::string number = text(rank);
  const std::size_t width = text(std::max(ranks - 1, 0)).size();
  return "rank " + std::string(width - number.size(), ' ') + number;
}

/// Returns the name of `schedule`, or `otherwise` if it has none.
[[nodiscard]] inline std::string name_or(const Schedule& schedule, const char* otherwise) {
  return schedule.name().empty() ? otherwise : schedule.name();
}

/// Appends `line` without the blanks at its end.
inline void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

/// Appends `cell` right-aligned in `width` columns.
inline void append_cell(std::string& line, std::string_view cell, std::size_t width) {
  line.append(width > cell.size() ? width - cell.size() : 1, ' ').append(cell);
}

}  // namespace heddle::inline v0::trace::impl
