// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Softmax and cross-entropy of logits whose classes are divided along a TensorLine. Ranks tell
/// each other three numbers for each row, never its logits (Shoeybi et al., "Megatron-LM", 2019,
/// section 3). Shapes as in kernel/cross_entropy.hpp.
///
/// The loss is a mean over the rows of the call. A rank that has n of the N rows of a batch
/// multiplies the weight by n / N. The sum of the losses over such ranks is then the mean over all
/// rows.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/cross_entropy.hpp>
#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/internal/rows.hpp>
#include <heddle/kernel/vector_math.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/tensor/row_partial.hpp>
#include <heddle/tensor/tensor_line.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Computes the partial result of this rank's classes, and replaces the logits by exp(x - top),
/// where `top` is the largest logit of this rank.
template <kernel::ExecutionSpace Exec, class Real, class Token>
struct VocabularyRows {
  kernel::Matrix<Real, Exec> logits;
  kernel::Matrix<const Token, Exec> targets;
  Share own;
  kernel::Vector<RowPartial<Real>, Exec> partials;
  kernel::Vector<Real, Exec> tops;
  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    RowPartial<Real> mine;
    MergeRowPartials{}.init(mine);
    const std::size_t target =
        targets(row / targets.extent(1), row % targets.extent(1)) - own.first;  // may wrap
    if (own.count > 0) {
      Real* const p = &logits(row, 0);
      if (target < own.count) mine.target = p[target];
      const Real top = workers.largest(p, own.count);
      workers.each(own.count, [=](std::size_t j) { p[j] = kernel::vector_exp(p[j] - top); });
      mine.softmax.max = top;
      mine.softmax.sum = workers.template sum<Real>(own.count, [=](std::size_t j) { return p[j]; });
    }
    workers.once([&] {
      tops(row) = mine.softmax.max;
      partials(row) = mine;
    });
  }
};

/// Computes the probabilities, and replaces `top` of each row by its loss.
template <kernel::ExecutionSpace Exec, class Real>
struct VocabularyProbabilities {
  kernel::Matrix<Real, Exec> logits;
  kernel::Vector<const RowPartial<Real>, Exec> partials;
  kernel::Vector<Real, Exec> row_loss;
  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const RowPartial<Real>& all = partials(row);
    const Real share = kernel::vector_exp(row_loss(row) - all.softmax.max) / all.softmax.sum;
    workers.each(logits.extent(1), [&](std::size_t j) { logits(row, j) *= share; });
    workers.once(
        [&] { row_loss(row) = Kokkos::log(all.softmax.sum) - (all.target - all.softmax.max); });
  }
};

template <kernel::ExecutionSpace Exec, class Real, class Token>
struct VocabularyCrossEntropyBackward {
  kernel::Matrix<const Real, Exec> probabilities;
  kernel::Matrix<const Token, Exec> targets;
  Share own;
  kernel::Matrix<Real, Exec> logits_grad;
  Real share;
  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const std::size_t target =
        targets(row / targets.extent(1), row % targets.extent(1)) - own.first;
    workers.each(own.count,
                 [&](std::size_t j) { logits_grad(row, j) = share * probabilities(row, j); });
    if (target < own.count) workers.once([&] { logits_grad(row, target) -= share; });
  }
};

}  // namespace impl

/// Computes the pass S of a cross-entropy whose classes are divided over ranks, without a message.
/// It replaces `logits` (N x own.count, of the classes `own`) by exp(x - top), where `top` is the
/// largest logit of this rank in the row, and writes it to `tops`. It writes the partial results of
/// the rows. vocabulary_cross_entropy_merged() goes on with those of all ranks.
template <kernel::ExecutionSpace Exec, kernel::impl::TokensOn<Exec> Targets,
          kernel::MatrixOn<Exec> Logits>
void vocabulary_cross_entropy_partials(
    const Exec& exec, const Targets& targets, const Share& own, const Logits& logits,
    const std::type_identity_t<kernel::Vector<RowPartial<kernel::element<Logits>>, Exec>>& partials,
    const std::type_identity_t<kernel::Vector<kernel::element<Logits>, Exec>>& tops) {
  using Real = kernel::element<Logits>;
  using Token = typename Targets::non_const_value_type;
  constexpr const char* where = "heddle::tensor::vocabulary_cross_entropy_partials";
  const std::size_t rows = logits.extent(0);
  kernel::impl::expect_shape(where, "logits", logits, targets.extent(0) * targets.extent(1),
                             own.count);
  kernel::impl::expect_shape(where, "partials", partials, rows);
  kernel::impl::expect_shape(where, "tops", tops, rows);
  kernel::impl::for_each_row(
      where, exec, rows,
      impl::VocabularyRows<Exec, Real, Token>{logits, targets, own, partials, tops});
}

