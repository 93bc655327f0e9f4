// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Training on sequences of unequal lengths by FlexSP: the plans of all steps, and the microbatches
/// that a rank computes by them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/pass/group.hpp>
#include <heddle/sequence.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>
#include <heddle/systems/flexsp/sequence_groups.hpp>

#include "gpt_packed.hpp"
#include "gpt_training.hpp"
#include "text.hpp"

namespace examples {

/// Returns how a group of `degree` ranks computes attention: as in FlexSP by Ulysses, if there are
/// enough heads of K and V, and otherwise around a ring.
[[nodiscard]] inline heddle::SequenceMethod flex_method(int degree, int kv_heads) {
  return degree <= kv_heads ? heddle::SequenceMethod::ulysses : heddle::SequenceMethod::ring;
}

/// The plans of some steps, of every replica.
class FlexPlans {
 public:
  /// Plans steps [begin, begin + steps), with groups of `degree` ranks if it is not 0.
  /// @throws infeasible if no group can hold a sequence.
  FlexPlans(const GptTraining& training, int data, const heddle::systems::SequenceCosts& costs,
            int begin, int steps, int degree = 0)
      : m_data(data), m_begin(begin) {
    for (int step = begin; step < begin + steps; ++step)
      for (int replica = 0; replica < data; ++replica)
        m_plans.push_back(heddle::systems::plan_sequence_groups(
            batch_lengths(training, step, replica), costs, {.degree = degree}));
  }

  [[nodiscard]] const heddle::systems::SequencePlan& of(int step, int replica) const {
    return m_plans.at(static_cast<std::size_t>((step - m_begin) * m_data + replica));
  }
  /// The plans of a replica, step after step.
  [[nodiscard]] std::vector<const heddle::systems::SequencePlan*> of_replica(int replica) const {
    std::vector<const heddle::systems::SequencePlan*> plans;
    for (std::size_t i = static_cast<std::size_t>(replica); i < m_plans.size();
         i += static_cast<std::size_t>(m_data))
      plans.push_back(&m_plans[i]);
    return plans;
  }
  /// Tokens of a step, over all replicas.
  [[nodiscard]] std::int64_t tokens(int step) const {
    std::int64_t sum = 0;
    for (int replica = 0; replica < m_data; ++replica) sum += of(step, replica).tokens();
    return sum;
  }
  /// Mean tokens of a step, over all replicas.
  [[nodiscard]] double mean_tokens() const {
    double sum = 0;
    for (const auto& plan : m_plans) sum += static_cast<double>(plan.tokens());
    return sum * m_data / static_cast<double>(m_plans.size());
  }
  /// The predicted time of all steps, in each of which the slowest replica counts.
  [[nodiscard]] heddle::Seconds time() const {
    heddle::Seconds sum = 0;
    for (std::size_t i = 0; i < m_plans.size(); i += static_cast<std::size_t>(m_data)) {
      heddle::Seconds slowest = 0;
      for (std::size_t d = 0; d < static_cast<std::size_t>(m_data); ++d)
        slowest = std::max(slowest, m_plans[i + d].time);
      sum += slowest;
    }
    return sum;
  }
  /// The microbatches of the schedule: as many as the plan with most of them has.
  [[nodiscard]] int microbatches() const {
    std::size_t most = 1;
    for (const auto& plan : m_plans) most = std::max(most, plan.microbatches.size());
    return static_cast<int>(most);
  }
  /// How many groups that have sequences are of each size, over all plans.
  [[nodiscard]] std::map<int, std::size_t> groups() const {
    std::map<int, std::size_t> count;
    for (const auto& plan : m_plans)
      for (const auto& microbatch : plan.microbatches)
        for (const auto& group : microbatch.groups)
          if (!group.sequences.empty()) ++count[group.degree];
    return count;
  }

 private:
  int m_data, m_begin;
  std::vector<heddle::systems::SequencePlan> m_plans;  ///< step * replicas + replica
};

/// The microbatches of a rank.
template <class Real>
class FlexBatches {
 public:
  using Stage = GptStage<Real>;
  using Packed = GptPacked<Real, typename Stage::execution_space>;

