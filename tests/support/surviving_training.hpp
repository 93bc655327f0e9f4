// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SurvivingTraining: a small model that trains on, on fewer ranks, if a rank dies. It needs a
/// transport that LosesRanks: threads or MPI.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/survive.hpp>
#include <heddle/pipeline/memory_checkpoint.hpp>
#include <heddle/pipeline/stages.hpp>
#include <heddle/pipeline/state.hpp>
#include <heddle/schedule/generator/pipeline.hpp>

#include "support/mlp_stage.hpp"

namespace heddle::test {

/// Layers of an MlpStage, which descend with momentum and have named state. They call a function in
/// every pass and update.
class SurvivingStage : public MlpStage {
 public:
  SurvivingStage(int first, int last, int all, const std::function<void()>& at_call)
      : MlpStage(first, last, all, 0.1),
        m_count(last - first),
        m_at_call(&at_call),
        m_velocity(parameter_count()) {}

  void forward(const ForwardCall<double>& call) {
    (*m_at_call)();
    MlpStage::forward(call);
  }
  void backward_weight(const BackwardCall<double>& call) {
    (*m_at_call)();
    MlpStage::backward_weight(call);
  }
  void update() {
    for (std::size_t i = 0; i < m_velocity.size(); ++i)
      gradients()[i] = m_velocity[i] = 0.9 * m_velocity[i] + gradients()[i];
    (*m_at_call)();
    MlpStage::update();
  }
  template <class Visitor>
  void visit_state(Visitor&& visitor) {
    for (int l = 0; l < m_count; ++l) {
      const std::size_t at = static_cast<std::size_t>(l) * per_layer;
      visitor(whole_array<memory_space>(l, "weights", parameters() + at, per_layer));
      visitor(whole_array<memory_space>(l, "velocity", m_velocity.data() + at, per_layer));
    }
  }

 private:
  int m_count;
  const std::function<void()>* m_at_call;
  std::vector<double> m_velocity;
};
static_assert(PipelineStage<SurvivingStage> && HasState<SurvivingStage>);

/// A training that goes on when a rank dies.
struct SurvivingTraining {
  static constexpr int layers = 5, microbatches = 4;

  int steps = 5;
  int copies = 1;
  int least = 1;  ///< the fewest ranks for which there is a plan
  std::function<void()> at_call = [] {};
  /// Called before each step, with its number and the ranks that are left.
  std::function<void(std::int64_t step, int ranks)> before_step = [](std::int64_t, int) {};
  std::vector<double> losses = {};  ///< by step
  std::vector<int> sizes_as_first =
      {};  ///< the ranks of each plan in which this rank was the first

  /// The layers of each stage, one stage on each rank.
  [[nodiscard]] std::vector<int> plan(int ranks) const {
    if (ranks < least) throw infeasible({"test", text("there is no plan for ", ranks, " ranks")});
    std::vector<int> counts;
    for (int r = 0; r < ranks; ++r) counts.push_back(layers / ranks + (r < layers % ranks ? 1 : 0));
    return counts;
  }

  template <LosesRanks T>
  void run(T& transport, const ExecuteOptions& options) {
    MemoryCheckpoint kept(copies);
    survive(
        transport,
        [&](T& left, std::span<const Rank>) {
          if (left.rank() == 0) sizes_as_first.push_back(left.size());
          Stages<SurvivingStage> model(
              layers,
              [&](int first, int last) { return SurvivingStage(first, last, layers, at_call); },
              {.layers_per_stage = plan(left.size())});
          Runner run(model,
                     schedule::one_f_one_b({.ranks = left.size(), .microbatches = microbatches}),
                     left, {.execute = options});
          std::int64_t step = kept.restore(model, left, options).value_or(0);
          losses.resize(static_cast<std::size_t>(step));
          while (step < steps) {
            before_step(step, left.size());
            losses.push_back(run.step(static_cast<int>(step), 0, 1.0 / microbatches).loss);
            kept.save(model, left, ++step, options);
          }
        },
        options);
  }
};

}  // namespace heddle::test
