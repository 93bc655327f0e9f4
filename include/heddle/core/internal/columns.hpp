// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// in_columns(): the text of tables.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace heddle::inline v0::impl {

/// Returns rows in columns, joined by line breaks. A column is as wide as its widest word, two
/// blanks before the next one; the last word of a row does not count. The first row is the head,
/// and no row has more words.
[[nodiscard]] inline std::string in_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width(rows.empty() ? 0 : rows[0].size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c + 1 < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (r > 0) out += '\n';
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      out += rows[r][c];
      if (c + 1 < rows[r].size()) out.append(width[c] + 2 - rows[r][c].size(), ' ');
    }
  }
  return out;
}

}  // namespace heddle::inline v0::impl
