// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Causal multi-head attention (Vaswani et al., 2017) of a batch of sequences:
/// per sequence and head O = P V with P = softmax(Q K^T / sqrt(d)) over the positions up to one's
/// own. Forward keeps P, which backward reads: sequences * heads * context^2 elements.

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/impl/loops.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/kernel/vector_math.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {

/// How the rows and columns of the attention's matrices are divided. Rows of `qkv` and of the
/// output are sequence * context + position. Columns of `qkv` are all of Q, then all of K, then all
/// of V; inside each the heads follow one another with width / heads columns.
struct AttentionShape {
  std::size_t sequences;  ///< of one microbatch
  std::size_t context;    ///< positions in each
  std::size_t heads;      ///< a divisor of the width
  std::size_t width;      ///< columns of Q, of K, of V and of the output

  /// Rows of `qkv` and of the output.
  [[nodiscard]] std::size_t rows() const { return sequences * context; }
  /// Columns of one head.
  [[nodiscard]] std::size_t head_width() const { return width / heads; }
  /// Rows of the probabilities, of `context` columns each: sequence, then head, then position.
  [[nodiscard]] std::size_t probability_rows() const { return sequences * heads * context; }
};

namespace impl {

template <ExecutionSpace Exec, class Real>
struct CausalSoftmax {
  Matrix<Real, Exec> scores;  // becomes the probabilities
  KOKKOS_FUNCTION void operator()(std::size_t row) const {
    const std::size_t context = scores.extent(1);
    const std::size_t seen = row % context + 1;
    Real* const p = &scores(row, 0);
    const Real top = largest(p, seen);
    for (std::size_t j = 0; j < seen; ++j) p[j] = vector_exp(p[j] - top);
    const Real share = Real(1) / ordered_sum<Real>(seen, [=](std::size_t j) { return p[j]; });
    for (std::size_t j = 0; j < seen; ++j) p[j] *= share;
    for (std::size_t j = seen; j < context; ++j) p[j] = 0;
  }
};

/// dS = P (dP - sum(dP P)), elementwise in a row; zero where P is, so beyond one's own position.
template <ExecutionSpace Exec, class Real>
struct SoftmaxBackward {
  Matrix<const Real, Exec> probabilities;
  Matrix<Real, Exec> grad;  // dP, becomes dS
  KOKKOS_FUNCTION void operator()(std::size_t row) const {
    const std::size_t context = grad.extent(1);
    const std::size_t seen = row % context + 1;
    const Real* const p = &probabilities(row, 0);
    Real* const g = &grad(row, 0);
    const Real along = ordered_sum<Real>(seen, [=](std::size_t j) { return g[j] * p[j]; });
    for (std::size_t j = 0; j < seen; ++j) g[j] = p[j] * (g[j] - along);
    for (std::size_t j = seen; j < context; ++j) g[j] = 0;
  }
};

/// The blocks of one (sequence, head) pair, as Views into the whole matrices.
struct HeadBlocks {
  AttentionShape shape;
  std::size_t sequence, head;

  template <class View>
  [[nodiscard]] auto columns(const View& view, std::size_t part) const {
    const std::size_t d = shape.head_width();
    const std::size_t column = part * shape.width + head * d;
    return Kokkos::subview(view,
                           std::pair(sequence * shape.context, (sequence + 1) * shape.context),
                           std::pair(column, column + d));
  }
  template <class View>
  [[nodiscard]] auto square(const View& view) const {
    const std::size_t row = (sequence * shape.heads + head) * shape.context;
    return Kokkos::subview(view, std::pair(row, row + shape.context),
                           std::pair(std::size_t{0}, shape.context));
  }
};

inline void expect_attention_shape(const char* where, const AttentionShape& shape) {
  expects(shape.heads > 0 && shape.width % shape.heads == 0, [&] {
    return Complaint{where, "the width does not divide into the heads",
                     text("width ", shape.width, ", heads ", shape.heads)};
  });
}

}  // namespace impl

/// qkv: rows x 3 width; probabilities: probability_rows x context, kept for backward; output: rows
/// x width. Products by gemm per (sequence, head), so in `exec`'s order as gemm is.
template <ExecutionSpace Exec, MatrixOn<Exec> Output>
void attention_forward(const Exec& exec, const AttentionShape& shape,
                       Matrix<const std::type_identity_t<element<Output>>, Exec> qkv,
                       Matrix<std::type_identity_t<element<Output>>, Exec> probabilities,
                       const Output& output) {
  using Real = element<Output>;
  constexpr const char* where = "heddle::kernel::attention_forward";
  impl::expect_attention_shape(where, shape);
  expect_shape(where, "qkv", qkv, shape.rows(), 3 * shape.width);
  expect_shape(where, "probabilities", probabilities, shape.probability_rows(), shape.context);
  expect_shape(where, "output", output, shape.rows(), shape.width);
  if (shape.rows() == 0 || shape.width == 0) return;
  const auto scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(shape.head_width())));
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence)
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const impl::HeadBlocks block{shape, sequence, head};
      gemm(exec, Transpose::no, Transpose::yes, scale, block.columns(qkv, 0), block.columns(qkv, 1),
           0, block.square(probabilities));
    }
  Kokkos::parallel_for("heddle::kernel::attention_forward_softmax",
                       Kokkos::RangePolicy<Exec>(exec, 0, shape.probability_rows()),
                       impl::CausalSoftmax<Exec, Real>{probabilities});
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence)
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const impl::HeadBlocks block{shape, sequence, head};
      gemm(exec, Transpose::no, Transpose::no, 1, block.square(probabilities),
           block.columns(qkv, 2), 0, block.columns(output, 0));
    }
}

