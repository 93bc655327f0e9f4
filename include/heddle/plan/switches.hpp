// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// plan_switches(): which dimension of a tensor is sharded in each stage, so that the fewest
/// switches are needed (dynamic sequence parallelism, DSP).

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::plan {

/// A switch of the sharded dimension: one all-to-all, a redistribution from `Shard{from}` to
/// `Shard{to}`. Its backward is the switch from `to` to `from`.
struct DimensionSwitch {
  std::size_t before = 0;  ///< the stage that it precedes; the number of stages: after the last one
  std::size_t from = 0;    ///< the dimension that is sharded until then
  std::size_t to = 0;      ///< the dimension that is sharded from then on
  friend bool operator==(const DimensionSwitch&, const DimensionSwitch&) = default;
  /// Prints "before stage 1 from 2 to 1".
  friend std::ostream& operator<<(std::ostream& out, const DimensionSwitch& change);
};

/// Options of plan_switches().
struct SwitchOptions {
  /// True if the stages repeat: after the last one the dimension of the first one is sharded again,
  /// and a switch that this needs is counted. Excludes `first` and `last`.
  bool cyclic = false;
  /// The dimension that is sharded before the first stage; none: the plan selects it.
  std::optional<std::size_t> first = {};
  /// The dimension that is sharded after the last stage; none: the plan selects it.
  std::optional<std::size_t> last = {};
  /// The cost of a switch between the i-th and the j-th of the dimensions, at
  /// `i * dimensions + j`, in any unit. Infinity excludes a switch. Empty: each switch costs 1.
  std::vector<double> costs = {};
};

/// The dimension that is sharded in each stage, and the switches that this needs.
struct SwitchPlan {
  std::vector<std::size_t> sharded;       ///< by stage
  std::vector<DimensionSwitch> switches;  ///< in the order of the stages
  double cost = 0;                        ///< the sum over the switches
  /// Prints "2 switches: before stage 1 from 2 to 1, before stage 2 from 1 to 2".
  friend std::ostream& operator<<(std::ostream& out, const SwitchPlan& plan);
};

/// Returns a plan of the least cost for stages that each mix elements along one dimension of a
/// tensor: in no stage the dimension that it mixes is sharded, so that every stage computes without
/// communication.
///
/// `dimensions` are those of which one is sharded, such as {1, 2} for the time and the space of a
/// tensor (batch, time, space, channels). `mixed` is the dimension that each stage mixes. A stage
/// that mixes another dimension, such as the channels, allows any of them. The plan is exact: a
/// dynamic programme over stages and dimensions, K^2 steps a stage (K^3 if cyclic). Among plans of
/// equal cost it switches as late as possible, to the first of `dimensions` that is possible.
///
/// If each of K >= 2 stages mixes another dimension, one pass needs 1 switch and a cyclic return 2.
/// Two cycles with return need 3 if K is 3 or 4, and 4 if K is 2.
///
/// Source: X. Zhao et al., "DSP: Dynamic Sequence Parallelism for Multi-Dimensional Transformers",
/// 2024, which switches before every stage.
/// @throws contract_error for no dimensions, a dimension twice, a `first` or `last` that is none of
///         them or stands beside `cyclic`, and costs that are negative, NaN or of another number.
///         infeasible if no plan has a finite cost; it names the first stage that cannot be
///         reached.
[[nodiscard]] SwitchPlan plan_switches(const std::vector<std::size_t>& dimensions,
                                       const std::vector<std::size_t>& mixed,
                                       const SwitchOptions& options = {});

}  // namespace heddle::inline v0::plan

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/switches.ipp>
#endif
