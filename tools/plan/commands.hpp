// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The commands of the program `plan`. Each function adds its command to the program's command
/// line; the commands throw errors.

#include <string>

#include "../common/command_line.hpp"

namespace tool {

/// PROFILE MACHINE --batch N: asks the planners, and writes the best plan.
void add_search(CommandLine& program);
/// PLAN: prints a plan; with PROFILE MACHINE, draws its simulated step.
void add_show(CommandLine& program);
/// PLAN PROFILE MACHINE: says what is wrong with a plan, or what its stages cost.
void add_check(CommandLine& program);
/// PROFILE MACHINE PLAN...: prices plans by the formulas of all planners and by the simulator.
void add_compare(CommandLine& program);
/// PLAN PROFILE MACHINE MEASURED...: says how far traces of steps are from the prediction.
void add_error(CommandLine& program);
/// FILE --output PROFILE: makes a profile of a text profile of DAPPLE or PipeDream.
void add_import(CommandLine& program);
/// PROGRAM|PROFILE MACHINE: says why a planner decides as it does.
void add_explain(CommandLine& program);
/// Prints the tensor program of a transformer; with --machine, what planners make of it.
void add_program(CommandLine& program);

/// Returns the names of the planners, and what they are.
[[nodiscard]] std::string planner_list();

}  // namespace tool
