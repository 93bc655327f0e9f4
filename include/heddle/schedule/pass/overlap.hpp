// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// overlap(): does the work of an action part by part, in the order in which a collective beside it
/// needs or delivers the parts. T3 does this with counters in hardware; here it follows from the
/// dependencies between parts.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// The order in which overlap() computes the parts of an action.
enum class PartOrder : std::uint8_t {
  as_needed,  ///< in the order in which the rest of the list needs them or delivers their inputs
  ascending,  ///< part 0 first, on every rank
};

namespace impl {

/// Returns the result of overlap() for the actions `chosen`, which are in list order.
[[nodiscard]] Schedule overlap_parts(const Schedule& schedule, const std::vector<ActionId>& chosen,
                                     PartOrder order);

}  // namespace impl

/// Returns `schedule` with the actions for which `chosen(id)` holds divided into pieces, one for
/// each part that the action writes. The pieces take the place of the action in its queue. A piece
/// uses one part of every buffer of which the action uses as many parts as it writes, and all of
/// the other buffers that the action reads. For example, a matrix product whose rows are parts
/// reads its rows of one operand and all of the other. The number of the part becomes the item of
/// the piece, as it is the item of a message.
///
/// The pieces of a producer sink in the list, each to the first action that needs its part. If the
/// inputs of a consumer arrive in several messages, its pieces rise, each to the place where its
/// rank would wait for a later message. With PartOrder::as_needed a rank first computes the part
/// that is sent first, or the part whose inputs arrive first. Every rank therefore begins with
/// another part, as in T3 (Pati et al., ASPLOS 2024): before a ring's reduce-scatter rank r begins
/// with block r - 1. No other action moves. Every value is computed by the same actions in the same
/// order as before, also in sums.
///
/// Let G be the time of a product in P parts, and R the time of a ring's reduce-scatter after it or
/// all-gather before it, over P ranks. The two take max(G, G/P + R) instead of G + R. With parts in
/// ascending order they still take G + R, because rank 0 begins the ring with its last part. The
/// messages stay the same.
///
/// @throws contract_error if a chosen action is not local work, is fused, or writes different
///         numbers of parts of its buffers, and if the pieces of chosen actions depend on one
///         another.
template <std::predicate<ActionId> Chosen>
[[nodiscard]] Schedule overlap(const Schedule& schedule, Chosen&& chosen,
                               PartOrder order = PartOrder::as_needed) {
  std::vector<ActionId> actions;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (chosen(ActionId{i})) actions.push_back(ActionId{i});
  return impl::overlap_parts(schedule, actions, order);
}

/// Returns the result of the overload above for all of the model's work that writes several parts.
[[nodiscard]] Schedule overlap(const Schedule& schedule, PartOrder order = PartOrder::as_needed);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/overlap.ipp>
#endif
