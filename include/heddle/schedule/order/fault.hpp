// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Fault: a wrong entry of Orders, which first_fault() finds. Errors that are found before there
/// are any orders have no such entry: for example a number of microbatches that a generator cannot
/// divide, or a graph in which stages wait for each other in a cycle.

#include <cstddef>
#include <string>

#include <heddle/core/index.hpp>

namespace heddle::inline v0 {

/// A wrong entry of Orders, and why it is wrong.
struct Fault {
  Rank rank;              ///< the rank whose list has the entry
  std::size_t entry = 0;  ///< the number of the entry in the list, from 0 on
  std::string what;       ///< the problem
  std::string why;        ///< the numbers behind the problem
};

}  // namespace heddle::inline v0
