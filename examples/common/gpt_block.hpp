// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// One transformer block of the example's GPT, pre-norm:
/// x += project(attention(norm1(x))), then x += contract(gelu(expand(norm2(x)))).
/// Shapes: N = sequences * context rows, w = width; everything is row-major.

#include <cstddef>

#include <heddle/kernel.hpp>

#include "gpt_config.hpp"

namespace examples {

/// Cuts a flat buffer into Views, one after another; on a null buffer it only counts.
template <class Real, class Exec>
class Cutter {
 public:
  explicit Cutter(Real* data) : m_data(data) {}

  [[nodiscard]] heddle::kernel::Matrix<Real, Exec> matrix(std::size_t rows, std::size_t columns) {
    return heddle::kernel::Matrix<Real, Exec>(take(rows * columns), rows, columns);
  }
  [[nodiscard]] heddle::kernel::Vector<Real, Exec> vector(std::size_t size) {
    return heddle::kernel::Vector<Real, Exec>(take(size), size);
  }
  [[nodiscard]] Real* take(std::size_t count) {
    Real* const start = m_data == nullptr ? nullptr : m_data + m_size;
    m_size += count;
    return start;
  }
  [[nodiscard]] std::size_t size() const { return m_size; }

 private:
  Real* m_data;
  std::size_t m_size = 0;
};

/// What forward keeps for the backward calls: N (14 w + 2) + sequences heads context^2 elements.
template <class Real, class Exec>
struct GptBlockSaved {
  heddle::kernel::Matrix<Real, Exec> normalised1, qkv, probabilities, attended;
  heddle::kernel::Matrix<Real, Exec> normalised2, expanded, activated;
  heddle::kernel::Vector<Real, Exec> inverse1, inverse2;

  GptBlockSaved(Cutter<Real, Exec>& cut, const heddle::kernel::AttentionShape& shape) {
    const std::size_t rows = shape.rows(), w = shape.width;
    normalised1 = cut.matrix(rows, w);
    qkv = cut.matrix(rows, 3 * w);
    probabilities = cut.matrix(shape.probability_rows(), shape.context);
    attended = cut.matrix(rows, w);
    normalised2 = cut.matrix(rows, w);
    expanded = cut.matrix(rows, 4 * w);
    activated = cut.matrix(rows, 4 * w);
    inverse1 = cut.vector(rows);
    inverse2 = cut.vector(rows);
  }
};

/// The gradients that backward_input leaves for backward_weight: 10 N w elements.
template <class Real, class Exec>
struct GptBlockDelta {
  heddle::kernel::Matrix<Real, Exec> normed1, qkv, middle, normed2, expanded;

  GptBlockDelta(Cutter<Real, Exec>& cut, const heddle::kernel::AttentionShape& shape) {
    const std::size_t rows = shape.rows(), w = shape.width;
    normed1 = cut.matrix(rows, w);
    qkv = cut.matrix(rows, 3 * w);
    middle = cut.matrix(rows, w);  // of the sum between attention and mlp
    normed2 = cut.matrix(rows, w);
    expanded = cut.matrix(rows, 4 * w);
  }
};

/// A block's parameters, or its gradients, as Views into the stage's flat vector.
template <class Real, class Exec>
struct GptBlockWeights {
  using Matrix = heddle::kernel::Matrix<Real, Exec>;
  using Vector = heddle::kernel::Vector<Real, Exec>;
  Matrix qkv, project, expand, contract;
  Vector scale1, shift1, qkv_bias, project_bias, scale2, shift2, expand_bias, contract_bias;

  GptBlockWeights(Real* flat, const GptBlockOffsets& at, std::size_t w)
      : qkv(flat + at.qkv_weight, w, 3 * w),
        project(flat + at.project_weight, w, w),
        expand(flat + at.expand_weight, w, 4 * w),
        contract(flat + at.contract_weight, 4 * w, w),
        scale1(flat + at.norm1_scale, w),
        shift1(flat + at.norm1_shift, w),
        qkv_bias(flat + at.qkv_bias, 3 * w),
        project_bias(flat + at.project_bias, w),
        scale2(flat + at.norm2_scale, w),
        shift2(flat + at.norm2_shift, w),
        expand_bias(flat + at.expand_bias, 4 * w),
        contract_bias(flat + at.contract_bias, w) {}
};

/// Memory that lives inside one call: two N x w matrices and one of the probabilities' shape.
template <class Real, class Exec>
struct GptScratch {
  heddle::kernel::Matrix<Real, Exec> first, second, square;
};

/// The block's three calls. All kernels go to `exec`, in order.
template <class Real, class Exec>
struct GptBlock {
  using Matrix = heddle::kernel::Matrix<Real, Exec>;
  using Input = heddle::kernel::Matrix<const Real, Exec>;
  using Weights = GptBlockWeights<Real, Exec>;
  using Saved = GptBlockSaved<Real, Exec>;
  using Delta = GptBlockDelta<Real, Exec>;

