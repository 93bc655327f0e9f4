// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// print_columns() and GrowingTable: how the tools print tables.

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include <heddle/core/internal/columns.hpp>

namespace tool {

/// Prints rows in columns, each as wide as its widest word; the first row is the head. All rows
/// have at most as many words as the head.
inline void print_columns(const std::vector<std::vector<std::string>>& rows) {
  std::cout << heddle::impl::in_columns(rows) << '\n';
}

/// A table whose rows are printed as they come. A column is as wide as its head and the words that
/// have come so far.
class GrowingTable {
 public:
  /// Prints the head. The first column has room for words of `first` characters.
  GrowingTable(const std::vector<std::string>& head, std::size_t first) : m_widths(head.size()) {
    m_widths[0] = first;
    print(head);
  }
  /// Prints a row of at most as many words as the head.
  void print(const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      m_widths[c] = std::max(m_widths[c], row[c].size());
      line += row[c];
      if (c + 1 < row.size()) line.append(m_widths[c] + 2 - row[c].size(), ' ');
    }
    std::cout << line << std::endl;
  }

 private:
  std::vector<std::size_t> m_widths;
};

}  // namespace tool
