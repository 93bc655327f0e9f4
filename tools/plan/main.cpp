// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// links: heddle::json
// package: core

/// @file
/// The program `plan`: searches, shows, checks and compares plans that divide a model over unequal
/// ranks, and imports profiles. `plan search gpt.json sites.json --batch 64 --output plan.json`.

#include "commands.hpp"

int main(int argc, char** argv) {
  tool::CommandLine program("plan",
                            "Searches, shows, checks and compares plans that divide a model's\n"
                            "layers and a batch's samples over unequal ranks.");
  tool::add_search(program);
  tool::add_show(program);
  tool::add_check(program);
  tool::add_compare(program);
  tool::add_error(program);
  tool::add_explain(program);
  tool::add_program(program);
  tool::add_import(program);
  program.set_note(tool::planner_list);
  return program.run(argc, argv);
}
