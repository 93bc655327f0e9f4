// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of step_sizes.hpp.

#include <cstddef>
#include <cstdint>
#include <span>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/step_sizes.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

inline void expect_size(bool good, const Schedule& schedule, ActionId id, const Use& use,
                        const char* what, Bytes used, Bytes capacity, const char* remedy) {
  expects(good, [&] {
    return ErrorInfo{text("heddle::Executor::sizes, ", schedule::action_text(schedule, id)), what,
                     text("'", schedule[schedule[use.buffer].label], "' of stage ",
                          schedule[use.buffer].stage, ": ", used, " of ", capacity, " bytes"),
                     remedy};
  });
}

// Returns the bytes of one use in a step.
inline Bytes used_by(const Schedule& schedule, ActionId id, const Use& use, const UsedBytes& used) {
  const Buffer& buffer = schedule[use.buffer];
  Bytes sum = 0;
  bool full = true;
  for (std::uint32_t part = use.first; part < use.first + use.count; ++part) {
    const Bytes capacity = schedule::part_bytes(buffer, part, 1);
    const Bytes bytes = used(schedule[id], buffer, part);
    expect_size(bytes <= capacity, schedule, id, use, "a step uses more than a part has", bytes,
                capacity, "make the buffers for the largest step");
    expect_size(bytes % value_bytes(buffer) == 0, schedule, id, use,
                "a step uses a fraction of a value", bytes, capacity, "use whole values");
    expect_size(buffer.block == 0 || bytes == capacity, schedule, id, use,
                "a part with scales is not full", bytes, capacity,
                "use all of it, or cast without scales");
    expect_size(full || bytes == 0, schedule, id, use, "the used bytes of several parts have gaps",
                bytes, capacity, "fill all parts of an action but the last, or use one part");
    full = full && bytes == capacity;
    sum += bytes;
  }
  return sum;
}

HEDDLE_INLINE void use_bytes(Program& program, const UsedBytes& used) {
  const Schedule& schedule = program.schedule;
  const auto bytes_of = [&](ActionId id, const Use& use) {
    return used ? impl::used_by(schedule, id, use, used) : schedule.bytes(use);
  };
  const auto check_ends = [&](ActionId id, std::span<const Use> uses) {
    const Bytes from = bytes_of(id, uses[0]), to = bytes_of(id, uses[1]);
    impl::expect_size(from == to, schedule, id, uses[1],
                      "the two ends of a move, or the two terms of a sum, have different sizes", to,
                      from, "return the same size for both buffers");
  };
  // First all sizes are checked, then they are written. A vector of them would be allocated anew in
  // every step.
  for (const bool writes : {false, true}) {
    std::size_t next = 0;
    for (const Program::Step& step : std::span(program.steps).first(program.size())) {
      if (step.does == Program::Step::Does::settle) continue;
      const Action& action = schedule[step.action];
      const auto uses = schedule.uses(step.action);
      if (used && !writes &&
          (action.kind == Kind::move || (action.kind == Kind::combine && uses.size() == 2)))
        check_ends(step.action, uses);
      for (std::size_t u = 0; u < uses.size(); ++u) {
        if (step.moves() && u != (step.does == Program::Step::Does::send ? 0 : 1)) continue;
        if (action.kind == Kind::group && schedule[uses[u].buffer].rank != program.rank) continue;
        const Bytes bytes = bytes_of(step.action, uses[u]);
        if (writes) program.uses[next++].bytes = bytes;
      }
    }
  }
}

}  // namespace heddle::inline v0::impl
