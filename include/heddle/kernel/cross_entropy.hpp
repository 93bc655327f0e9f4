// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Softmax and cross-entropy of a batch of tokens: loss = weight * mean over the rows of -log
/// softmax(logits)[target]. It has no weights of its own.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/embedding.hpp>
#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/internal/rows.hpp>
#include <heddle/kernel/vector_math.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {
namespace impl {

/// Makes probabilities of a row of logits. The row's loss is log(sum exp(x - top)) - (x_target -
/// top), both small numbers, which keeps the digits that log(p) would lose for p near 0.
template <ExecutionSpace Exec, class Real, class Token>
struct CrossEntropyRows {
  Matrix<Real, Exec> logits;
  Matrix<const Token, Exec> targets;
  Vector<Real, Exec> row_loss;
  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const std::size_t classes = logits.extent(1);
    const std::size_t target = targets(row / targets.extent(1), row % targets.extent(1));
    Real* const p = &logits(row, 0);
    const Real of_target = p[target];
    const Real top = workers.largest(p, classes);
    const Real reached = of_target - top;
    workers.each(classes, [=](std::size_t j) { p[j] = vector_exp(p[j] - top); });
    const Real sum = workers.template sum<Real>(classes, [=](std::size_t j) { return p[j]; });
    const Real share = Real(1) / sum;
    workers.each(classes, [=](std::size_t j) { p[j] *= share; });
    workers.once([&] { row_loss(row) = Kokkos::log(sum) - reached; });
  }
};

/// A single row, the losses of all rows, added in double whatever the elements are.
template <ExecutionSpace Exec, class Real>
struct CrossEntropySum {
  Vector<const Real, Exec> row_loss;
  Vector<double, Exec> loss;
  double share;
  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t, const Workers& workers) const {
    const Real* const rows = row_loss.data();
    const double sum = workers.template sum<double>(
        row_loss.extent(0), [=](std::size_t row) { return static_cast<double>(rows[row]); });
    workers.once([&] { loss(0) = share * sum; });
  }
};

template <ExecutionSpace Exec, class Real, class Token>
struct CrossEntropyBackward {
  Matrix<const Real, Exec> probabilities;
  Matrix<const Token, Exec> targets;
  Matrix<Real, Exec> logits_grad;
  Real share;
  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const std::size_t target = targets(row / targets.extent(1), row % targets.extent(1));
    workers.each(logits_grad.extent(1),
                 [&](std::size_t j) { logits_grad(row, j) = share * probabilities(row, j); });
    workers.once([&] { logits_grad(row, target) -= share; });
  }
};

}  // namespace impl

/// Replaces `logits` (rows x classes) by probabilities, and writes the loss to loss(0), or 0 if
/// there are no rows. `targets` is sequences x context, with rows numbered as in the embedding.
/// Each target must be below `classes`; the caller checks this. `row_loss` is scratch memory with
/// one element per row. Sums have the order of impl::ordered_sum, on a GPU that of a team reduction
/// of Kokkos. The kernels are queued in `exec`.
template <ExecutionSpace Exec, impl::TokensOn<Exec> Targets, MatrixOn<Exec> Logits>
void cross_entropy_forward(const Exec& exec, const Targets& targets, double weight,
                           const Logits& logits,
                           Vector<std::type_identity_t<element<Logits>>, Exec> row_loss,
                           Vector<double, Exec> loss) {
  using Real = element<Logits>;
  using Token = typename Targets::non_const_value_type;
  constexpr const char* where = "heddle::kernel::cross_entropy_forward";
  const std::size_t rows = logits.extent(0);
  impl::expect_shape(where, "logits", logits, targets.extent(0) * targets.extent(1),
                     logits.extent(1));
  impl::expect_shape(where, "row_loss", row_loss, rows);
  impl::expect_shape(where, "loss", loss, 1);
  impl::for_each_row(where, exec, rows,
                     impl::CrossEntropyRows<Exec, Real, Token>{logits, targets, row_loss});
  const double share = rows > 0 ? weight / static_cast<double>(rows) : 0;
  impl::for_each_row("heddle::kernel::cross_entropy_forward_sum", exec, 1,
                     impl::CrossEntropySum<Exec, Real>{row_loss, loss, share});
}

/// Computes logits_grad = weight / rows * (probabilities - one at the target). It may work in
/// place. The kernel is queued in `exec`.
template <ExecutionSpace Exec, impl::TokensOn<Exec> Targets, MatrixOn<Exec> LogitsGrad>
void cross_entropy_backward_input(
    const Exec& exec, const Targets& targets, double weight,
    Matrix<const std::type_identity_t<element<LogitsGrad>>, Exec> probabilities,
    const LogitsGrad& logits_grad) {
  using Real = element<LogitsGrad>;
  using Token = typename Targets::non_const_value_type;
  constexpr const char* where = "heddle::kernel::cross_entropy_backward_input";
  const std::size_t rows = logits_grad.extent(0);
  impl::expect_shape(where, "logits_grad", logits_grad, targets.extent(0) * targets.extent(1),
                     logits_grad.extent(1));
  impl::expect_shape(where, "probabilities", probabilities, rows, logits_grad.extent(1));
  const auto share = static_cast<Real>(rows > 0 ? weight / static_cast<double>(rows) : 0);
  impl::for_each_row(
      where, exec, rows,
      impl::CrossEntropyBackward<Exec, Real, Token>{probabilities, targets, logits_grad, share});
}

}  // namespace heddle::inline v0::kernel
