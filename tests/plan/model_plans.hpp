// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The settings of DAPPLE's and PipeDream's comparisons, for tests and scripts/systems.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/schedule.hpp>
#include <heddle/systems/dapple/dapple.hpp>
#include <heddle/systems/pipedream/pipedream.hpp>

#include "plan/model_profiles.hpp"

namespace heddle::test {

/// A model and the size of its microbatches.
struct ModelBatch {
  heddle::plan::Profile profile;
  std::int64_t samples;   ///< of a microbatch
  std::string published;  ///< the ranks of DAPPLE's stages on two nodes of eight V100
};

/// The models of DAPPLE's table 2 whose plans are published. A microbatch has the size of DAPPLE's
/// profiles (6, 2, 1, 1, 64 and 32 samples), or the least multiple of it that divides over the
/// ranks of the published stages. For AmoebaNet-36 it is 32, because with 8 samples 8:4:4 is 3%
/// faster.
[[nodiscard]] inline std::vector<ModelBatch> dapple_models() {
  return {{bert(24), 24, "8:8"},      {bert(48), 8, "8:8"},  {xlnet36(), 8, "8:8"},
          {amoebanet36(), 32, "8:8"}, {gnmt16(), 64, "8:8"}, {vgg19(), 480, "15:1"}};
}

/// Returns the ranks of a plan's stages, such as "8:8".
[[nodiscard]] inline std::string ranks_of_stages(const Plan& plan) {
  std::string all;
  for (const PlanStage& stage : plan.stages)
    all += text(all.empty() ? "" : ":", stage.ranks.size());
  return all;
}

/// Returns the best plan by DAPPLE's formula of those with one or two stages on all ranks in order,
/// as it was published for these models.
[[nodiscard]] inline Plan best_of_two_stages(const plan::PlanProblem& problem, int microbatches) {
  const std::int64_t samples = problem.options().batch / microbatches;
  const int ranks = problem.machine().ranks();
  std::optional<Plan> best;
  Seconds least = 0;
  for (int first = 1; first <= ranks; ++first)
    for (int cut = 1; cut <= problem.layers(); ++cut) {
      if ((first == ranks) != (cut == problem.layers())) continue;
      if (samples < std::max(first, ranks - first)) continue;
      Plan plan{.stages = {}, .microbatches = microbatches, .schedule = problem.options().schedule};
      for (const auto& [layers, begin, end] : {std::tuple{LayerRange{0, cut}, 0, first},
                                               {LayerRange{cut, problem.layers()}, first, ranks}}) {
        if (begin == end) continue;
        PlanStage& stage = plan.stages.emplace_back();
        stage.layers = layers;
        for (int r = begin; r < end; ++r) {
          stage.ranks.push_back(Rank{r});
          stage.samples.push_back(samples / (end - begin) + (r - begin < samples % (end - begin)));
        }
      }
      const Seconds price = systems::Dapple{}.formula(plan, problem);
      if (best && price >= least) continue;
      least = price;
      best = std::move(plan);
    }
  return *best;
}

/// Returns the plan with all layers on all ranks.
[[nodiscard]] inline Plan data_parallel_plan(const plan::PlanProblem& problem, int microbatches) {
  PlanStage stage;
  stage.layers = {0, problem.layers()};
  const std::int64_t samples = problem.options().batch / microbatches;
  const int ranks = problem.machine().ranks();
  for (int r = 0; r < ranks; ++r) {
    stage.ranks.push_back(Rank{r});
    stage.samples.push_back(samples / ranks + (r < samples % ranks));
  }
  return {.stages = {stage}, .microbatches = microbatches};
}

/// A cluster of one of PipeDream's comparisons.
struct Cluster {
  std::string name;
  int nodes, ranks;        ///< and ranks in a node
  double inside, between;  ///< bytes per second
  double least_gain;       ///< over data parallelism that does not overlap
};

[[nodiscard]] inline std::vector<Cluster> pipedream_clusters() {
  return {{"4 nodes of 4, 10 Gbit/s", 4, 4, 25e9, 1.25e9, 1.0},
          {"2 nodes of 8, 25 Gbit/s", 2, 8, 25e9, 3.125e9, 1.7},
          {"8 nodes of 1, 10 Gbit/s", 8, 1, 25e9, 1.25e9, 3.5}};
}

/// Returns the bytes that all ranks send in a schedule.
[[nodiscard]] inline std::uint64_t moved_bytes(const Schedule& schedule) {
  std::uint64_t bytes = 0;
  for (std::size_t id = 0; id < schedule.actions().size(); ++id)
    if (schedule[ActionId{id}].kind == Kind::move)
      bytes += schedule.bytes(schedule.uses(ActionId{id}).front());
  return bytes;
}

/// PipeDream's plan of VGG19 with microbatches of 32, against data parallelism.
struct PipeDreamComparison {
  Plan plan;
  Seconds pipeline = 0, data_parallel = 0;  ///< a step by PipeDream's formula
  /// Bytes that all ranks send, for as many microbatches as all replicas of every stage share. A
  /// replica sums its gradients after each of its own. Counted in schedules, and by closed forms.
  std::uint64_t counted_bytes = 0, expected_bytes = 0;
  std::uint64_t counted_data_parallel = 0, expected_data_parallel = 0;
  double between_nodes = 0, data_parallel_between_nodes = 0;  ///< of these bytes
};

/// Returns the bytes that cross nodes: of a sum of gradients by a ring, or of a cut.
[[nodiscard]] inline double bytes_between_nodes(const PlanStage& stage, int node, double weights) {
  double links = 0;
  const std::size_t ranks = stage.ranks.size();
  for (std::size_t i = 0; i < ranks; ++i)
    links += +stage.ranks[i] / static_cast<std::size_t>(node) !=
             +stage.ranks[(i + 1) % ranks] / static_cast<std::size_t>(node);
  return links * 2 * static_cast<double>(ranks - 1) / static_cast<double>(ranks) * weights;
}
[[nodiscard]] inline double bytes_between_nodes(const PlanStage& from, const PlanStage& to,
                                                int node, double sample) {
  double bytes = 0;
  std::size_t i = 0, j = 0;
  for (std::int64_t here = from.samples[0], there = to.samples[0]; i < from.ranks.size();) {
    const std::int64_t part = std::min(here, there);
    if (+from.ranks[i] / static_cast<std::size_t>(node) !=
        +to.ranks[j] / static_cast<std::size_t>(node))
      bytes += 2 * static_cast<double>(part) * sample;
    here -= part;
    there -= part;
    if (here == 0 && ++i < from.ranks.size()) here = from.samples[i];
    if (there == 0 && ++j < to.ranks.size()) there = to.samples[j];
  }
  return bytes;
}

[[nodiscard]] inline PipeDreamComparison compare_pipedream(const Cluster& cluster) {
  constexpr int microbatches = 64;
  constexpr std::int64_t samples = 32;
  const heddle::plan::Profile profile = vgg19();
  const Machine machine = v100_nodes(cluster.nodes, cluster.ranks, cluster.inside, cluster.between);
  const plan::PlanProblem problem(
      profile, machine,
      {.batch = microbatches * samples, .microbatches = {microbatches}, .schedule = "pipedream"});
  const Plan all = data_parallel_plan(problem, microbatches);
  const plan::FoundPlan found = systems::PipeDream{}.search(problem);
  PipeDreamComparison result{.plan = *found.plan,
                             .pipeline = found.formula,
                             .data_parallel = systems::PipeDream{}.formula(all, problem)};
  // So many microbatches that each replica of a stage has as many as the others.
  std::uint64_t rounds = 16;
  for (const PlanStage& stage : found.plan->stages) rounds *= stage.ranks.size();
  const auto price = [&](const Plan& plan, std::uint64_t& counted, std::uint64_t& expected,
                         double& between) {
    for (std::size_t s = 0; s < plan.stages.size(); ++s) {
      const std::uint64_t ranks = plan.stages[s].ranks.size();
      const Bytes weights = profile.parameters(plan.stages[s].layers);
      if (ranks > 1)
        counted += rounds / ranks *
                   moved_bytes(schedule::collective(
                       schedule::Collective::all_reduce, schedule::Algorithm::ring,
                       {.ranks = static_cast<int>(ranks), .bytes = weights, .type = Scalar::f32}));
      expected += rounds / ranks * 2 * (ranks - 1) * weights;
      between += static_cast<double>(rounds / ranks) *
                 bytes_between_nodes(plan.stages[s], cluster.ranks, static_cast<double>(weights));
      if (s == 0) continue;
      const Bytes cut = profile.input_of(plan.stages[s].layers.first) * Bytes{samples};
      counted += rounds * moved_bytes(schedule::one_f_one_b(
                              {.ranks = 2, .microbatches = 1, .sizes = {.activation = cut}}));
      expected += rounds * 2 * cut;
      between += static_cast<double>(rounds) *
                 bytes_between_nodes(plan.stages[s - 1], plan.stages[s], cluster.ranks,
                                     static_cast<double>(cut) / samples);
    }
  };
  price(*found.plan, result.counted_bytes, result.expected_bytes, result.between_nodes);
  price(all, result.counted_data_parallel, result.expected_data_parallel,
        result.data_parallel_between_nodes);
  return result;
}

}  // namespace heddle::test