  Exec exec;
  heddle::kernel::AttentionShape shape;
  GptScratch<Real, Exec> scratch;

  /// stream: x, becomes the block's output.
  void forward(const Weights& weights, const Matrix& stream, const Saved& saved) const {
    namespace hk = heddle::kernel;
    hk::layer_norm_forward(exec, stream, weights.scale1, weights.shift1, saved.normalised1,
                           saved.inverse1, scratch.first);
    hk::linear_forward(exec, scratch.first, weights.qkv, weights.qkv_bias, saved.qkv);
    hk::attention_forward(exec, shape, saved.qkv, saved.probabilities, saved.attended);
    hk::linear_forward(exec, saved.attended, weights.project, weights.project_bias, scratch.first);
    hk::residual_add(exec, scratch.first, stream);

    hk::layer_norm_forward(exec, stream, weights.scale2, weights.shift2, saved.normalised2,
                           saved.inverse2, scratch.first);
    hk::linear_forward(exec, scratch.first, weights.expand, weights.expand_bias, saved.expanded);
    hk::gelu_forward(exec, saved.expanded, saved.activated);
    hk::linear_forward(exec, saved.activated, weights.contract, weights.contract_bias,
                       scratch.first);
    hk::residual_add(exec, scratch.first, stream);
  }

  /// From the gradient of the output to the gradient of the input; they must not overlap.
  void backward_input(const Weights& weights, const Saved& saved, const Input& output_grad,
                      const Delta& delta, const Matrix& input_grad) const {
    namespace hk = heddle::kernel;
    hk::linear_backward_input(exec, weights.contract, output_grad, delta.expanded);
    hk::gelu_backward_input(exec, saved.expanded, delta.expanded, delta.expanded);
    hk::linear_backward_input(exec, weights.expand, delta.expanded, delta.normed2);
    hk::layer_norm_backward_input(exec, saved.normalised2, saved.inverse2, weights.scale2,
                                  delta.normed2, delta.middle);
    hk::residual_add(exec, output_grad, delta.middle);

    hk::linear_backward_input(exec, weights.project, delta.middle, scratch.first);
    hk::attention_backward_input(exec, shape, saved.qkv, saved.probabilities, scratch.first,
                                 scratch.square, delta.qkv);
    hk::linear_backward_input(exec, weights.qkv, delta.qkv, delta.normed1);
    hk::layer_norm_backward_input(exec, saved.normalised1, saved.inverse1, weights.scale1,
                                  delta.normed1, input_grad);
    hk::residual_add(exec, delta.middle, input_grad);
  }

  /// Adds to `gradients`.
  void backward_weight(const Weights& weights, const Saved& saved, const Input& output_grad,
                       const Delta& delta, const Weights& gradients) const {
    namespace hk = heddle::kernel;
    hk::linear_backward_weight(exec, saved.activated, output_grad, gradients.contract,
                               gradients.contract_bias);
    hk::layer_norm_output(exec, saved.normalised2, weights.scale2, weights.shift2, scratch.first);
    hk::linear_backward_weight(exec, scratch.first, delta.expanded, gradients.expand,
                               gradients.expand_bias);
    hk::layer_norm_backward_weight(exec, saved.normalised2, delta.normed2, gradients.scale2,
                                   gradients.shift2);

    hk::linear_backward_weight(exec, saved.attended, delta.middle, gradients.project,
                               gradients.project_bias);
    hk::layer_norm_output(exec, saved.normalised1, weights.scale1, weights.shift1, scratch.first);
    hk::linear_backward_weight(exec, scratch.first, delta.qkv, gradients.qkv, gradients.qkv_bias);
    hk::layer_norm_backward_weight(exec, saved.normalised1, delta.normed1, gradients.scale1,
                                   gradients.shift1);
  }
};

}  // namespace examples
