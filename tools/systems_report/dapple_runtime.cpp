// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// DAPPLE's runtime against GPipe where a rank has memory for two microbatches, as the published
/// comparison of BERT-48 on two stages has it.

#include <cstdint>
#include <string>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "comparison.hpp"

namespace hd = heddle;

namespace report {

std::vector<Comparison> dapple_runtime() {
  constexpr int stages = 2, memory = 2, microbatches = 16;
  const hd::StageCosts costs{.forward = 1, .backward = 2};
  const auto late =
      hd::simulate(hd::schedule::gpipe({.ranks = stages, .microbatches = memory}), costs);
  const auto early = hd::simulate(
      hd::schedule::dapple({.ranks = stages, .microbatches = microbatches, .most_live = memory}),
      costs);
  const double gain = (late.makespan() / memory) / (early.makespan() / microbatches);
  const auto mean_peak = [](const hd::Timeline& timeline) {
    double sum = 0;
    for (int r = 0; r < stages; ++r)
      sum += static_cast<double>(hd::schedule::peak(timeline, hd::Rank{r}, hd::role::saved).parts);
    return sum / stages;
  };
  const auto step = [](hd::schedule::DappleOptions::WarmUp warm_up, double latency) {
    return hd::simulate(hd::schedule::dapple({.ranks = 4, .microbatches = 32, .warm_up = warm_up}),
                        {.forward = 1, .backward = 2, .latency = latency})
        .makespan();
  };
  using enum hd::schedule::DappleOptions::WarmUp;
  const double warm_up = step(policy_a, 1) / step(policy_b, 1);
  return {
      {"simulated throughput over GPipe, two stages with memory for two microbatches, B = 2F",
       "1.6x (measured)", hd::text(gain, 'x'), "at least 1.35", verdict(gain >= 1.35)},
      {"mean of the ranks' most activations: DAPPLE, GPipe", "12% less memory",
       hd::text(mean_peak(early), ", ", mean_peak(late)), "fewer",
       verdict(mean_peak(early) < mean_peak(late))},
      {"simulated step of policy A over that of policy B, 4 stages, transfers of 1 F",
       "B where transfers are long", hd::text(warm_up), "above 1", verdict(warm_up > 1)},
  };
}

}  // namespace report
