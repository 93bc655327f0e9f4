// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A model of 2.7 billion parameters on two sites of 8 unequal accelerators each, which one slow
/// line joins: the setting in which HGTrainer's casts are compared.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::test {

/// The setting: 32 microbatches of 4 sequences of 1024 tokens, hidden size 2560, activations of 16
/// bits. An accelerator computes 45% of 312 or 125 TFLOP/s, and tensor degrees scale ideally.
struct TwoSites {
  static constexpr int microbatches = 32;
  static constexpr std::int64_t samples = 4;  ///< of a microbatch
  static constexpr double fast = 312, slow = 125;
  static constexpr Codec narrow{.type = Scalar::f8e4m3};

  /// Returns the profile of the model in so many equal layers.
  static heddle::plan::Profile profile(int layers, const std::vector<int>& degrees = {1, 2, 4, 8}) {
    constexpr double parameters = 2.7e9, tokens = 1024, efficiency = 0.45;
    heddle::plan::Profile profile{.model = "gpt-2.7b", .input = 8 * 1024, .layers = {}};
    heddle::plan::ProfiledLayer layer{.name = "block",
                                      .output = 1024 * 2560 * 2,
                                      .parameters = static_cast<Bytes>(2 * parameters / layers)};
    for (const int degree : degrees)
      for (const bool quick : {true, false}) {
        const Seconds forward =
            2 * parameters / layers * tokens / ((quick ? fast : slow) * 1e12 * efficiency) / degree;
        layer.measured.push_back({.device = quick ? "a100" : "v100",
                                  .tensor = degree,
                                  .samples = 1,
                                  .times = {forward, forward, forward, 0}});
      }
    profile.layers.assign(static_cast<std::size_t>(layers), layer);
    return profile;
  }

  /// Returns the machine. All messages between the sites share a line of so many Gbit/s in each
  /// direction.
  static Machine machine(double gigabits) {
    std::vector<Device> devices(8, Device{.name = "a100"});
    devices.resize(16, Device{.name = "v100"});
    const double line = gigabits * 1e9 / 8;
    return Machine::hierarchical(
        std::move(devices),
        {{.name = "site", .ranks = 8, .link = {0, 300e9}, .ports = {.out = line, .in = line}},
         {.name = "world", .ranks = 16, .link = {0, line}}});
  }

  static plan::PlanOptions options(std::string schedule, bool eight_bits) {
    plan::PlanOptions options{.batch = microbatches * samples,
                              .microbatches = {microbatches},
                              .schedule = std::move(schedule),
                              .activation = Scalar::f16};
    if (eight_bits) options.codecs = {narrow};
    return options;
  }

  /// Returns the plan of one stage a site with the first `cut` of `layers` layers on the fast site.
  static Plan plan(int layers, int cut, std::string schedule, bool eight_bits) {
    Plan plan;
    plan.microbatches = microbatches;
    plan.schedule = std::move(schedule);
    for (const int site : {0, 1}) {
      PlanStage stage{.layers = {site == 0 ? 0 : cut, site == 0 ? cut : layers},
                      .ranks = {},
                      .samples = {samples},
                      .tensor = 8};
      for (int r = 0; r < 8; ++r) stage.ranks.push_back(Rank{8 * site + r});
      plan.stages.push_back(stage);
    }
    if (eight_bits) plan.casts = {narrow};
    return plan;
  }

  // --- The same prices without a planner or a schedule: references.

  /// Returns the time of a microbatch on a site that has `part` of the model.
  static Seconds stage_time(double part, double teraflops) {
    return part * 6 * 2.7e9 * 1024 * samples / (8 * teraflops * 1e12 * 0.45);
  }
  /// Returns the time of a microbatch's activations on the line.
  static Seconds line_time(double gigabits, int bits) {
    return samples * 1024 * 2560 * bits / (gigabits * 1e9);
  }
  /// Returns (M - 1) max(t, x) + sum t + 2 x.
  static Seconds closed_form(Seconds first, Seconds second, Seconds line) {
    return (microbatches - 1) * std::max({first, second, line}) + first + second + 2 * line;
  }
  /// Returns the time of a step of two stages, whose backwards take twice their forwards. Stage 0
  /// computes `warm_up` forwards first, then a backward and a forward in turn; stage 1 computes the
  /// backward of a microbatch after its forward. Each direction of the line has one message at a
  /// time.
  static Seconds two_stages(Seconds first, Seconds second, Seconds line, int warm_up) {
    Seconds time = 0, time_behind = 0;       // the ends of the last actions of the stages
    Seconds forwards = 0, backwards = 0;     // the ends of the last messages
    std::vector<Seconds> arrivals, returns;  // of activations and gradients, by microbatch
    const auto send = [&](Seconds& last, Seconds ready) {
      return last = std::max(last, ready) + line;
    };
    const auto forward = [&] {
      time += first / 3;
      arrivals.push_back(send(forwards, time));
      time_behind = std::max(time_behind, arrivals.back()) + second / 3 + second * 2 / 3;
      returns.push_back(send(backwards, time_behind));
    };
    while (static_cast<int>(arrivals.size()) < std::min(warm_up, microbatches)) forward();
    for (std::size_t m = 0; m < microbatches; ++m) {
      time = std::max(time, returns[m]) + first * 2 / 3;
      if (arrivals.size() < microbatches) forward();
    }
    return std::max(time, time_behind);
  }
};

}  // namespace heddle::test
