// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// A program of another project, built against an installed Heddle. It simulates a pipeline and
/// prints the result.

#include <iostream>

#include <heddle/heddle_core.hpp>
#ifdef CONSUMER_WHOLE
#include <Kokkos_Core.hpp>

#include <heddle/heddle.hpp>
#endif

int main() {
  const auto schedule = heddle::schedule::one_f_one_b({.ranks = 4, .microbatches = 8});
  const auto timeline = heddle::simulate(schedule, {.forward = 1, .backward = 2});
  std::cout << "Heddle " << HEDDLE_VERSION_MAJOR << '.' << HEDDLE_VERSION_MINOR << '.'
            << HEDDLE_VERSION_PATCH << ": 1F1B on 4 stages with 8 microbatches, bubble ratio "
            << timeline.bubble_ratio() << '\n';
#ifdef CONSUMER_WHOLE
  std::cout << "with Kokkos " << KOKKOS_VERSION << '\n';
#endif
}
