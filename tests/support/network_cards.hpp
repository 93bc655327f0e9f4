// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Clusters whose nodes have different network cards, and a model of equal layers for them.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/machine/machine.hpp>
#include <heddle/machine/network.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::test {

/// The kind of a node's network card.
enum class Card { infiniband, roce, ethernet };

/// Nodes of `size` ranks with one card each: InfiniBand 100 GB/s, RoCE 50, Ethernet 3.1. All nodes
/// are on the Ethernet. Within a node, 300 GB/s.
[[nodiscard]] inline Machine cluster(const std::vector<Card>& cards, int size,
                                     const std::vector<Device>& devices) {
  const int ranks = static_cast<int>(cards.size()) * size;
  Machine machine =
      Machine::hierarchical(devices, {{.name = "node", .ranks = size, .link = {2e-6, 300e9}},
                                      {.name = "cluster", .ranks = ranks, .link = {20e-6, 3.1e9}}});
  std::vector<NetworkKind> networks = {{"InfiniBand", {5e-6, 100e9}, {}},
                                       {"RoCE", {5e-6, 50e9}, {}},
                                       {"Ethernet", {5e-6, 3.1e9}, {}}};
  for (int r = 0; r < ranks; ++r) {
    const Card card = cards[static_cast<std::size_t>(r / size)];
    networks[2].ranks.push_back(Rank{r});
    if (card != Card::ethernet) networks[card == Card::roce].ranks.push_back(Rank{r});
  }
  return connect(std::move(machine), networks);
}

[[nodiscard]] inline Machine cluster(const std::vector<Card>& cards, int size) {
  return cluster(cards, size,
                 std::vector<Device>(cards.size() * static_cast<std::size_t>(size), Device{"gpu"}));
}

/// Equal layers; a sample takes `forward` in a forward and twice as long in a backward.
[[nodiscard]] inline heddle::plan::Profile equal_layers(int layers, Seconds forward, Bytes output,
                                                        Bytes parameters) {
  heddle::plan::Profile profile{
      .model = "equal layers", .input = output, .layers = {}, .reference = "gpu"};
  const heddle::plan::ProfiledLayer layer{
      .name = "layer",
      .output = output,
      .saved = output,
      .parameters = parameters,
      .measured = {
          {.device = "gpu",
           .samples = 1,
           .times = {.forward = forward, .backward_input = forward, .backward_weight = forward}}}};
  profile.layers.assign(static_cast<std::size_t>(layers), layer);
  return profile;
}

/// Two stages, the first half of the ranks and the second one, each of one-rank groups. Their
/// gradients are summed in 8 buckets.
[[nodiscard]] inline Plan two_halves(int layers, int ranks, int microbatches,
                                     std::int64_t samples) {
  Plan plan{.stages = {}, .microbatches = microbatches, .sharding = "zero1", .buckets = 8};
  for (int s = 0; s < 2; ++s) {
    PlanStage stage{.layers = {s * layers / 2, (s + 1) * layers / 2}, .ranks = {}, .samples = {}};
    for (int r = 0; r < ranks / 2; ++r) {
      stage.ranks.push_back(Rank{s * ranks / 2 + r});
      stage.samples.push_back(samples / (ranks / 2));
    }
    plan.stages.push_back(stage);
  }
  return plan;
}

/// Returns a GPT of 3.6 billion parameters whose batch of 768 takes 32 devices 7.4 s of
/// computation. A step's volume is a reduce-scatter of gradients in 32 bits and an all-gather of
/// parameters in 16 bits, 6 bytes a parameter where an all-reduce in 32 bits has 8: the profile's
/// parameters have 3 bytes each, which an all-reduce moves twice.
[[nodiscard]] inline heddle::plan::Profile gpt_3_6b() {
  constexpr int layers = 30;
  return equal_layers(layers, 7.4 * 32 / 768 / layers / 3, 2048 * 3072 * 2,
                      Bytes{3} * 3'600'000'000 / layers);
}

}  // namespace heddle::test
