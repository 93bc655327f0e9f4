// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// One transformer block of the example's GPT, pre-norm:
/// x += project(attention(norm1(x))), then x += contract(gelu(expand(norm2(x)))).
/// Ranks may divide it: each has some of the heads and of the MLP's columns, and between those some
/// of the rows. The ranks of a SequenceLine divide the sequences: each has the rows of its
/// positions, and only attention needs those of other ranks. Everything is row-major.

#include <algorithm>
#include <cstddef>

#include <heddle/kernel.hpp>
#include <heddle/sequence.hpp>
#include <heddle/tensor.hpp>

#include "gpt_config.hpp"
#include "gpt_shape.hpp"
#include "gpt_slice_attention.hpp"

namespace examples {

/// What forward keeps for the backward calls. Without grouped heads of K and V that is
/// n (2 w + 2) + N (4 a + 2 h) elements and what attention keeps: sequences heads context^2 if it
/// keeps probabilities.
template <class Real, class Exec>
struct GptBlockSaved {
  heddle::kernel::Matrix<Real, Exec> normalised1, qkv, attended;
  heddle::kernel::Matrix<Real, Exec> normalised2, expanded, activated;
  heddle::kernel::Vector<Real, Exec> attention, inverse1, inverse2;

  GptBlockSaved(Cutter<Real, Exec>& cut, const GptBlockShape& shape) {
    const std::size_t all = shape.all_rows();
    normalised1 = cut.matrix(shape.rows, shape.width);
    qkv = cut.matrix(all, shape.attention.qkv_columns());
    attention = cut.vector(shape.attention_saved);
    attended = cut.matrix(all, shape.columns());
    normalised2 = cut.matrix(shape.rows, shape.width);
    expanded = cut.matrix(all, shape.hidden);
    activated = cut.matrix(all, shape.hidden);
    inverse1 = cut.vector(shape.rows);
    inverse2 = cut.vector(shape.rows);
  }
};

/// The gradients that backward_input leaves for backward_weight: 3 n w + N (3 a + h) elements, and
/// 2 N w where rows are gathered.
template <class Real, class Exec>
struct GptBlockDelta {
  heddle::kernel::Matrix<Real, Exec> normed1, qkv, middle, normed2, expanded;
  heddle::kernel::Matrix<Real, Exec> all_middle, all_output;  // all rows, where they are gathered

  GptBlockDelta(Cutter<Real, Exec>& cut, const GptBlockShape& shape) {
    const std::size_t all = shape.all_rows(), w = shape.width;
    normed1 = cut.matrix(shape.rows, w);
    qkv = cut.matrix(all, shape.attention.qkv_columns());
    middle = cut.matrix(shape.rows, w);  // of the sum between attention and mlp
    normed2 = cut.matrix(shape.rows, w);
    expanded = cut.matrix(all, shape.hidden);
    all_middle = cut.matrix(shape.gathered_rows(), w);
    all_output = cut.matrix(shape.gathered_rows(), w);
  }
};

/// A block's parameters, or its gradients, as Views into the stage's flat vector.
template <class Real, class Exec>
struct GptBlockWeights {
  using Matrix = heddle::kernel::Matrix<Real, Exec>;
  using Vector = heddle::kernel::Vector<Real, Exec>;
  Matrix qkv, project, expand, contract;
  Vector scale1, shift1, qkv_bias, project_bias, scale2, shift2, expand_bias, contract_bias;

