// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// tie_parameters(): sums the gradients of parameters that two stages have in common, such as an
/// embedding that is also the matrix of the head.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// One parameter of a model that has two copies: a range of bytes among the parameters of each of
/// two stages, or two ranges of one stage.
struct TiedRanges {
  Stage stage = {};        ///< the stage of one copy
  Bytes offset = 0;        ///< where this copy begins among the parameters of its stage
  Stage other = {};        ///< the stage of the other copy
  Bytes other_offset = 0;  ///< where the other copy begins
  Bytes bytes = 0;         ///< the size of each copy
};

/// The part of a stage's gradients that a rank updates, if the stages sum their gradients over
/// ranks themselves, as ParameterShards does.
struct UpdateShare {
  Rank rank = {};    ///< the rank
  Stage stage = {};  ///< the stage
  Bytes first = 0;   ///< where the part begins among the parameters of the stage
  Bytes bytes = 0;   ///< the size of the part
  Bytes at = 0;      ///< where the part begins in this rank's buffer of gradients
};

namespace schedule {

/// Returns `schedule` in which both copies of every tied parameter get the sum of their gradients
/// before they are updated. Behind all sums over replicas and before the first update of a tied
/// stage, each updating rank receives the other copy's gradient and adds it to its own. Both copies
/// therefore get the same bits, and stay equal if they begin equal and have the same update. A copy
/// on the same rank is copied instead of sent.
///
/// If ranks divide an update, as after shard_updates(), a rank receives only the part that it
/// updates. If the stages sum and divide gradients themselves, `shares` has the part of each rank.
/// A group action of one rank then stands for the sum by its stage, before the copies are sent. It
/// is in the queue of the updates, so replicas make their sums in one order. The updates of all
/// tied stages follow each other. The function is the last pass, because it cuts gradients into
/// parts of different sizes. A schedule without updates does not change.
///
/// @throws infeasible if the schedule is asynchronous: if it updates a tied stage more than once in
///         a step, keeps several versions of its weights, or computes with them after the update.
/// @throws contract_error if a range is not among the gradients of its stage, if it is no whole
///         elements, or if two ranges overlap.
[[nodiscard]] Schedule tie_parameters(const Schedule& schedule, const std::vector<TiedRanges>& ties,
                                      const std::vector<UpdateShare>& shares = {});

}  // namespace schedule

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/tie_parameters.ipp>
#endif
