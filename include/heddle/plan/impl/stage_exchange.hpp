// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The times of what the ranks of one stage exchange: gradients, weights, keys and heads. They are
/// parts of the prices of a plan and of the costs of its schedule.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/parameter_sharding.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/impl/ring_exchange.hpp>
#include <heddle/plan/impl/shard_lines.hpp>
#include <heddle/plan/impl/traffic_round.hpp>
#include <heddle/plan/internal/stage_memory.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/sequence_method.hpp>

namespace heddle::inline v0::plan::impl {

/// The times of the exchange of gradients and weights between the ranks of a stage that hold the
/// same part of its weights.
struct WeightExchange {
  Seconds forward = 0;   ///< a gather of the weights, before each forward
  Seconds backward = 0;  ///< a gather of the weights, before each backward
  Seconds scatter = 0;   ///< the gradients, behind each backward
  Seconds step = 0;      ///< once a step, before or behind the update
  double update = 1;     ///< the part of the update that a rank performs
};

/// Returns the ranks of a stage that hold the same part of its weights, for each part.
[[nodiscard]] inline std::vector<std::vector<Rank>> sharers(const PlanStage& stage) {
  std::vector<std::vector<Rank>> rings(static_cast<std::size_t>(stage.tensor));
  for (std::size_t i = 0; i < stage.ranks.size(); ++i)
    rings[i % rings.size()].push_back(stage.ranks[i]);
  return rings;
}

/// Returns the times by the sharding of a plan. Without nodes and codecs, a reduce-scatter and an
/// all-gather each take half of ring_all_reduce_time(), which is both; the longest of the rings of
/// a stage counts. Shardings with them are priced line by line, see ShardLines.
/// @throws contract_error if there is no such sharding, or as ShardLines.
[[nodiscard]] inline WeightExchange weight_exchange(const Plan& plan, const PlanStage& stage,
                                                    const Profile& profile, const Machine& machine,
                                                    Scalar type) {
  const Bytes bytes = profile.parameters(stage.layers, stage.tensor);
  const std::vector<std::vector<Rank>> rings = sharers(stage);
  const double update = 1 / static_cast<double>(rings.front().size());
  if (in_levels(plan.sharding)) {
    using enum ShardLevel;
    const ParameterSharding how = ParameterSharding::find(plan.sharding);
    const ShardLines lines(rings, plan.shard_node, plan.shard_pair, bytes, type, machine);
    const Seconds gather = lines.gather(how.weights, rank, how.weight_codec);
    return {.forward = gather,
            .backward = how.backward ? lines.gather(*how.backward, rank, {}) : gather,
            .scatter = lines.reduce(rank, how.gradients, how.gradient_codec),
            .step = lines.reduce(how.gradients, world, how.gradient_codec) +
                    lines.gather(world, how.weights, how.weight_codec),
            .update = update};
  }
  Seconds longest = 0;
  for (const std::vector<Rank>& ring : rings)
    longest = std::max(longest, ring_all_reduce_time(machine, ring, static_cast<double>(bytes)));
  switch (zero_stage(plan.sharding)) {
    case 0: return {.step = longest};
    case 1: return {.step = longest, .update = update};
    case 2: return {.scatter = longest / 2, .step = longest / 2, .update = update};
    default:
      return {.forward = longest / 2,
              .backward = longest / 2,
              .scatter = longest / 2,
              .update = update};
  }
}

/// Returns the time of a layer in which all lines of a group exchange heads as Ulysses does: each
/// pair of ranks sends one message of Q, K and V there, and one of the outputs back. A backward
/// sends the gradients of the outputs there and those of Q, K and V back.
[[nodiscard]] inline Seconds head_exchange(const std::vector<std::vector<Rank>>& lines,
                                           double queries, double keys, const Machine& machine) {
  Seconds sum = 0;
  for (const double bytes : {queries + keys, queries}) {
    TrafficRound round(machine);
    for (const std::vector<Rank>& line : lines) {
      const auto parts = static_cast<double>(line.size());
      for (const Rank from : line)
        for (const Rank to : line)
          if (from != to) round.add(from, to, bytes / (parts * parts));
    }
    sum += round.time();
  }
  return sum;
}

/// Returns the exchange of the attention of group `group`, by the plan's method.
[[nodiscard]] inline KeyExchange key_exchange(const Plan& plan, const PlanStage& stage,
                                              std::size_t group, const Profile& profile,
                                              const Machine& machine) {
  if (stage.sequence < 2) return {};
  const auto tensor = static_cast<std::size_t>(stage.tensor);
  const auto parts = static_cast<std::size_t>(stage.sequence);
  std::vector<std::vector<Rank>> lines(tensor);
  for (std::size_t t = 0; t < tensor; ++t)
    for (std::size_t p = 0; p < parts; ++p)
      lines[t].push_back(stage.ranks[(group * parts + p) * tensor + t]);
  const auto samples = static_cast<double>(stage.samples[group]);
  const bool by_heads = plan.attention == SequenceMethod::ulysses;
  std::vector<KeyExchange> sums(tensor);  // by line; those of Ulysses are all in the first one
  for (int l = stage.layers.first; l < stage.layers.last; ++l) {
    const ProfiledLayer& layer = profile.layers[static_cast<std::size_t>(l)];
    if (layer.keys == 0) continue;
    const double keys = static_cast<double>(layer.keys) / stage.tensor;
    const double queries = static_cast<double>(layer.query_bytes()) / stage.tensor;
    if (by_heads) {
      const Seconds each = head_exchange(lines, samples * queries, samples * keys, machine);
      sums[0].forward += each;
      sums[0].backward += each;
      continue;
    }
    for (std::size_t t = 0; t < tensor; ++t) {  // each sample has rounds of its own
      const KeyExchange one = ring_exchange(lines[t], keys, plan.attention, machine);
      sums[t].forward += samples * one.forward;
      sums[t].backward += samples * one.backward;
    }
  }
  KeyExchange longest;
  for (const KeyExchange& line : sums)
    longest = {std::max(longest.forward, line.forward), std::max(longest.backward, line.backward)};
  return longest;
}

/// Adds to the times of a rank what it exchanges with other ranks of its stage.
inline void add_exchange(LayerTimes& times, const WeightExchange& weights,
                         const KeyExchange& keys) {
  times.forward += weights.forward + keys.forward;
  times.backward_input += weights.backward + keys.backward;
  times.backward_weight += weights.scatter;
  times.update *= weights.update;
}

}  // namespace heddle::inline v0::plan::impl
