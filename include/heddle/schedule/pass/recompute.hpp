// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// recompute(): saves memory at the cost of time. The inputs of a backward pass are not kept from
/// the forward pass but computed again right before the backward pass.

#include <concepts>
#include <cstddef>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The default selection of recompute(): all stages.
struct EveryStage {
  constexpr bool operator()(Stage) const noexcept { return true; }
};

/// Returns the result of recompute(). `chosen` says of each action whether it is a forward action
/// of a selected stage.
[[nodiscard]] Schedule recompute_forwards(const Schedule& schedule,
                                          const std::vector<bool>& chosen);

}  // namespace impl

namespace schedule {

/// Returns `schedule` with a second run of every forward action of the stages for which
/// `select(stage)` holds. The second run has flag::again and stands right before the first half of
/// the backward pass. It computes the same as the first run, so handlers need no change. The values
/// that the first run saved are dropped at once.
///
/// A rank that had k live activations has one (and one more between I and W). Its step is longer by
/// the forward actions that run again.
///
/// Source: Chen et al., "Training deep nets with sublinear memory cost" (2016), section 3; here
/// with one segment per stage.
/// @throws infeasible if an action between the two runs has overwritten the inputs of the forward.
template <std::predicate<Stage> Select = heddle::impl::EveryStage>
[[nodiscard]] Schedule recompute(const Schedule& schedule, Select select = {}) {
  std::vector<bool> chosen(schedule.size(), false);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (action.kind == Kind::forward && select(action.stage)) chosen[i] = true;
  }
  return heddle::impl::recompute_forwards(schedule, chosen);
}

}  // namespace schedule

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/recompute.ipp>
#endif