  GptBlockWeights(Real* flat, const GptBlockOffsets& at, const GptBlockShape& shape)
      : qkv(flat + at.qkv_weight, shape.width, shape.attention.qkv_columns()),
        project(flat + at.project_weight, shape.columns(), shape.width),
        expand(flat + at.expand_weight, shape.width, shape.hidden),
        contract(flat + at.contract_weight, shape.hidden, shape.width),
        scale1(flat + at.norm1_scale, shape.width),
        shift1(flat + at.norm1_shift, shape.width),
        qkv_bias(flat + at.qkv_bias, shape.attention.qkv_columns()),
        project_bias(flat + at.project_bias, shape.width),
        scale2(flat + at.norm2_scale, shape.width),
        shift2(flat + at.norm2_shift, shape.width),
        expand_bias(flat + at.expand_bias, shape.hidden),
        contract_bias(flat + at.contract_bias, shape.width) {}
};

/// Memory that lives inside one call: two n x w matrices, the first of which may be an N x a one
/// instead; all rows where they are gathered; and what the backward pass of attention needs.
template <class Real, class Exec>
struct GptScratch {
  heddle::kernel::Matrix<Real, Exec> first, attended, second, all;
  heddle::kernel::Vector<Real, Exec> attention;

  GptScratch(Cutter<Real, Exec>& cut, const GptBlockShape& shape) {
    const std::size_t a = shape.columns();
    Real* const either = cut.take(std::max(shape.rows * shape.width, shape.all_rows() * a));
    first = heddle::kernel::Matrix<Real, Exec>(either, shape.rows, shape.width);
    attended = heddle::kernel::Matrix<Real, Exec>(either, shape.all_rows(), a);
    second = cut.matrix(shape.rows, shape.width);
    all = cut.matrix(shape.gathered_rows(), shape.width);
    attention = cut.vector(shape.attention_scratch);
  }
};

/// The block's three calls. All kernels go to `exec`, in order; all ranks of the line make the same
/// calls.
template <class Real, class Exec>
struct GptBlock {
  using Matrix = heddle::kernel::Matrix<Real, Exec>;
  using Input = heddle::kernel::Matrix<const Real, Exec>;
  using Weights = GptBlockWeights<Real, Exec>;
  using Saved = GptBlockSaved<Real, Exec>;
  using Delta = GptBlockDelta<Real, Exec>;

  Exec exec;
  heddle::TensorLine<Real, Exec> line;
  heddle::SequenceLine<Real, Exec> sequence;
  GptBlockShape shape;
  GptScratch<Real, Exec> scratch;
  /// The slices that the present one attends to; none if sequences are not cut.
  GptSliceAttention<Real, Exec>* slices = nullptr;

  /// stream: x, becomes the block's output.
  void forward(const Weights& weights, const Matrix& stream, const Saved& saved) const {
    namespace hk = heddle::kernel;
    hk::layer_norm_forward(exec, stream, weights.scale1, weights.shift1, saved.normalised1,
                           saved.inverse1, scratch.first);
    heddle::column_parallel_forward(line, exec, scratch.first, scratch.all, weights.qkv,
                                    weights.qkv_bias, saved.qkv);
    attention_forward(saved);
    heddle::row_parallel_forward(line, exec, saved.attended, weights.project, weights.project_bias,
                                 scratch.all, scratch.first);
    hk::residual_add(exec, scratch.first, stream);

    hk::layer_norm_forward(exec, stream, weights.scale2, weights.shift2, saved.normalised2,
                           saved.inverse2, scratch.first);
    heddle::column_parallel_forward(line, exec, scratch.first, scratch.all, weights.expand,
                                    weights.expand_bias, saved.expanded);
    hk::gelu_forward(exec, saved.expanded, saved.activated);
    heddle::row_parallel_forward(line, exec, saved.activated, weights.contract,
                                 weights.contract_bias, scratch.all, scratch.first);
    hk::residual_add(exec, scratch.first, stream);
  }

