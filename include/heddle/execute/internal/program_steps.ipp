// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of program_steps.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/internal/program_steps.hpp>
#include <heddle/execute/mover.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/hash.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0::impl {

HEDDLE_INLINE std::string step_text(const Program& program, std::size_t at) {
  return at < program.size() ? schedule::action_text(program.schedule, program.steps[at].action)
                             : std::string("the end of the step");
}

HEDDLE_INLINE std::string step_place(const Program& program, std::size_t at) {
  return text("heddle::Executor, rank ", program.rank, " at ", step_text(program, at));
}

HEDDLE_INLINE std::size_t step_of_port(const Program& program, std::size_t number,
                                       std::uint64_t ordinal) {
  std::size_t at = 0;
  for (std::uint64_t seen = 0; at < program.size(); ++at)
    if (program.steps[at].posts() && program.steps[at].port == number && seen++ == ordinal) break;
  return at;
}

HEDDLE_INLINE void expect_program(const Program& program, int ranks) {
  const auto expect = [&](bool good, const char* what, auto&&... numbers) {
    expects(good, [&] {
      return ErrorInfo{"heddle::Executor", text("the program names ", what), text(numbers...),
                       "make programs by slice()"};
    });
  };
  const auto all = static_cast<std::size_t>(ranks);
  expect(+program.rank < all, "a rank that does not exist", "rank ", program.rank, " of ", ranks);
  for (std::size_t p = 0; p < program.ports.size(); ++p)
    expect(+program.ports[p].peer < all, "a rank that does not exist", "port ", p, ": rank ",
           program.ports[p].peer, " of ", ranks);
  for (std::size_t w = 0; w < program.waits.size(); ++w)
    expect(program.waits[w].port < program.ports.size(), "a port that does not exist", "wait ", w,
           ": port ", program.waits[w].port, " of ", program.ports.size());
  expects(!program.steps.empty(), [] {
    return ErrorInfo{"heddle::Executor", "the program has no steps",
                     "the last step is the end, so there is at least one",
                     "make programs by slice()"};
  });
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Program::Step& step = program.steps[i];
    const Program::Step& next = program.steps[i + 1];
    expect(+step.action < program.schedule.size(), "an action that does not exist", "step ", i,
           ": action ", step.action, " of ", program.schedule.size());
    expect(!step.posts() || step.port < program.ports.size(), "a port that does not exist", "step ",
           i, ": port ", step.port, " of ", program.ports.size());
    expect(step.first_use <= next.first_use && next.first_use <= program.uses.size(),
           "a use that does not exist", "step ", i, ": uses ", step.first_use, " to ",
           next.first_use, " of ", program.uses.size());
    expect(step.first_wait <= next.first_wait && next.first_wait <= program.waits.size(),
           "a wait that does not exist", "step ", i, ": waits ", step.first_wait, " to ",
           next.first_wait, " of ", program.waits.size());
  }
}

// "parts [2, 4) of 'weights' of stage 1 in tier 2".
inline std::string parts_text(const Schedule& schedule, const Use& use) {
  const Buffer& buffer = schedule[use.buffer];
  return text("parts [", use.first, ", ", use.first + use.count, ") of '", schedule[buffer.label],
              "' of stage ", buffer.stage, " in tier ", buffer.tier);
}

HEDDLE_INLINE ErrorInfo stuck(const Program& program, std::size_t at, std::size_t number,
                              std::uint64_t ordinal, Seconds watchdog) {
  const Program::Port& port = program.ports[number];
  if (port.progress != nullptr)
    return {step_place(program, at),
            text("stuck: rank ", port.peer, " has not come so far that this one may go on"),
            text("watchdog after ", watchdog, " s"), about_silence};
  std::string message;
  const std::size_t step = step_of_port(program, number, ordinal);
  if (step < program.size())
    message =
        schedule::action_text(program.schedule, program.steps[step].action, port.sends ? 0 : 1);
  std::string peer;
  if (!port.mover) peer = text(port.sends ? " to rank " : " from rank ", port.peer);
  return {step_place(program, at), text("stuck: ", message, peer, " did not complete"),
          text("watchdog after ", watchdog, " s"),
          port.mover ? "see what the mover is doing, or raise ExecuteOptions::watchdog"
                     : about_silence};
}