/// Completes vocabulary_cross_entropy_partials() with `partials`, in which MergeRowPartials has
/// merged the partial results of all ranks. It replaces `logits` by probabilities, `tops` by the
/// losses of the rows, and loss(0) by weight * mean of these losses, which is 0 without rows.
template <kernel::ExecutionSpace Exec, kernel::MatrixOn<Exec> Logits>
void vocabulary_cross_entropy_merged(
    const Exec& exec, double weight, const Logits& logits,
    const std::type_identity_t<kernel::Vector<const RowPartial<kernel::element<Logits>>, Exec>>&
        partials,
    const std::type_identity_t<kernel::Vector<kernel::element<Logits>, Exec>>& tops,
    const kernel::Vector<double, Exec>& loss) {
  using Real = kernel::element<Logits>;
  constexpr const char* where = "heddle::tensor::vocabulary_cross_entropy_merged";
  const std::size_t rows = logits.extent(0);
  kernel::impl::expect_shape(where, "partials", partials, rows);
  kernel::impl::expect_shape(where, "tops", tops, rows);
  kernel::impl::expect_shape(where, "loss", loss, 1);
  kernel::impl::for_each_row(where, exec, rows,
                             impl::VocabularyProbabilities<Exec, Real>{logits, partials, tops});
  const double share = rows > 0 ? weight / static_cast<double>(rows) : 0;
  kernel::impl::for_each_row("heddle::tensor::vocabulary_cross_entropy_merged_sum", exec, 1,
                             kernel::impl::CrossEntropySum<Exec, Real>{tops, loss, share});
}

/// Computes logits_grad = weight / rows * (probabilities - one at the target) for the classes
/// `own`. It may work in place, and sends no message.
template <kernel::ExecutionSpace Exec, kernel::impl::TokensOn<Exec> Targets,
          kernel::MatrixOn<Exec> LogitsGrad>
void vocabulary_cross_entropy_backward_input(
    const Exec& exec, const Targets& targets, const Share& own, double weight,
    const std::type_identity_t<kernel::Matrix<const kernel::element<LogitsGrad>, Exec>>&
        probabilities,
    const LogitsGrad& logits_grad) {
  using Real = kernel::element<LogitsGrad>;
  using Token = typename Targets::non_const_value_type;
  constexpr const char* where = "heddle::tensor::vocabulary_cross_entropy_backward_input";
  const std::size_t rows = logits_grad.extent(0);
  kernel::impl::expect_shape(where, "logits_grad", logits_grad,
                             targets.extent(0) * targets.extent(1), own.count);
  kernel::impl::expect_shape(where, "probabilities", probabilities, rows, own.count);
  const auto share = static_cast<Real>(rows > 0 ? weight / static_cast<double>(rows) : 0);
  kernel::impl::for_each_row(where, exec, rows,
                             impl::VocabularyCrossEntropyBackward<Exec, Real, Token>{
                                 probabilities, targets, own, logits_grad, share});
}

/// Replaces `logits` (N x own.count, of the classes `own`) by probabilities, and writes the loss to
/// loss(0). The loss is weight * mean over the rows of -log softmax(logits)[target]. It is the same
/// on all ranks, and 0 if there are no rows. Targets must be below the number of all classes; the
/// caller checks this. `row_loss` and `partials` are scratch memory with one element per row. The
/// call needs one merge of `partials`. On a line of one rank it is kernel::cross_entropy_forward().
template <class Real, class Exec, kernel::impl::TokensOn<Exec> Targets>
void vocabulary_cross_entropy_forward(
    const TensorLine<Real, Exec>& line, const Exec& exec, const Targets& targets, const Share& own,
    double weight, const typename TensorLine<Real, Exec>::Matrix& logits,
    const std::type_identity_t<kernel::Vector<RowPartial<Real>, Exec>>& partials,
    const typename TensorLine<Real, Exec>::Vector& row_loss,
    const kernel::Vector<double, Exec>& loss) {
  if (line.size() == 1)
    return kernel::cross_entropy_forward(exec, targets, weight, logits, row_loss, loss);
  vocabulary_cross_entropy_partials(exec, targets, own, logits, partials, row_loss);
  line.merge(exec, partials);
  vocabulary_cross_entropy_merged(exec, weight, logits, partials, row_loss, loss);
}

/// Computes the gradients of the logits of this rank's classes. On a line of one rank it is
/// kernel::cross_entropy_backward_input().
template <class Real, class Exec, kernel::impl::TokensOn<Exec> Targets>
void vocabulary_cross_entropy_backward_input(
    const TensorLine<Real, Exec>& line, const Exec& exec, const Targets& targets, const Share& own,
    double weight, const typename TensorLine<Real, Exec>::Input& probabilities,
    const typename TensorLine<Real, Exec>::Matrix& logits_grad) {
  if (line.size() == 1)
    return kernel::cross_entropy_backward_input(exec, targets, weight, probabilities, logits_grad);
  vocabulary_cross_entropy_backward_input(exec, targets, own, weight, probabilities, logits_grad);
}

}  // namespace heddle::inline v0
