// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AxisCosts: the times of collectives along one axis of a mesh of ranks, by latency and bandwidth.

#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/hap/sharded_program.hpp>

namespace heddle::inline v0::systems {

/// The prices of collectives among p ranks, in all groups of an axis at once. A tensor has n bytes
/// if it is whole; a time is in seconds.
///
/// | change of the form | collective | time |
/// |---|---|---|
/// | partial to replicated | all-reduce | start + 2 (p - 1) latency + 2 (p - 1) / p * n * ring |
/// | partial to sharded | reduce-scatter | start + (p - 1) latency + (p - 1) / p * n * ring |
/// | sharded to replicated | all-gather | start + (p - 1) latency + (p - 1) / p * n * ring |
/// | sharded to sharded by another dimension | all-to-all | start + (p - 1) latency + n / p^2 *
/// pairs | | replicated to sharded | none: each rank keeps its block | 0 |
///
/// The first three send around a ring. There are no other changes.
struct AxisCosts {
  int ways = 1;         ///< p, the ranks of a group
  Seconds start = 0;    ///< start-up time of each collective, such as the launch of a kernel
  Seconds latency = 0;  ///< the greatest latency between two ranks of a group
  Seconds ring = 0;     ///< per byte that each rank sends to the next one of its ring
  Seconds pairs = 0;    ///< per byte of each message, if each rank sends one to each other rank

  /// Checks the members and a number of bytes on behalf of the function `where`.
  /// @throws contract_error if there is no rank, or if a time or `n` is negative, infinite or not a
  ///         number. So do the functions below.
  void expect_valid(const char* where, double n) const;
  /// Returns the time of an all-reduce of n bytes. One rank takes no time.
  [[nodiscard]] Seconds all_reduce(double n) const;
  /// Returns the time of an all-gather to n bytes, which is that of a reduce-scatter of n bytes.
  [[nodiscard]] Seconds all_gather(double n) const;
  /// Returns the time of an all-to-all of a tensor of n bytes in all.
  [[nodiscard]] Seconds all_to_all(double n) const;
  /// Returns the time to change the form of a tensor of n bytes, infinity if there is no such
  /// change.
  [[nodiscard]] Seconds change(const TensorForm& from, const TensorForm& to, double n) const;
};

/// Returns the prices of an axis whose groups all communicate at once. `ring` is the time per byte
/// of the busiest link, port or line if each rank sends to the next one of its group; `pairs` that
/// of the busiest rank, port or line if each rank sends to every other one. So a port that k
/// messages pass takes k times as long.
/// @param machine  the links and ports
/// @param groups   the ranks of each group, in the order of its ring; all of one size
/// @param start    seconds that each collective takes before its first message
/// @throws contract_error if there is no group, if the groups differ in size, if a group names a
///         rank that the machine does not have or one twice, or if `start` is negative, infinite or
///         not a number.
[[nodiscard]] AxisCosts axis_costs(const Machine& machine,
                                   const std::vector<std::vector<Rank>>& groups, Seconds start = 0);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/hap/axis_costs.ipp>
#endif
