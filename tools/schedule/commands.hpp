// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The commands of the program `schedule`. Each takes what follows its name on the command line and
/// returns the program's exit status; errors are thrown.

#include <span>

namespace tool {

/// Prints the catalogue.
int list();
/// NAME [OPTIONS]: draws a schedule of the catalogue.
int show(std::span<char*> arguments);
/// FILE.csv [OPTIONS]: the same for a schedule file; a wrong cell is shown among its neighbours.
int check(std::span<char*> arguments);
/// NAME... [OPTIONS]: a table.
int compare(std::span<char*> arguments);
/// FOLDER: writes gallery.md and pictures/gallery/*.svg there.
int gallery(std::span<char*> arguments);

}  // namespace tool
