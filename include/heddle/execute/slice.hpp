// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// slice(): from a Schedule to the Program of one rank, the only lowering.

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/impl/slicer.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// The part of `schedule` that takes place on `rank`, with memory bound: `bind(id, buffer)` returns
/// where a buffer begins, and is called once for each buffer of this rank, and for each of another
/// rank that its actions touch. Memory may be null where nothing dereferences it (weights that a
/// handler holds itself, or buffers of no bytes). Persistent memory of another rank is not touched
/// before that rank has begun the step: until then it may still be filled. `progress(rank)` returns
/// the counter of a rank whose memory this one shares; it is not called where the schedule has no
/// such ranks.
///
/// @throws contract_error for a rank outside the schedule, a move whose two ranges differ in size,
/// or ranks that share memory without a `progress`.
template <class Bind>
requires std::is_invocable_r_v<std::byte*, Bind&, BufferId, const Buffer&>
[[nodiscard]] Program slice(const Schedule& schedule, Rank rank, Bind&& bind,
                            const std::function<ProgressCounter*(Rank)>& progress = {}) {
  expects(+rank < static_cast<std::size_t>(schedule.ranks()), [&] {
    return Complaint{"heddle::slice", "the schedule has no such rank",
                     text("rank ", rank, " of ", schedule.ranks())};
  });
  expects(schedule.domains().empty() || progress != nullptr, [&] {
    return Complaint{
        "heddle::slice", "ranks that share memory see each other's progress",
        text("'", schedule.name(), "' has domains of memory"),
        "run it over a transport that shares memory, or say where progress is counted"};
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
      return Complaint{"heddle::slice", "the two ends of a move differ in size",
                       text(action_text(schedule, id), ": ", schedule.bytes(uses[0]), " and ",
                            schedule.bytes(uses[1]), " bytes")};
    });
  }
  std::vector<std::byte*> memory(schedule.buffers().size(), nullptr);
  for (std::size_t b = 0; b < memory.size(); ++b)
    if (touched[b]) memory[b] = bind(BufferId{b}, schedule[BufferId{b}]);
  return impl::Slicer(schedule, rank, std::move(memory), progress).run();
}

}  // namespace heddle::inline v0
