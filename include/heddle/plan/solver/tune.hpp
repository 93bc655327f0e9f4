// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// tune(): the best point of a grid that is too large to try all of it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::plan {

/// An axis of the grid: the values 0 .. values - 1 of one setting.
struct TuneAxis {
  std::string name;    ///< shown to people
  std::size_t values;  ///< number of values, at least 1
  /// If true, values that are near each other have similar costs, as for a number of ranks. If
  /// false, the values are categories, each as far from all others.
  bool ordered = true;
};

/// A point of the grid: the number of a value on each axis.
using TunePoint = std::vector<std::size_t>;

/// Returns the cost of a point, or nothing if the point is infeasible.
using TuneCost = std::function<std::optional<double>(const TunePoint&)>;

/// The options of tune().
struct TuneOptions {
  std::size_t evaluations = 50;  ///< points to try at most
  std::uint64_t seed = 0;        ///< seed of the points that are drawn
};

/// A point that tune() tried.
struct TuneTrial {
  TunePoint point;             ///< the point
  std::optional<double> cost;  ///< its cost, or nothing if it is infeasible
};

/// The result of tune().
struct Tuned {
  std::optional<TuneTrial> best;  ///< the point of least cost; nothing: all were infeasible
  std::vector<TuneTrial> trials;  ///< in the order in which they were tried, no point twice

  /// Returns the number of infeasible points that were tried.
  [[nodiscard]] std::size_t infeasible() const;
};

/// Searches a grid for the point of least cost with a limited number of evaluations. It tries
/// random points first. After that, every other trial is the neighbour of the best point, and every
/// fourth trial the point of the whole grid, that a surrogate predicts to be best. The remaining
/// fourth are random points, so that no bad beginning misleads the whole search. The surrogate is
/// the mean of the logarithms of the costs that were tried, weighted by the inverse fourth power of
/// their distance (Shepard, "A two-dimensional interpolation function for irregularly-spaced data",
/// 1968), less a bonus for the distance to the nearest trial. An infeasible point counts as worse
/// than the worst cost. If the grid has more than 32768 points, 4096 random ones stand for it in
/// each step. Equal arguments give equal results.
///
/// @throws contract_error if there are no axes, an axis has no values, no evaluation is allowed, or
///         if a cost is not positive and finite.
[[nodiscard]] Tuned tune(const std::vector<TuneAxis>& axes, const TuneCost& cost,
                         const TuneOptions& options = {});

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN_SOLVER
#include <heddle/plan/solver/tune.ipp>
#endif