/// Writes qkv_grad. `scratch` has the shape of the probabilities and holds nothing before or after.
/// Attention has no weights. In `exec`'s order as gemm is.
template <ExecutionSpace Exec, MatrixOn<Exec> QkvGrad>
void attention_backward_input(
    const Exec& exec, const AttentionShape& shape,
    Matrix<const std::type_identity_t<element<QkvGrad>>, Exec> qkv,
    Matrix<const std::type_identity_t<element<QkvGrad>>, Exec> probabilities,
    Matrix<const std::type_identity_t<element<QkvGrad>>, Exec> output_grad,
    Matrix<std::type_identity_t<element<QkvGrad>>, Exec> scratch, const QkvGrad& qkv_grad) {
  using Real = element<QkvGrad>;
  constexpr const char* where = "heddle::kernel::attention_backward_input";
  impl::expect_attention_shape(where, shape);
  expect_shape(where, "qkv", qkv, shape.rows(), 3 * shape.width);
  expect_shape(where, "probabilities", probabilities, shape.probability_rows(), shape.context);
  expect_shape(where, "output_grad", output_grad, shape.rows(), shape.width);
  expect_shape(where, "scratch", scratch, shape.probability_rows(), shape.context);
  expect_shape(where, "qkv_grad", qkv_grad, shape.rows(), 3 * shape.width);
  if (shape.rows() == 0 || shape.width == 0) return;
  const auto scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(shape.head_width())));
  constexpr auto no = Transpose::no, yes = Transpose::yes;
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence)
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const impl::HeadBlocks block{shape, sequence, head};
      const auto d_output = block.columns(output_grad, 0);
      gemm(exec, no, yes, 1, d_output, block.columns(qkv, 2), 0, block.square(scratch));
      gemm(exec, yes, no, 1, block.square(probabilities), d_output, 0, block.columns(qkv_grad, 2));
    }
  Kokkos::parallel_for("heddle::kernel::attention_backward_input_softmax",
                       Kokkos::RangePolicy<Exec>(exec, 0, shape.probability_rows()),
                       impl::SoftmaxBackward<Exec, Real>{probabilities, scratch});
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence)
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const impl::HeadBlocks block{shape, sequence, head};
      const auto d_scores = block.square(scratch);
      gemm(exec, no, no, scale, d_scores, block.columns(qkv, 1), 0, block.columns(qkv_grad, 0));
      gemm(exec, yes, no, scale, d_scores, block.columns(qkv, 0), 0, block.columns(qkv_grad, 1));
    }
}

}  // namespace heddle::inline v0::kernel
