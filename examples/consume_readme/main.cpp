// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The program of the README's section "Use it".

#include <iostream>

#include <heddle/heddle_core.hpp>

int main() {
  const auto schedule = heddle::schedule::one_f_one_b({.ranks = 2, .microbatches = 4});
  const auto timeline = heddle::simulate(schedule, {.forward = 1, .backward = 2});
  std::cout << heddle::to_grid(schedule) << heddle::to_grid(timeline);
}
