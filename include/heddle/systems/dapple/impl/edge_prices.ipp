// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of edge_prices.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/systems/dapple/impl/edge_prices.hpp>

namespace heddle::inline v0::systems::impl {

HEDDLE_INLINE EdgePrices::EdgePrices(const plan::PlanProblem& problem, std::int64_t samples) {
  const Machine& machine = problem.machine();
  plan::ProfiledLayer layer{.name = "end of a stage"};
  for (std::size_t r = 0; r < static_cast<std::size_t>(machine.ranks()); ++r) {
    const std::string& device = machine.device(Rank{r}).name;
    if (std::ranges::find(layer.measured, device, &plan::LayerMeasurement::device) ==
        layer.measured.end())
      layer.measured.push_back({.device = device, .times = {.forward = 1}});
  }
  for (int cut = 1; cut < problem.layers(); ++cut) {
    layer.output = problem.profile().input_of(cut);
    m_edges.push_back(std::make_unique<Edge>(
        plan::Profile{.model = problem.profile().model, .layers = {layer, layer}}, machine,
        plan::PlanOptions{.batch = samples, .microbatches = {1}}));
  }
}

HEDDLE_INLINE EdgePrice EdgePrices::price(int layer, const plan::impl::Replicas& from,
                                          const plan::impl::Replicas& to) const {
  Plan plan;
  plan.stages.push_back(plan::impl::StageTable::stage({0, 1}, from));
  plan.stages.push_back(plan::impl::StageTable::stage({1, 2}, to));
  const plan::StagePrice price =
      plan::stage_prices(plan, m_edges[static_cast<std::size_t>(layer) - 1]->problem).front();
  return {price.send_forward, price.send_backward};
}

}  // namespace heddle::inline v0::systems::impl
