// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// plan_error(): how wrong a prediction was, for the step, the passes of each stage, the messages
/// of each pair of ranks and the bytes of each rank.

#include <cstddef>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0::trace {

/// The result of plan_error().
struct PlanError {
  /// The relative errors of several actions: measured / predicted - 1. Actions without a predicted
  /// time have no relative error and do not count.
  struct Spread {
    std::size_t actions = 0;     ///< actions that count
    double median = 0;           ///< mean of the middle two of an even number; 0 if none count
    double worst = 0;            ///< the error of the greatest size, with its sign; 0 if none count
    ActionId worst_action = {};  ///< the first action that has it
  };

  /// The errors of the work of a stage: its passes and updates on all of its ranks, each from its
  /// start to its end.
  struct StageError {
    Stage stage;    ///< the stage
    Spread errors;  ///< the spread over its work
  };

  /// The errors of the messages from one rank to another, each from its start to its arrival. A
  /// measured message arrives when the receiver sees it. A receiver that computes does not look, so
  /// early messages seem late, but delay nothing.
  struct MoveError {
    Rank from;      ///< the sender
    Rank to;        ///< the receiver
    Spread errors;  ///< the spread over its messages
  };

  /// The bytes of a rank, as predicted and as measured.
  struct RankBytes {
    Rank rank;            ///< the rank
    Bytes predicted = 0;  ///< predicted bytes, for example of plan::plan_memory()
    Bytes measured = 0;   ///< measured bytes

    /// Returns measured / predicted - 1, or 0 if no bytes were predicted.
    [[nodiscard]] double error() const {
      return predicted > 0 ? static_cast<double>(measured) / static_cast<double>(predicted) - 1 : 0;
    }
  };

  std::string name;                     ///< the name of the schedule
  Seconds predicted = 0;                ///< the makespan of the predicted timeline
  Seconds measured = 0;                 ///< the makespan of the measured timeline
  std::vector<StageError> stages = {};  ///< by stage
  std::vector<MoveError> moves = {};    ///< by sender and receiver
  std::vector<RankBytes> bytes = {};    ///< by rank; empty if no bytes were given

  /// Returns the relative error of the step, or 0 if no time was predicted.
  [[nodiscard]] double step() const { return predicted > 0 ? measured / predicted - 1 : 0; }
};

/// Compares a predicted and a measured timeline, action by action.
/// @throws contract_error if a timeline does not fit its schedule, if a time is not finite, or if
///         the schedules have different actions. The error names the first one that differs.
[[nodiscard]] PlanError plan_error(const Timeline& predicted, const Timeline& measured);

/// Compares two timelines, and the bytes that each rank was predicted to need with those that it
/// needed. @throws contract_error as the function without bytes, and if there are not as many
/// numbers of bytes as the schedule has ranks.
[[nodiscard]] PlanError plan_error(const Timeline& predicted, const Timeline& measured,
                                   std::span<const Bytes> predicted_bytes,
                                   std::span<const Bytes> measured_bytes);

/// Compares a measured timeline with what was predicted for its plan (Plan::prediction): the step,
/// and the bytes of each rank if `measured_bytes` has them. A rank without predicted bytes needs
/// none. The result has no stages and no moves.
/// @throws contract_error if a time is not finite, or if there are measured bytes, but not as many
///         as the schedule has ranks.
[[nodiscard]] PlanError plan_error(const PlanPrediction& predicted, const Timeline& measured,
                                   std::span<const Bytes> measured_bytes = {});

/// Returns the errors as a table: a line for the step, one for each stage, one for each pair of
/// ranks and one for the bytes of each rank. Parts that were not compared are left out.
[[nodiscard]] std::string to_string(const PlanError& error);

/// Prints to_string(error).
std::ostream& operator<<(std::ostream& out, const PlanError& error);

}  // namespace heddle::inline v0::trace

#if HEDDLE_DEFINES_TRACE
#include <heddle/trace/plan_error.ipp>
#endif