  /// From the gradient of the output to the gradient of the input; they must not overlap.
  void backward_input(const Weights& weights, const Saved& saved, const Input& output_grad,
                      const Delta& delta, const Matrix& input_grad) const {
    namespace hk = heddle::kernel;
    heddle::row_parallel_backward_input(line, exec, weights.contract, output_grad, delta.all_output,
                                        delta.expanded);
    hk::gelu_backward_input(exec, saved.expanded, delta.expanded, delta.expanded);
    heddle::column_parallel_backward_input(line, exec, weights.expand, delta.expanded, scratch.all,
                                           delta.normed2);
    hk::layer_norm_backward_input(exec, saved.normalised2, saved.inverse2, weights.scale2,
                                  delta.normed2, delta.middle);
    hk::residual_add(exec, output_grad, delta.middle);

    heddle::row_parallel_backward_input(line, exec, weights.project, delta.middle, delta.all_middle,
                                        scratch.attended);
    attention_backward(saved, scratch.attended, delta.qkv);
    heddle::column_parallel_backward_input(line, exec, weights.qkv, delta.qkv, scratch.all,
                                           delta.normed1);
    hk::layer_norm_backward_input(exec, saved.normalised1, saved.inverse1, weights.scale1,
                                  delta.normed1, input_grad);
    hk::residual_add(exec, delta.middle, input_grad);
  }

  /// Adds to `gradients`; to those of the norms what this rank's rows contribute.
  void backward_weight(const Weights& weights, const Saved& saved, const Input& output_grad,
                       const Delta& delta, const Weights& gradients) const {
    namespace hk = heddle::kernel;
    heddle::row_parallel_backward_weight(line, exec, saved.activated, output_grad, delta.all_output,
                                         gradients.contract, gradients.contract_bias);
    hk::layer_norm_output(exec, saved.normalised2, weights.scale2, weights.shift2, scratch.first);
    heddle::column_parallel_backward_weight(line, exec, scratch.first, scratch.all, delta.expanded,
                                            gradients.expand, gradients.expand_bias);
    hk::layer_norm_backward_weight(exec, saved.normalised2, delta.normed2, gradients.scale2,
                                   gradients.shift2);

    heddle::row_parallel_backward_weight(line, exec, saved.attended, delta.middle, delta.all_middle,
                                         gradients.project, gradients.project_bias);
    hk::layer_norm_output(exec, saved.normalised1, weights.scale1, weights.shift1, scratch.first);
    heddle::column_parallel_backward_weight(line, exec, scratch.first, scratch.all, delta.qkv,
                                            gradients.qkv, gradients.qkv_bias);
    hk::layer_norm_backward_weight(exec, saved.normalised1, delta.normed1, gradients.scale1,
                                   gradients.shift1);
  }

 private:
  /// From saved.qkv to saved.attended.
  void attention_forward(const Saved& saved) const {
    if (slices != nullptr)
      slices->forward(exec, shape, saved.qkv, saved.attention, saved.attended);
    else if (shape.blockwise)
      heddle::sequence_attention_forward(sequence, exec, shape.attention, saved.qkv,
                                         saved.attention, saved.attended);
    else
      heddle::kernel::attention_forward(exec, shape.whole_attention(), saved.qkv,
                                        probabilities(saved.attention), saved.attended);
  }
  void attention_backward(const Saved& saved, const Input& output_grad,
                          const Matrix& qkv_grad) const {
    if (slices != nullptr)
      slices->backward(exec, shape, saved.qkv, saved.attention, saved.attended, output_grad,
                       qkv_grad);
    else if (shape.blockwise)
      heddle::sequence_attention_backward(sequence, exec, shape.attention, saved.qkv,
                                          saved.attention, output_grad, qkv_grad);
    else
      heddle::kernel::attention_backward_input(exec, shape.whole_attention(), saved.qkv,
                                               probabilities(saved.attention), output_grad,
                                               probabilities(scratch.attention), qkv_grad);
  }
  /// Memory of attention as a matrix of probabilities.
  [[nodiscard]] Matrix probabilities(const heddle::kernel::Vector<Real, Exec>& memory) const {
    return Matrix(memory.data(), shape.whole_attention().probability_rows(), shape.positions);
  }
};

}  // namespace examples