HEDDLE_INLINE ListPlace list_place(const Program& program, std::size_t at, std::uint64_t pass,
                                   std::size_t open, bool previous) {
  const auto before = [&](std::size_t step) {
    return step < program.size() ? program.steps[step].action.value
                                 : static_cast<std::uint32_t>(program.schedule.size());
  };
  ListPlace place{.started = before(program.size()),
                  .finished = before(open),
                  .step = pass - (previous ? 1 : 0),
                  .list = hash(program.schedule)};
  if (!previous) {
    if (at < program.size()) place.started = at == 0 ? 0 : before(at - 1) + 1;
    place.finished = std::min(place.finished, before(at));
  }
  return place;
}

HEDDLE_INLINE ErrorInfo move_failed(const Program& program, std::size_t at, std::size_t number,
                                    std::uint64_t ordinal, const ErrorInfo& reason) {
  const std::size_t step = step_of_port(program, number, ordinal);
  std::string what = "a move failed";
  if (step < program.size()) {
    const ActionId id = program.steps[step].action;
    const auto uses = program.schedule.uses(id);
    what =
        text(schedule::action_text(program.schedule, id), " failed: it moves ",
             parts_text(program.schedule, uses[0]), " to ", parts_text(program.schedule, uses[1]));
  }
  return {step_place(program, at), std::move(what),
          text(reason.where, ": ", reason.what, reason.why.empty() ? "" : ", ", reason.why),
          reason.fix};
}

HEDDLE_INLINE std::pair<MoveEnd, MoveEnd> move_ends(const Program& program, std::size_t at) {
  const auto uses = program.schedule.uses(program.steps[at].action);
  const auto bound = program.uses_of(at);
  const auto end = [&](std::size_t u) {
    const Buffer& buffer = program.schedule[uses[u].buffer];
    return MoveEnd{uses[u].buffer, buffer.tier, schedule::part_offset(buffer, uses[u].first),
                   bound[u].data};
  };
  return {end(0), end(1)};
}

HEDDLE_INLINE void leave_moves_to_handler(Program& program) {
  if (std::ranges::none_of(program.ports, &Program::Port::mover)) return;
  std::vector<std::uint32_t> renumbered(program.ports.size());
  std::vector<Program::Port> ports;
  for (std::size_t p = 0; p < renumbered.size(); ++p) {
    renumbered[p] = static_cast<std::uint32_t>(ports.size());
    if (!program.ports[p].mover) ports.push_back(program.ports[p]);
  }
  std::vector<Program::Wait> waits;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    Program::Step& step = program.steps[i];
    const auto first = static_cast<std::uint32_t>(waits.size());
    if (i < program.size())
      for (const Program::Wait& wait : program.waits_of(i))
        if (!program.ports[wait.port].mover)
          waits.push_back({renumbered[wait.port], wait.messages, wait.carried});
    step.first_wait = first;
    if (step.does == Program::Step::Does::move) step.does = Program::Step::Does::run;
    if (step.moves()) step.port = renumbered[step.port];
  }
  program.waits = std::move(waits);
  program.ports = std::move(ports);
}

HEDDLE_INLINE void expect_mover_lanes(const Program& program, const MoverRef& mover) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program.steps[i].does != Program::Step::Does::run) continue;
    for (const BoundUse& use : program.uses_of(i)) {
      const Buffer& buffer = program.schedule[use.buffer];
      // Schedules without tiers, such as those of collectives, have other buffers of these numbers.
      expects(+buffer.tier == 0 || !mover.holds(use.buffer), [&] {
        return ErrorInfo{
            step_place(program, i), "a buffer that the mover holds has no memory for the handler",
            text("'", program.schedule[buffer.label], "' of stage ", buffer.stage, " in tier ",
                 buffer.tier),
            "give the moves between tiers a queue without other work, such as a lane of their own"};
      });
    }
  }
}

}  // namespace heddle::inline v0::impl
