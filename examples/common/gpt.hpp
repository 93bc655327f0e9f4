// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A stage of a byte-level GPT for pipelines: some of the transformer blocks, with the embedding
/// where the first block is, and with the final norm, the vocabulary and the loss where the last
/// is. What the backward calls need travels in the caller's `saved` and `delta` buffers, so that
/// any number of microbatches may be in flight. The calls queue kernels and return; `fence` waits.
/// Link with heddle_gpt, which has the stage for float and double; another type of number needs a
/// source like gpt_float.cpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel.hpp>

#include "gpt_block.hpp"
#include "gpt_buffers.hpp"
#include "gpt_config.hpp"
#include "space.hpp"

namespace examples {

template <class Real, class Space = examples::Space>
class GptStage {
 public:
  using scalar_type = Real;
  using execution_space = typename Space::execution_space;
  using memory_space = typename execution_space::memory_space;

  /// Blocks [first, last) of the model. Parameters start as f(seed, name, index): the same
  /// whichever stage holds them.
  GptStage(const GptConfig& config, int first, int last, std::uint64_t seed = 1,
           const heddle::kernel::AdamOptions& optimizer = {}, const execution_space& exec = {});

  // The stage owns its parameters: a copy would share them.
  GptStage(GptStage&&) = default;
  GptStage& operator=(GptStage&&) = default;

  [[nodiscard]] const GptConfig& config() const { return m_config; }
  [[nodiscard]] bool embeds() const { return m_embeds; }
  [[nodiscard]] bool predicts() const { return m_predicts; }

  // Sizes are in elements, per microbatch.
  [[nodiscard]] std::size_t input_size() const { return m_embeds ? 0 : activation_size(); }
  [[nodiscard]] std::size_t output_size() const { return m_predicts ? 0 : activation_size(); }
  [[nodiscard]] std::size_t saved_size() const { return m_saved_size; }
  [[nodiscard]] std::size_t delta_size() const { return m_delta_size; }
  [[nodiscard]] std::size_t parameter_count() const { return m_table.size; }
  [[nodiscard]] Real* parameters() { return m_parameters.data(); }
  [[nodiscard]] Real* gradients() { return m_gradients.data(); }
  /// The names and places of the parameters, and of the gradients likewise.
  [[nodiscard]] const std::vector<GptTensor>& tensors() const { return m_table.tensors; }
  /// May be changed between steps.
  [[nodiscard]] heddle::kernel::AdamOptions& optimizer() { return m_optimizer; }

  /// Takes the tokens of the whole local batch, microbatches x sequences x (context + 1), and the
  /// weight of each microbatch's loss: 1 / (microbatches over all replicas) makes the losses' sum
  /// the mean. The tokens are copied before this returns.
  void begin_step(std::span<const std::uint8_t> tokens, double weight);

  void forward(heddle::Item m, const Real* input, Real* output, Real* saved);

  void backward_input(heddle::Item m, const Real*, const Real* saved, const Real* output_grad,
                      Real* input_grad, Real* delta);

  /// Adds to gradients().
  void backward_weight(heddle::Item m, const Real*, const Real* saved, const Real* output_grad,
                       const Real* delta);

  void zero_gradients();

  /// One step of Adam with the gradients as they are.
  void update();

  void fence() { m_exec.fence("heddle::gpt::fence"); }

  /// The weighted loss of one microbatch of this step, 0 where it has not run forward or on a stage
  /// that does not predict. Waits for the queued kernels.
  [[nodiscard]] double loss(heddle::Item m) const;

  /// `count` tokens that continue `prompt`, drawn with f(seed, "sample", index) from the odds at
  /// `temperature` (0: the likeliest). Needs all blocks. An empty prompt stands for one newline; of
  /// a longer text the last `context` tokens are seen.
  [[nodiscard]] std::string generate(std::string_view prompt, std::size_t count, double temperature,
                                     std::uint64_t seed);

 private:
  using Matrix = heddle::kernel::Matrix<Real, execution_space>;
  using Vector = heddle::kernel::Vector<Real, execution_space>;
  using Input = heddle::kernel::Matrix<const Real, execution_space>;
  using Buffer = Kokkos::View<Real*, memory_space>;
  using Tokens = Kokkos::View<std::uint8_t*, memory_space>;
  using Losses = Kokkos::View<double*, memory_space>;
  using TokenMatrix = heddle::kernel::Matrix<const std::uint8_t, execution_space>;
  using Block = GptBlock<Real, execution_space>;
  using Saved = GptSaved<Real, execution_space>;
  using Delta = GptDelta<Real, execution_space>;

