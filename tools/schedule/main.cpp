// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::core
// together: 10
// package: core

/// @file
/// The program `schedule`: lists, draws, checks and compares pipeline schedules.

#include "commands.hpp"
#include "torch.hpp"

int main(int argc, char** argv) {
  tool::CommandLine program("schedule", "Lists, draws, checks and compares pipeline schedules.");
  tool::add_list(program);
  tool::add_show(program);
  tool::add_check(program);
  tool::add_prove(program);
  tool::add_compare(program);
  tool::add_explain(program);
  tool::add_gallery(program);
  tool::add_record(program);
  program.set_note(tool::not_for_torch);
  return program.run(argc, argv);
}
