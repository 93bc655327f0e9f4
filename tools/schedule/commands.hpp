// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The commands of the program `schedule`. Each function adds its command to the program's command
/// line; the commands throw errors.

#include "../common/command_line.hpp"

namespace tool {

/// Prints the catalogue.
void add_list(CommandLine& program);
/// NAME: draws a schedule of the catalogue.
void add_show(CommandLine& program);
/// FILE.csv: the same for a schedule file; a wrong cell is shown among its neighbours.
void add_check(CommandLine& program);
/// NAME or FILE.csv: proves that a schedule computes the serial step.
void add_prove(CommandLine& program);
/// NAME...: a table.
void add_compare(CommandLine& program);
/// NAME: prints what limits a schedule.
void add_explain(CommandLine& program);
/// FOLDER: writes gallery.md and pictures/gallery/*.svg there.
void add_gallery(CommandLine& program);
/// FOLDER: runs a farm, a race, a fork-join and a fixed point, and draws them there.
void add_record(CommandLine& program);

}  // namespace tool
