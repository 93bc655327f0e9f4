// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A described Frontier and the GPTs that are planned for it.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::test {

/// Nodes of 8 dies with 64 GB each, which share four network cards of 25 GB/s.
[[nodiscard]] inline Machine frontier(int ranks) {
  return Machine::hierarchical(
      std::vector<Device>(static_cast<std::size_t>(ranks),
                          {.name = "gcd", .memories = {{"HBM", Bytes{64'000'000'000}}}}),
      {{.name = "node", .ranks = 8, .link = {2e-6, 75e9}, .ports = {100e9, 100e9}},
       {.name = "machine", .ranks = ranks, .link = {5e-6, 25e9}}});
}

/// A GPT with sequences of 2048 tokens in 16 bits. The peak is 191.5 Tflop/s, of which products
/// reach half, less for one sequence. A layer has two sums over its tensor ranks in each direction:
/// at 200 GB/s within a package, 75 GB/s within a node and 12.5 GB/s beyond it.
[[nodiscard]] inline heddle::plan::Profile gpt(int layers, double hidden) {
  constexpr double sequence = 2048;
  heddle::plan::Profile profile{.model = text(layers, " x ", hidden),
                                .input = static_cast<Bytes>(sequence * hidden * 2),
                                .layers = {}};
  heddle::plan::ProfiledLayer layer{.name = "block",
                                    .output = static_cast<Bytes>(sequence * hidden * 2),
                                    .saved = static_cast<Bytes>(sequence * hidden * 34),
                                    .parameters = static_cast<Bytes>(12 * hidden * hidden * 2)};
  for (const int tensor : {1, 2, 4, 8, 16})
    for (const std::int64_t samples : {1, 2, 4, 8, 16}) {
      const auto n = static_cast<double>(samples);
      const double flops = n * (24 * sequence * hidden * hidden + 4 * sequence * sequence * hidden);
      const double compute = flops / (tensor * 191.5e12 * 0.5 * (1 - 0.1 / n));
      const double bandwidth = tensor <= 2 ? 200e9 : tensor <= 8 ? 75e9 : 12.5e9;
      const double sums = 2 * 2.0 * (tensor - 1) / tensor * n * sequence * hidden * 2 / bandwidth;
      layer.measured.push_back({.device = "gcd",
                                .tensor = tensor,
                                .samples = samples,
                                .times = {.forward = compute + sums,
                                          .backward_input = compute + sums,
                                          .backward_weight = compute}});
    }
  profile.layers.assign(static_cast<std::size_t>(layers), layer);
  return profile;
}

// 16 bytes a parameter: weights and gradients in 16 bits, and 12 that the optimiser keeps.
inline constexpr double adam_state = 8;

/// A uniform plan. The first stages get the layers that are left over.
[[nodiscard]] inline Plan uniform_plan(const plan::PlanProblem& problem, int tensor, int stages,
                                       int groups, int microbatches, std::int64_t samples) {
  Plan plan{.stages = {}, .microbatches = microbatches, .sharding = "zero1"};
  for (int s = 0; s < stages; ++s) {
    const Share layers = even_share(static_cast<std::size_t>(problem.layers()),
                                    static_cast<std::size_t>(stages), static_cast<std::size_t>(s));
    PlanStage stage{.layers = {static_cast<int>(layers.first), static_cast<int>(layers.end())},
                    .ranks = {},
                    .samples = std::vector(static_cast<std::size_t>(groups), samples),
                    .tensor = tensor};
    for (int r = 0; r < tensor * groups; ++r) stage.ranks.push_back(Rank{s * tensor * groups + r});
    plan.stages.push_back(stage);
  }
  return plan;
}

/// A model of the study: its layers, width and parameters, and the ranks and batch of our plans.
struct FrontierModel {
  int layers;
  double hidden;
  double parameters;
  int ranks;
  std::int64_t batch;
};
inline constexpr FrontierModel frontier_models[] = {
    {48, 6144, 22e9, 64, 512}, {96, 12288, 175e9, 256, 1024}, {128, 25600, 1e12, 1024, 1024}};

/// Returns the share of the peak at which a step of `time` works: 6 flops a parameter and token,
/// and attention.
[[nodiscard]] inline double share_of_peak(const FrontierModel& model, Seconds time) {
  const double parameters = 12.0 * model.layers * model.hidden * model.hidden;
  const double flops = static_cast<double>(model.batch) * 2048 *
                       (6 * parameters + 12.0 * 2048 * model.hidden * model.layers);
  return flops / (time * model.ranks * 191.5e12);
}

}  // namespace heddle::test
