// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// EdgePrices: the times of messages between two stages, for planners that price many plans.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/internal/stage_table.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>

namespace heddle::inline v0::systems::impl {

/// The times of the messages of a microbatch at a cut.
struct EdgePrice {
  Seconds forward = 0;   ///< activations
  Seconds backward = 0;  ///< their gradients
};

/// The times of messages at every cut of a model. They are those of stage_prices(), for a model of
/// two layers, so that no other layer is priced again.
class EdgePrices {
 public:
  EdgePrices(const plan::PlanProblem& problem, std::int64_t samples);

  /// Returns the times at the cut before layer `layer`, from 1 on.
  [[nodiscard]] EdgePrice price(int layer, const plan::impl::Replicas& from,
                                const plan::impl::Replicas& to) const;

 private:
  struct Edge {
    Edge(plan::Profile model, const Machine& machine, plan::PlanOptions options)
        : profile(std::move(model)), problem(profile, machine, std::move(options)) {}
    plan::Profile profile;
    plan::PlanProblem problem;
  };
  std::vector<std::unique_ptr<const Edge>> m_edges;  ///< by cut, from the one before layer 1
};

}  // namespace heddle::inline v0::systems::impl

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/dapple/impl/edge_prices.ipp>
#endif
