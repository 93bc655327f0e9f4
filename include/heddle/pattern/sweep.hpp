// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The options and the result of fixed_point().

#include <cstdint>
#include <vector>

#include <heddle/execute/execute_options.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>

namespace heddle::inline v0 {

class Trail;

namespace pattern {

/// How a sweep computes the values. "The last sweep" is the start value before the first sweep.
enum class Sweep : std::uint8_t {
  gauss_seidel,         ///< one after another: one sweep, as a plain loop
  jacobi,               ///< all at once, from the values of the last sweep
  jacobi_gauss_seidel,  ///< the blocks at once, and one after another inside a block
  gauss_seidel_jacobi,  ///< the blocks one after another, and all at once inside a block
};

/// The options of fixed_point(), on threads and over ranks, of which each is one worker.
struct FixedPointOptions {
  Sweep sweep = Sweep::jacobi;  ///< how values are computed
  int threads = 1;              ///< number of threads, at least 1; 1 over ranks
  /// Values of a block, for the two sweeps that have blocks; 0: as many blocks as workers.
  int block = 0;
  /// A sweep that changes no value by more than this is the last one. 0: the result is that of a
  /// plain loop, bit for bit.
  double tolerance = 0;
  int most_sweeps = 0;  ///< sweeps after which the call returns what it has, or 0 for no limit
  /// Over ranks: how many values before its own an equation reads at most. A rank gets only so many
  /// from the ranks before it in each sweep. 0: all.
  int reach = 0;
  /// Over ranks: the age of the values of other ranks, in sweeps. With age a, sweep k + 1 begins
  /// when the values that other ranks have computed in sweep k - a are there, so that their
  /// messages have a sweeps of time. Ranks keep their shares then. Needs a Sweep without windows:
  /// jacobi or jacobi_gauss_seidel.
  schedule::Staleness staleness = {};
  /// If set, gets an event for the part of each worker in each sweep. The item is the sweep. Over
  /// ranks, the times are in rank 0's steady_seconds(), and all ranks set it or none.
  Trail* trail = nullptr;
  ExecuteOptions wait = {};  ///< over ranks: how a rank waits for the others
};

/// The result of fixed_point().
template <class Value>
struct FixedPoint {
  std::vector<Value> values;       ///< by equation
  int sweeps = 0;                  ///< number of sweeps; with blocks in turn, those of all blocks
  std::int64_t evaluations = 0;    ///< number of equations that all threads computed
  std::int64_t longest_share = 0;  ///< sum over the sweeps of the most that one thread computed
  int exact = 0;                   ///< so many values from the first on are those of a plain loop
  bool converged = false;          ///< false: most_sweeps was reached
  std::int64_t received = 0;       ///< values that this rank got from others between the sweeps
};

}  // namespace pattern

}  // namespace heddle::inline v0