  /// Makes the communicators and lines of all groups of this rank, for the ranks of `sequence` that
  /// divide the sequences of replica `replica`. `tensor` are the ranks that divide the layers. All
  /// these ranks call it together.
  FlexBatches(const GptTraining& training, const FlexPlans& plans, int replica,
              const heddle::Communicator& sequence, const typename Stage::Line& tensor,
              heddle::SequenceOptions options)
      : m_training(training),
        m_plans(&plans),
        m_replica(replica),
        m_groups(sequence),
        m_tensor(tensor),
        m_options(std::move(options)) {
    m_shapes.push_back(empty().shape);
    for (const auto* plan : plans.of_replica(replica))
      for (const auto& microbatch : plan->microbatches)
        m_shapes.push_back(pack(*plan, microbatch).shape);
  }

  /// The shapes that microbatches have.
  [[nodiscard]] const std::vector<GptBlockShape>& shapes() const { return m_shapes; }

  /// The microbatches of a step. Those that its plan does not have are empty.
  [[nodiscard]] std::vector<Packed> batch(const Text& text, int step) {
    const auto& plan = m_plans->of(step, m_replica);
    const auto tokens = examples::batch(m_training, text, step, m_replica);
    const std::int64_t all = m_plans->tokens(step);
    std::vector<Packed> batch;
    for (const auto& microbatch : plan.microbatches) {
      std::vector<std::span<const std::uint8_t>> sequences;
      for (const std::size_t i : own_group(microbatch).sequences)
        sequences.push_back(batch_sequence(tokens, m_training.model.context, i, plan.lengths[i]));
      batch.push_back(pack(plan, microbatch));
      batch.back().take(sequences, all);
    }
    while (batch.size() < static_cast<std::size_t>(m_plans->microbatches()))
      batch.push_back(empty());
    return batch;
  }

 private:
  using Line = heddle::SequenceLine<Real, typename Stage::execution_space>;

  [[nodiscard]] const heddle::systems::SequenceGroup& own_group(
      const heddle::systems::SequenceMicrobatch& microbatch) const {
    return microbatch.groups[m_groups.number_of(microbatch)];
  }
  [[nodiscard]] Packed empty() const { return Packed(m_training.model, m_tensor, {}, {}, true); }
  /// This rank's part of a microbatch, without its tokens.
  [[nodiscard]] Packed pack(const heddle::systems::SequencePlan& plan,
                            const heddle::systems::SequenceMicrobatch& microbatch) {
    std::vector<std::int64_t> lengths;
    const auto& group = own_group(microbatch);
    for (const std::size_t i : group.sequences) lengths.push_back(plan.lengths[i]);
    return Packed(m_training.model, m_tensor, line(microbatch, group.degree), lengths, true);
  }
  /// The line of this rank's groups of one size, made when a plan has the first of them. The ranks
  /// of a group are in the same groups of its size, so that they make it together.
  [[nodiscard]] const Line& line(const heddle::systems::SequenceMicrobatch& microbatch,
                                 int degree) {
    if (const auto found = m_lines.find(degree); found != m_lines.end()) return found->second;
    if (degree == 1) return m_lines[1];
    heddle::SequenceOptions options = m_options;
    const int kv_heads = m_training.model.heads_of_keys() / static_cast<int>(m_tensor.size());
    options.method = flex_method(degree, kv_heads);
    const heddle::Communicator &group = m_groups.group(microbatch), &one = m_groups.level(0);
    const bool ring = options.method == heddle::SequenceMethod::ring;
    return m_lines.try_emplace(degree, ring ? one : group, ring ? group : one, options)
        .first->second;
  }

  GptTraining m_training;
  const FlexPlans* m_plans;
  int m_replica;
  heddle::systems::SequenceGroups m_groups;
  typename Stage::Line m_tensor;
  heddle::SequenceOptions m_options;
  std::map<int, Line> m_lines;  ///< by the number of ranks
  std::vector<GptBlockShape> m_shapes;
};

}  // namespace examples
