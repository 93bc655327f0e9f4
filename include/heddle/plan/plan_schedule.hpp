// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// plan::schedule(): the Schedule that a Plan describes. plan::costs(): the costs of its actions by
/// a Profile and a Machine.

#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

/// The options of schedule().
struct ScheduleOptions {
  /// The ranks of the Schedule. 0: up to the highest rank of the plan.
  int ranks = 0;
  /// The type of the elements of all buffers.
  Scalar type = Scalar::f32;
};

/// Returns the Schedule of a plan, with the plan's ranks. Its orders are those of the schedule in
/// the catalogue. Groups of a stage divide the samples of each microbatch (see StageShares); group
/// i has the samples behind those of the groups before it. The ranks of a group of tensor degree t
/// divide the rows between the layers evenly, as a TensorLine does, so that each has 1/t of the
/// group's samples there; samples_of() an action is this number. If the stages have a sequence
/// degree q, which must be the same for all, each rank has 1/q of every sequence and exchanges
/// messages only with the ranks of other stages that have the same part. Buffers have the bytes of
/// the profile, for each sample rounded up to whole elements. Stages that recompute run their
/// forwards again, see recompute(). Messages between two stages have the format of Plan::casts, see
/// cast_at_cut(). Ranks that the plan leaves out have no actions.
///
/// If a stage has several groups, a group action before its update sums the gradients of the ranks
/// that hold the same part of its weights. Leave it to the MPI library, expand() it, or divide it
/// and the update over the ranks with shard_updates(). `Plan::sharding` does not change the
/// Schedule: the code that performs the sum and the update divides parameters and optimiser.
///
/// The stages of the Schedule are those of in_buckets(plan). With several buckets, sums and updates
/// stand behind the last backward of their bucket, see eager_updates().
///
/// @throws contract_error if the plan or an option is invalid, if the schedule does not have one
///         stage on each rank, or updates several times in a step although ranks of a stage divide
///         its samples, if stages have different sequence degrees, if the samples of a
///         group are no multiple of its tensor degree, or as cast_at_cut().
[[nodiscard]] Schedule schedule(const Plan& plan, const Profile& profile,
                                const ScheduleOptions& options = {});

/// Costs of the Schedule of a plan, by rank: passes and updates take the time that the profile has
/// for the layers and samples of the rank on its device. Ranks of a group that divide layers wait
/// for each other, so their passes take the time of the slowest one; so do ranks that divide
/// sequences, of which each computes an equal part of the samples' time. Passes have the exchange
/// of keys and of sharded weights in them, a group action takes the exchange of gradients and
/// weights a step, and a sharded update is divided; see stage_prices(). The machine's links price
/// the moves. Other actions, such as combines and casts, take no time.
class RankCosts {
 public:
  using Time = Seconds;  ///< the type of costs

  /// Constructs the costs. @throws contract_error if the plan or the profile is invalid, if the
  /// plan has ranks that the machine does not have, or degrees that schedule() cannot express, or
  /// if a device or a tensor degree was not measured.
  /// `type` is that of the weights, of which shardings may encode messages.
  RankCosts(const Plan& plan, const Profile& profile, Machine machine, Scalar type = Scalar::f32);

  /// Returns the Machine whose links price the moves.
  [[nodiscard]] const Machine& machine() const noexcept { return m_machine; }
  /// Returns the times of a rank's share of a microbatch. They are 0 if the plan leaves it out.
  /// @throws contract_error if there is no such rank.
  [[nodiscard]] const LayerTimes& times(Rank rank) const;
  /// Returns the cost of an action that is not a move.
  /// @throws contract_error if the rank has no such stage.
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const;
  /// Returns the cost of a move, by the link between its two ranks.
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const;
  /// Returns the time for which a move keeps a shared resource.
  [[nodiscard]] Seconds occupancy(const Schedule& schedule, ActionId id,
                                  const Shared& shared) const;

 private:
  Machine m_machine;
  /// The times of a rank for its stages in the Schedule.
  struct StageTimes {
    std::size_t first = 0;               ///< the first of these stages
    std::vector<LayerTimes> times = {};  ///< the times, one for each stage
  };
  std::vector<LayerTimes> m_times;   ///< by rank, for all of its stages
  std::vector<StageTimes> m_stages;  ///< by rank
  std::vector<Seconds> m_sums;       ///< by stage of the Schedule: the sum of gradients
};

/// Returns the costs of schedule(plan, profile) on a machine, for simulate().
///
/// If backwards are not split, and no two pairs of ranks share a port or line, simulate() with them
/// is never slower than simulated_step(). Both are equal if each stage has one rank, no stage
/// recomputes and links have no latency, also with split backwards. simulated_step() takes more
/// time because
///
/// - all ranks of a stage take the time of the slowest one, and wait for the whole microbatch
///   instead of the samples that they need;
/// - a rank sends its messages to several ranks of the next stage one after another;
/// - a message occupies its link during its latency as well;
/// - the second forward of a stage that recomputes waits for the gradient.
///
/// But a message with samples of several granules is cast granule by granule (see StageShares),
/// which may take more scales and so more bytes. So may samples whose bytes in the profile are not
/// whole elements.
///
/// @throws contract_error as RankCosts.
[[nodiscard]] RankCosts costs(const Plan& plan, const Profile& profile, const Machine& machine,
                              Scalar type = Scalar::f32);

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/plan_schedule.ipp>
#endif
