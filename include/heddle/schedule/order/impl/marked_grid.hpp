// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// marked_grid(): prints the cells around one cell of a table, and marks that cell.

#include <algorithm>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>

namespace heddle::inline v0::impl {

/// Returns the cells around cell (row, column). Rows are ranks. Cells are numbered from 1, and an
/// empty cell is a dot. Cells that are far from the marked one are left out.
///
///     cell     2      3      4
///     rank 0   0F1    0B0    .
///     rank 1 > 1F0 <  1B0    1F1
[[nodiscard]] inline std::string marked_grid(const std::vector<std::vector<std::string>>& rows,
                                             std::size_t row, std::size_t column) {
  constexpr std::size_t around = 5;
  // The characters of UTF-8: all bytes but those that continue one.
  const auto characters = [](const std::string& cell) {
    return static_cast<std::size_t>(
        std::ranges::count_if(cell, [](char c) { return (c & 0xc0) != 0x80; }));
  };
  const auto from = [](std::size_t at) { return at < around ? 0 : at - around; };
  const std::size_t last_row = std::min(rows.size(), row + around + 1);
  std::size_t last_column = column + 1;
  std::size_t width = text(column + around + 1).size();
  for (std::size_t r = from(row); r < last_row; ++r) {
    const std::size_t end = std::min(rows[r].size(), column + around + 1);
    last_column = std::max(last_column, end);
    for (std::size_t c = from(column); c < end; ++c)
      width = std::max(width, characters(rows[r][c]));
  }
  const std::size_t margin = text("rank ", last_row).size();
  const auto pad = [&](std::string what, std::size_t to) {
    what.append(to - std::min(characters(what), to), ' ');
    return what;
  };
  std::string out;
  const auto append = [&out](std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  std::string head = pad("cell", margin + 1);
  for (std::size_t c = from(column); c < last_column; ++c)
    head += "  " + pad(text(c + 1), width) + "  ";
  append(head);
  if (from(row) > 0) append("...");
  for (std::size_t r = from(row); r < last_row; ++r) {
    std::string line = pad(text("rank ", r), margin + 1);
    for (std::size_t c = from(column); c < last_column; ++c) {
      const bool marked = r == row && c == column;
      const bool there = c < rows[r].size() && !rows[r][c].empty();
      const std::string cell = there ? rows[r][c] : ".";
      line += pad(marked ? "> " + cell + " <" : "  " + cell, width + 4);
    }
    append(line);
  }
  if (last_row < rows.size()) append("...");
  return out;
}

}  // namespace heddle::inline v0::impl
