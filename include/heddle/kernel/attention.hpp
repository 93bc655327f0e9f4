// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Causal multi-head attention (Vaswani et al., 2017) of a batch of sequences. For each sequence
/// and head, O = P V with P = softmax(Q K^T / sqrt(d)), over the positions up to the query's own.
/// Forward stores P for backward: sequences * heads * context^2 elements.

#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/internal/fits.hpp>
#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/internal/rows.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/kernel/vector_math.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {

/// The layout of the matrices of an attention. Rows of `qkv` and of the output are sequence *
/// context + position. The columns of `qkv` are all columns of Q, then of K, then of V. Inside
/// each, the heads follow one another with width / heads columns.
struct AttentionShape {
  std::size_t sequences;  ///< sequences of a microbatch
  std::size_t context;    ///< positions in each
  std::size_t heads;      ///< number of heads; must divide the width
  std::size_t width;      ///< columns of Q, of K, of V and of the output

  /// Returns the number of rows of `qkv` and of the output.
  [[nodiscard]] std::size_t rows() const { return sequences * context; }
  /// Returns the number of columns of one head.
  [[nodiscard]] std::size_t head_width() const { return width / heads; }
  /// Returns the number of rows of the probabilities, of `context` columns each. Rows are numbered
  /// by sequence, then head, then position.
  [[nodiscard]] std::size_t probability_rows() const { return sequences * heads * context; }
};

namespace impl {

/// Softmax of each row over the positions that it sees; zero beyond.
template <ExecutionSpace Exec, class Real>
struct CausalSoftmax {
  Matrix<Real, Exec> scores;  // becomes the probabilities
  std::size_t begin;          // the position of row 0
  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const std::size_t seen = begin + row + 1;
    Real* const p = &scores(row, 0);
    const Real top = workers.largest(p, seen);
    workers.each(seen, [=](std::size_t j) { p[j] = vector_exp(p[j] - top); });
    const Real share =
        Real(1) / workers.template sum<Real>(seen, [=](std::size_t j) { return p[j]; });
    workers.each(seen, [=](std::size_t j) { p[j] *= share; });
    workers.each(scores.extent(1) - seen, [=](std::size_t j) { p[seen + j] = 0; });
  }
};

/// dS = P (dP - sum(dP P)), elementwise in a row; zero where P is, so beyond one's own position.
template <ExecutionSpace Exec, class Real>
struct SoftmaxBackward {
  Matrix<const Real, Exec> probabilities;
  Matrix<Real, Exec> grad;  // dP, becomes dS
  std::size_t begin;
  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const std::size_t seen = begin + row + 1;
    const Real* const p = &probabilities(row, 0);
    Real* const g = &grad(row, 0);
    const Real along = workers.template sum<Real>(seen, [=](std::size_t j) { return g[j] * p[j]; });
    workers.each(seen, [=](std::size_t j) { g[j] = p[j] * (g[j] - along); });
    workers.each(grad.extent(1) - seen, [=](std::size_t j) { g[seen + j] = 0; });
  }
};

/// Positions of a head that go through the products together: few, so that hardly anything that
/// they do not see is multiplied and their scores stay in the cache; all on a device, where a
/// launch costs more.
template <ExecutionSpace Exec>
inline constexpr std::size_t causal_block = runs_on_host<Exec> ? 64 : ~std::size_t{0};

/// A block of positions of one (sequence, head) pair, as Views into the whole matrices. What these
/// positions see ends with the block; what sees them begins with it.
struct HeadBlock {
  AttentionShape shape;
  std::size_t sequence, head, begin, end;

  using Range = std::pair<std::size_t, std::size_t>;
  [[nodiscard]] Range own() const { return {begin, end}; }
  [[nodiscard]] Range seen() const { return {0, end}; }
  [[nodiscard]] Range later() const { return {begin, shape.context}; }

  /// The head's columns in part 0, 1 or 2 (Q, K or V) of `view`.
  template <class View>
  [[nodiscard]] auto columns(const View& view, const Range& positions, std::size_t part = 0) const {
    const std::size_t row = sequence * shape.context;
    const std::size_t column = part * shape.width + head * shape.head_width();
    return Kokkos::subview(view, Range(row + positions.first, row + positions.second),
                           Range(column, column + shape.head_width()));
  }
  /// The part of a View of scores or probabilities: `queries` x `keys`.
  template <class View>
  [[nodiscard]] auto scores(const View& view, const Range& queries, const Range& keys) const {
    const std::size_t row = (sequence * shape.heads + head) * shape.context;
    return Kokkos::subview(view, Range(row + queries.first, row + queries.second), keys);
  }
};

/// Calls visit(HeadBlock) for every block of positions of every head of every sequence; in a head
/// from the last positions to the first, so that a block comes after all that sees it.
template <ExecutionSpace Exec, class Visit>
void for_each_head_block(const AttentionShape& shape, const Visit& visit) {
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence)
    for (std::size_t head = 0; head < shape.heads; ++head)
      for (std::size_t end = shape.context; end > 0;) {
        const std::size_t begin = (end - 1) / causal_block<Exec> * causal_block<Exec>;
        visit(HeadBlock{shape, sequence, head, begin, end});
        end = begin;
      }
}

