// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Uses the headers and the library of an installed package.

#include <iostream>

#include <heddle/schedule/generator/pipeline.hpp>

int main() {
  const heddle::Schedule schedule = heddle::schedule::one_f_one_b({.ranks = 3, .microbatches = 4});
  std::cout << schedule.name() << ": " << schedule.size() << " actions\n";
}
