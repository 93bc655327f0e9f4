// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of executor.hpp.

#include <cstddef>
#include <cstdint>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/schedule/action_text.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::string impl::step_text(const Program& program, std::size_t at) {
  return at < program.size() ? action_text(program.schedule, program.steps[at].action)
                             : std::string("the end of the step");
}

HEDDLE_INLINE std::string impl::step_place(const Program& program, std::size_t at) {
  return text("heddle::Executor, rank ", program.rank, " at ", step_text(program, at));
}

HEDDLE_INLINE ErrorInfo impl::stuck(const Program& program, std::size_t at, std::size_t number,
                                    std::uint64_t ordinal, Seconds watchdog) {
  const Port& port = program.ports[number];
  if (port.progress != nullptr)
    return {step_place(program, at),
            text("stuck: rank ", port.peer, " has not come so far that this one may go on"),
            text("watchdog after ", watchdog, " s"),
            "see what that rank is doing, or raise ExecuteOptions::watchdog"};
  std::string message;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Step& step = program.steps[i];
    if (!step.moves() || step.port != number || seen++ != ordinal) continue;
    message = action_text(program.schedule, step.action, port.sends ? 0 : 1);
  }
  return {step_place(program, at),
          text("stuck: ", message, port.sends ? " to rank " : " from rank ", port.peer,
               " did not complete"),
          text("watchdog after ", watchdog, " s"),
          "see what that rank is doing, or raise ExecuteOptions::watchdog"};
}

}  // namespace heddle::inline v0
