// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core

/// @file
/// Draws the picture of 1F1B that the README shows: schedule_picture docs/pictures/one_f_one_b.svg

#include <string>

#include <heddle/core/file.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/trace.hpp>

#include "common/command_line.hpp"

namespace hd = heddle;

int main(int argc, char** argv) {
  std::string file;
  tool::CommandLine program("schedule_picture", "Draws the picture of 1F1B that the README shows.");
  program.add_argument("FILE.svg", &file, "the picture");
  return program.run(argc, argv, [&] {
    const auto schedule = hd::schedule::one_f_one_b({.ranks = 4, .microbatches = 8});
    const auto timeline = hd::simulate(schedule, {.forward = 1, .backward = 2});
    hd::write_file(
        file, hd::trace::to_svg(timeline,
                                {.title = "1F1B, 4 stages, 8 microbatches, B = 2 F", .unit = "F"}));
    return 0;
  });
}
