// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Fault: an entry of Orders that is wrong, as first_fault() finds it. What is refused before there
/// are any orders has no such entry: a number of microbatches that a generator cannot divide, a
/// graph in which stages wait for each other in a circle.

#include <cstddef>
#include <string>

#include <heddle/core/index.hpp>

namespace heddle::inline v0 {

/// An entry of Orders that is wrong, and why.
struct Fault {
  Rank rank;              ///< in whose list
  std::size_t entry = 0;  ///< its number there, from 0 on
  std::string what;       ///< is the problem
  std::string why;        ///< the numbers behind it
};

}  // namespace heddle::inline v0
