// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// print_columns(): how the tools print tables.

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

namespace tool {

/// Prints rows in columns, each as wide as its widest word; the first row is the head. All rows
/// have at most as many words as the head.
inline void print_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width(rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += row[c];
      if (c + 1 < row.size()) line.append(width[c] + 2 - row[c].size(), ' ');
    }
    std::cout << line << '\n';
  }
}

}  // namespace tool