  static const GptConfig& checked(const GptConfig& config, int first, int last) {
    validate(config);
    heddle::expects(0 <= first && first < last && last <= config.layers, [&] {
      return heddle::Complaint{"GptStage", "there is no such range of blocks",
                               heddle::text("blocks [", first, ", ", last, ") of ", config.layers),
                               "a stage holds at least one block: use no more stages than layers"};
    });
    return config;
  }

  [[nodiscard]] std::size_t sequences() const {
    return static_cast<std::size_t>(m_config.sequences);
  }
  [[nodiscard]] std::size_t context() const { return static_cast<std::size_t>(m_config.context); }
  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(m_config.width); }
  [[nodiscard]] std::size_t vocabulary() const {
    return static_cast<std::size_t>(m_config.vocabulary);
  }
  [[nodiscard]] std::size_t rows() const { return sequences() * context(); }
  [[nodiscard]] std::size_t activation_size() const { return rows() * width(); }
  [[nodiscard]] heddle::kernel::AttentionShape shape() const {
    return {sequences(), context(), static_cast<std::size_t>(m_config.heads), width()};
  }

  [[nodiscard]] GptExtent extent() const {
    return {shape(), vocabulary(), m_table.blocks.size(), m_embeds, m_predicts};
  }

  void expect_started(heddle::Item m) const {
    heddle::expects(+m < m_losses.extent(0), [&] {
      return heddle::Complaint{"GptStage", "this step has no such microbatch",
                               heddle::text("microbatch ", m, " of ", m_losses.extent(0)),
                               "begin_step takes the tokens of all local microbatches"};
    });
  }

  // Views of the ends' parameters or gradients in a flat vector.
  Matrix token_table(Real* flat) const {
    return Matrix(flat + m_table.token_table, vocabulary(), width());
  }
  Matrix position_table(Real* flat) const {
    return Matrix(flat + m_table.position_table, context(), width());
  }
  Vector norm_scale(Real* flat) const { return Vector(flat + m_table.norm_scale, width()); }
  Vector norm_shift(Real* flat) const { return Vector(flat + m_table.norm_shift, width()); }
  Matrix vocabulary_weight(Real* flat) const {
    return Matrix(flat + m_table.vocabulary_weight, width(), vocabulary());
  }
  Vector vocabulary_bias(Real* flat) const {
    return Vector(flat + m_table.vocabulary_bias, vocabulary());
  }

  /// The tokens that a microbatch reads, and those that it must foretell: one position later.
  TokenMatrix input_tokens(heddle::Item m) const { return tokens(m, 0); }
  TokenMatrix targets(heddle::Item m) const { return tokens(m, 1); }
  TokenMatrix tokens(heddle::Item m, std::size_t shift) const {
    const std::size_t each = sequences() * (context() + 1);
    const TokenMatrix all(m_tokens.data() + +m * each, sequences(), context() + 1);
    return Kokkos::subview(all, Kokkos::ALL, std::pair(shift, shift + context()));
  }

  /// The gradient of block b's output and where that of its input goes.
  Input above(const Delta& delta, std::size_t b, const Real* output_grad) const {
    if (b + 1 < m_weights.size()) return delta.after(b);
    return m_predicts ? Input(delta.top) : Input(output_grad, rows(), width());
  }
  Matrix below(const Delta& delta, std::size_t b, Real* input_grad) const {
    if (b > 0) return delta.after(b - 1);
    return m_embeds ? delta.bottom : Matrix(input_grad, rows(), width());
  }

  /// The head up to the logits, in keep.odds.
  void predict(const Matrix& stream, const Saved& keep);

  void start_parameters(std::uint64_t seed);

  GptConfig m_config;
  GptTable m_table;
  bool m_embeds, m_predicts;
  execution_space m_exec;
  heddle::kernel::AdamOptions m_optimizer;
  Buffer m_parameters, m_gradients, m_mean, m_square, m_scratch;
  Block m_blocks;
  Vector m_row_loss;
  std::vector<typename Block::Weights> m_weights, m_weight_grads;
  std::size_t m_saved_size = 0, m_delta_size = 0;
  std::uint64_t m_step = 0;
  double m_weight = 0;
  Tokens m_tokens;
  Losses m_losses;
  Kokkos::View<double*, Kokkos::HostSpace> m_host_losses;
};

}  // namespace examples