inline void expect_attention_shape(const char* where, const AttentionShape& shape) {
  expects(shape.heads > 0 && shape.width % shape.heads == 0, [&] {
    return ErrorInfo{where, "the width must be a multiple of the number of heads",
                     text("width ", shape.width, ", heads ", shape.heads)};
  });
  using heddle::impl::product_fits;
  expects(product_fits({shape.sequences, shape.context, 3, shape.width}) &&
              product_fits({shape.sequences, shape.context, shape.context, shape.heads}),
          [&] {
            return ErrorInfo{where, "the elements of the matrices do not fit in 63 bits",
                             text("sequences ", shape.sequences, ", context ", shape.context,
                                  ", heads ", shape.heads, ", width ", shape.width)};
          });
}

}  // namespace impl

/// Computes the attention. `qkv` is rows x 3 width, and `output` is rows x width. `probabilities`
/// (probability_rows x context) is stored for backward; elements after a row's own position have no
/// meaning. It calls gemm for each sequence, head and block of positions, in the stream order of
/// gemm.
template <ExecutionSpace Exec, MatrixOn<Exec> Output>
void attention_forward(const Exec& exec, const AttentionShape& shape,
                       Matrix<const std::type_identity_t<element<Output>>, Exec> qkv,
                       Matrix<std::type_identity_t<element<Output>>, Exec> probabilities,
                       const Output& output) {
  using Real = element<Output>;
  constexpr const char* where = "heddle::kernel::attention_forward";
  impl::expect_attention_shape(where, shape);
  impl::expect_shape(where, "qkv", qkv, shape.rows(), 3 * shape.width);
  impl::expect_shape(where, "probabilities", probabilities, shape.probability_rows(),
                     shape.context);
  impl::expect_shape(where, "output", output, shape.rows(), shape.width);
  if (shape.rows() == 0 || shape.width == 0) return;
  const auto scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(shape.head_width())));
  constexpr auto no = Transpose::no, yes = Transpose::yes;
  impl::for_each_head_block<Exec>(shape, [&](const impl::HeadBlock& at) {
    const auto scores = at.scores(probabilities, at.own(), at.seen());
    gemm(exec, no, yes, scale, at.columns(qkv, at.own(), 0), at.columns(qkv, at.seen(), 1), 0,
         scores);
    impl::for_each_row("heddle::kernel::attention_forward_softmax", exec, scores.extent(0),
                       impl::CausalSoftmax<Exec, Real>{scores, at.begin});
    gemm(exec, no, no, 1, scores, at.columns(qkv, at.seen(), 2), 0, at.columns(output, at.own()));
  });
}

/// Computes `qkv_grad`. `scratch` has the shape of the probabilities; its contents have no meaning
/// before and after. Attention has no weights. The stream order is that of gemm.
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
  impl::expect_shape(where, "qkv", qkv, shape.rows(), 3 * shape.width);
  impl::expect_shape(where, "probabilities", probabilities, shape.probability_rows(),
                     shape.context);
  impl::expect_shape(where, "output_grad", output_grad, shape.rows(), shape.width);
  impl::expect_shape(where, "scratch", scratch, shape.probability_rows(), shape.context);
  impl::expect_shape(where, "qkv_grad", qkv_grad, shape.rows(), 3 * shape.width);
  if (shape.rows() == 0 || shape.width == 0) return;
  const auto scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(shape.head_width())));
  constexpr auto no = Transpose::no, yes = Transpose::yes;
  impl::for_each_head_block<Exec>(shape, [&](const impl::HeadBlock& at) {
    const auto d_scores = at.scores(scratch, at.own(), at.seen());
    gemm(exec, no, yes, 1, at.columns(output_grad, at.own()), at.columns(qkv, at.seen(), 2), 0,
         d_scores);
    impl::for_each_row("heddle::kernel::attention_backward_input_softmax", exec, d_scores.extent(0),
                       impl::SoftmaxBackward<Exec, Real>{
                           at.scores(probabilities, at.own(), at.seen()), d_scores, at.begin});
    gemm(exec, no, no, scale, d_scores, at.columns(qkv, at.seen(), 1), 0,
         at.columns(qkv_grad, at.own(), 0));
    gemm(exec, yes, no, scale, at.scores(scratch, at.later(), at.own()),
         at.columns(qkv, at.later(), 0), 0, at.columns(qkv_grad, at.own(), 1));
    gemm(exec, yes, no, 1, at.scores(probabilities, at.later(), at.own()),
         at.columns(output_grad, at.later()), 0, at.columns(qkv_grad, at.own(), 2));
  });
}

}  // namespace heddle::inline v0::kernel
