// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// flexpipe(): FlexPipe's coordinator. The branches of a model run through one pipeline in opposite
/// directions, and simulation chooses when they interact.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/solver/coordinate.hpp>
#include <heddle/schedule/generator/flexpipe.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::systems {

/// Returns the rules for branches of `ranks` stages each: standard_rules(), and rules by slots in
/// which the branches that run up are a slot ahead of, or behind, the branches that run down. This
/// moves all places at which the branches wait for each other.
/// @throws contract_error if there is no rank.
[[nodiscard]] std::vector<plan::Rule> branch_rules(int ranks);

/// Returns the best orders that coordinate() finds for schedule::flexpipe with
/// branch_rules(), if no rank may keep more activations than `cap` (0: no limit). `activations` are
/// the activations that a forward of each stage keeps, in the unit of the cap; empty: one each.
/// @throws contract_error as schedule::flexpipe and ListScheduler do.
template <Costs C>
[[nodiscard]] plan::Coordinated<typename C::Time> flexpipe(
    const schedule::FlexpipeOptions& branches, const C& costs, std::int64_t cap = 0,
    std::vector<std::int64_t> activations = {}) {
  const Orders orders = schedule::flexpipe(branches.ranks, branches.microbatches, branches.branches,
                                           branches.interactions);
  return plan::coordinate(
      orders, costs, {cap, std::move(activations), branch_rules(branches.ranks), branches.sizes});
}
/// Searches under costs that are written as a braced list: `flexpipe({.ranks = 4, .microbatches =
/// 8},
/// {.forward = 1, .backward = 2})`.
[[nodiscard]] plan::Coordinated<Seconds> flexpipe(const schedule::FlexpipeOptions& branches,
                                                  const StageCosts& costs, std::int64_t cap = 0,
                                                  std::vector<std::int64_t> activations = {});

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/flexpipe/flexpipe.ipp>
#endif
