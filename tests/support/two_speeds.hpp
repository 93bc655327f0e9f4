// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Two nodes of fast devices and two of slow ones, and the uniform plans that Metis is compared
/// with.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::test {

/// 24 layers on 4 nodes of 2 devices; those of the last two nodes have 0.4 of the speed.
struct TwoSpeeds {
  static constexpr int layers = 24;
  static constexpr int ranks = 8;
  static constexpr double slow = 0.4;

  static heddle::plan::Profile profile() {
    heddle::plan::Profile profile{
        .model = "transformer", .input = 1 << 12, .layers = {}, .reference = "fast"};
    heddle::plan::ProfiledLayer layer{
        .name = "block", .output = 1 << 20, .saved = 8 << 20, .parameters = Bytes{50} << 20};
    for (const int degree : {1, 2}) {
      const Seconds forward = degree == 1 ? 2e-3 : 1.1e-3;  // tensor parallelism costs 10%
      layer.measured.push_back({.device = "fast",
                                .tensor = degree,
                                .samples = 1,
                                .times = {forward, forward, forward, 1e-4}});
    }
    profile.layers.assign(layers, layer);
    return profile;
  }

  static Machine machine() {
    std::vector<Device> devices(4, Device{.name = "fast"});
    devices.resize(8, Device{.name = "slow", .speed = slow});
    return Machine::hierarchical(std::move(devices),
                                 {{.name = "node", .ranks = 2, .link = {2e-6, 50e9}},
                                  {.name = "cluster", .ranks = 8, .link = {5e-6, 12.5e9}}});
  }

  static plan::PlanOptions options() { return {.batch = 64}; }

  /// Returns the least price of all plans that divide layers, ranks and samples equally over the
  /// first `used` ranks: every pipeline depth, data and tensor degree and number of microbatches.
  static Seconds best_uniform(const plan::PlanProblem& problem, int used,
                              const std::function<Seconds(const Plan&)>& price) {
    Seconds best = std::numeric_limits<Seconds>::infinity();
    for (int stages = 1; stages <= used; ++stages)
      for (const int tensor : {1, 2})
        for (const int microbatches : problem.options().microbatches) {
          const std::int64_t samples = problem.options().batch / microbatches;
          if (layers % stages != 0 || used % (stages * tensor) != 0) continue;
          const int groups = used / stages / tensor;
          if (samples % groups != 0) continue;
          Plan plan;
          plan.microbatches = microbatches;
          for (int s = 0; s < stages; ++s) {
            PlanStage stage{.layers = {layers / stages * s, layers / stages * (s + 1)},
                            .ranks = {},
                            .samples = std::vector<std::int64_t>(static_cast<std::size_t>(groups),
                                                                 samples / groups),
                            .tensor = tensor};
            for (int r = 0; r < used / stages; ++r)
              stage.ranks.push_back(Rank{used / stages * s + r});
            plan.stages.push_back(std::move(stage));
          }
          best = std::min(best, price(plan));
        }
    return best;
  }
};

}  // namespace heddle::test
