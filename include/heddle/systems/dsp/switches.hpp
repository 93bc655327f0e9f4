// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// plan_switches(): chooses which dimension of a tensor is sharded in each stage, so that the
/// number of switches is minimal (dynamic sequence parallelism, DSP).

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::systems {

/// A change of the sharded dimension by one all-to-all, which is a redistribution from
/// `Shard{from}` to `Shard{to}`. The backward pass redistributes from `to` to `from`.
struct DimensionSwitch {
  std::size_t before = 0;  ///< the stage after the switch; the number of stages: after the last one
  std::size_t from = 0;    ///< the dimension that is sharded before the switch
  std::size_t to = 0;      ///< the dimension that is sharded after the switch
  friend bool operator==(const DimensionSwitch&, const DimensionSwitch&) = default;
  /// Prints "before stage 1 from 2 to 1".
  friend std::ostream& operator<<(std::ostream& out, const DimensionSwitch& change);
};

/// Options of plan_switches().
struct SwitchOptions {
  /// True if the stages repeat. After the last stage the dimension of the first one is sharded
  /// again, and the switch that this may need is counted. `first` and `last` cannot be used then.
  bool cyclic = false;
  /// The dimension that is sharded before the first stage. If it is not set, the plan selects it.
  std::optional<std::size_t> first = {};
  /// The dimension that is sharded after the last stage. If it is not set, the plan selects it.
  std::optional<std::size_t> last = {};
  /// The cost of a switch between the i-th and the j-th of the dimensions, at
  /// `i * dimensions + j`, in any unit. Infinity excludes a switch. Empty: each switch costs 1.
  std::vector<double> costs = {};
};

/// The sharded dimension of each stage, and the necessary switches.
struct SwitchPlan {
  std::vector<std::size_t> sharded;       ///< the sharded dimension, by stage
  std::vector<DimensionSwitch> switches;  ///< in the order of the stages
  double cost = 0;                        ///< the sum of the costs of the switches
  /// Prints "2 switches: before stage 1 from 2 to 1, before stage 2 from 1 to 2".
  friend std::ostream& operator<<(std::ostream& out, const SwitchPlan& plan);
};

/// Returns a plan of the least cost for stages that each mix elements along one dimension of a
/// tensor. No stage has its mixed dimension sharded, so every stage computes without communication.
///
/// `dimensions` lists the dimensions that may be sharded, such as {1, 2} for the time and the space
/// of a tensor (batch, time, space, channels). `mixed` is the dimension that each stage mixes. If
/// it is another dimension, such as the channels, any dimension of the list may be sharded. The
/// plan is optimal: it comes from a dynamic programme over stages and dimensions, with K^2 steps
/// per stage for K dimensions (K^3 if cyclic). Among plans of equal cost it switches as late as
/// possible, to the first possible one of `dimensions`.
///
/// If there are K >= 2 stages and each mixes another dimension, one pass needs 1 switch, and a
/// cyclic one needs 2. Two cycles need 3 if K is 3 or 4, and 4 if K is 2.
///
/// Source: X. Zhao et al., "DSP: Dynamic Sequence Parallelism for Multi-Dimensional Transformers",
/// 2024, which switches before every stage.
/// @throws contract_error if there are no dimensions, if one is repeated, if `first` or `last` is
///         not one of them or is combined with `cyclic`, or if the costs are negative, NaN or of
///         the wrong number.
/// @throws infeasible if no plan has a finite cost. The error names the first stage that cannot be
///         reached.
[[nodiscard]] SwitchPlan plan_switches(const std::vector<std::size_t>& dimensions,
                                       const std::vector<std::size_t>& mixed,
                                       const SwitchOptions& options = {});

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/dsp/switches.ipp>
#endif
