// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// print_columns(): how the tools print tables.

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

}  // namespace tool
