// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// propose_by_tpe(): the next point of a search from the trials so far, for searches that evaluate
/// several points at a time. Source: Bergstra and others, "Algorithms for hyper-parameter
/// optimization", 2011.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/solver/tune.hpp>

namespace heddle::inline v0::systems {

/// The options of propose_by_tpe().
struct TpeOptions {
  std::size_t startup = 10;     ///< trials before which points are random
  double good = 0.25;           ///< the share of trials that count as good, in (0, 1)
  std::size_t candidates = 24;  ///< points from which the proposal is chosen
  std::uint64_t seed = 0;       ///< seed of all that is drawn
};

/// Returns a point that good trials make likely and the others unlikely (a tree-structured Parzen
/// estimator on categories). The trials with the least costs are good; infeasible ones never are.
/// On each axis, a value has the probability (1 + trials with it) / (values + trials), among the
/// good ones and among the others. Candidates are drawn from the first, and the one with the
/// largest ratio of both is returned. The result depends only on the arguments: `number`, the
/// number of the proposal, makes proposals from equal trials differ.
/// @throws contract_error if there are no axes, an axis has no values, a trial has another number
///         of axes or a value that its axis does not have, or an option is out of range.
[[nodiscard]] plan::TunePoint propose_by_tpe(const std::vector<plan::TuneAxis>& axes,
                                             std::span<const plan::TuneTrial> trials,
                                             std::uint64_t number, const TpeOptions& options = {});

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/aiperf/tpe.ipp>
#endif
