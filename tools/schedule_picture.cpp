// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// Draws the picture of 1F1B that the README shows: schedule_picture docs/pictures/one_f_one_b.svg

#include <iostream>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace.hpp>

namespace hd = heddle;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: schedule_picture FILE.svg\n";
    return 2;
  }
  try {
    const auto schedule = hd::schedule::one_f_one_b({.stages = 4, .microbatches = 8});
    const auto timeline = hd::simulate(schedule, {.forward = 1, .backward = 2});
    hd::write_file(
        argv[1], hd::trace::to_svg(
                     timeline, {.title = "1F1B, 4 stages, 8 microbatches, B = 2 F", .unit = "F"}));
  } catch (const hd::error& error) {
    std::cerr << "schedule_picture: " << error.what() << '\n';
    return 1;
  }
}
