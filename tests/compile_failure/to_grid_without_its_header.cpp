// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: heddle::to_grid: include <heddle/trace/grid.hpp>, or <heddle/heddle_core.hpp>

/// @file
/// Who includes the room of schedules, and prints one, is told which header draws it.

#include <string>

#include <heddle/schedule.hpp>
#ifdef HEDDLE_OK
#include <heddle/trace/grid.hpp>
#endif

std::string use(const heddle::Schedule& schedule) { return heddle::to_grid(schedule); }
std::string use_with_width(const heddle::Schedule& schedule) {
  return heddle::to_grid(schedule, 80);
}
