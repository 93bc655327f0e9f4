// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of slice.hpp.

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/impl/slicer.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Checks the arguments of slice(), and returns for each buffer whether slice() binds it.
[[nodiscard]] HEDDLE_INLINE std::vector<bool> touched_by(const Schedule& schedule, Rank rank,
                                                         bool has_progress) {
  expects(+rank < static_cast<std::size_t>(schedule.ranks()), [&] {
    return ErrorInfo{"heddle::slice", "the schedule has no such rank",
                     text("rank ", rank, " of ", schedule.ranks())};
  });
  expects(schedule.domains().empty() || has_progress, [&] {
    return ErrorInfo{"heddle::slice",
                     "the program of ranks that share memory needs their progress counters",
                     text("'", schedule.name(), "' has domains of memory"),
                     "use a transport that shares memory, or pass the progress counters"};
  });
  std::vector<bool> touched(schedule.buffers().size(), false);
  for (std::size_t b = 0; b < touched.size(); ++b) touched[b] = schedule[BufferId{b}].rank == rank;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    const auto uses = schedule.uses(id);
    const Queue& queue = schedule[schedule[id].queue];
    if (queue.local() && queue.from == rank && schedule[id].kind != Kind::group)
      for (const Use& use : uses) touched[+use.buffer] = true;
    if (schedule[id].kind != Kind::move) continue;
    expects(schedule.bytes(uses[0]) == schedule.bytes(uses[1]), [&] {
      return ErrorInfo{"heddle::slice", "the two ends of a move differ in size",
                       text(schedule::action_text(schedule, id), ": ", schedule.bytes(uses[0]),
                            " and ", schedule.bytes(uses[1]), " bytes")};
    });
  }
  return touched;
}

}  // namespace impl

HEDDLE_INLINE Program slice(const Schedule& schedule, Rank rank,
                            impl::FunctionRef<std::byte*(BufferId, const Buffer&)> bind,
                            const std::function<impl::ProgressCounter*(Rank)>& progress) {
  const std::vector<bool> touched = impl::touched_by(schedule, rank, progress != nullptr);
  std::vector<std::byte*> memory(schedule.buffers().size(), nullptr);
  for (std::size_t b = 0; b < memory.size(); ++b)
    if (touched[b]) memory[b] = bind(BufferId{b}, schedule[BufferId{b}]);
  return impl::Slicer(schedule, rank, std::move(memory), progress).run();
}

}  // namespace heddle::inline v0
