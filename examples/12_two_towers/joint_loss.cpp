// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cmath>

#include <heddle/kernel/linalg.hpp>

#include "joint_loss.hpp"

namespace examples {

namespace {

using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Space>;
using Vector = Kokkos::View<double*, Space>;

/// The logarithms of the sums of exponentials of row i and of column i.
struct LogSums {
  Matrix logits;
  Vector rows, columns;

  KOKKOS_FUNCTION void operator()(int i) const {
    const auto n = static_cast<int>(logits.extent(0));
    double most_in_row = logits(i, 0), most_in_column = logits(0, i);
    for (int j = 1; j < n; ++j) {
      most_in_row = Kokkos::max(most_in_row, logits(i, j));
      most_in_column = Kokkos::max(most_in_column, logits(j, i));
    }
    double row = 0, column = 0;
    for (int j = 0; j < n; ++j) {
      row += Kokkos::exp(logits(i, j) - most_in_row);
      column += Kokkos::exp(logits(j, i) - most_in_column);
    }
    rows(i) = most_in_row + Kokkos::log(row);
    columns(i) = most_in_column + Kokkos::log(column);
  }
};

struct Share {
  Matrix logits;
  Vector rows;
  double weight;
  Vector shares;
  int item;

  KOKKOS_FUNCTION void operator()(int) const {
    double sum = 0;
    for (std::size_t i = 0; i < rows.extent(0); ++i) sum += rows(i) - logits(i, i);
    shares(item) = weight * sum;
  }
};

/// Replaces the logits of row i by the gradient of the loss with respect to them.
struct LogitGradient {
  Matrix logits;
  Vector rows, columns;
  double weight;

  KOKKOS_FUNCTION void operator()(int i) const {
    const auto n = static_cast<int>(logits.extent(0));
    for (int j = 0; j < n; ++j) {
      const double picked = Kokkos::exp(logits(i, j) - rows(i)) +
                            Kokkos::exp(logits(i, j) - columns(j)) - (i == j ? 2 : 0);
      logits(i, j) = weight * picked;
    }
  }
};

}  // namespace

JointLoss::JointLoss(std::size_t rows, std::size_t microbatches)
    : m_logits("example::two_towers::logits", rows, rows),
      m_rows("example::two_towers::rows", rows),
      m_columns("example::two_towers::columns", rows),
      m_shares("example::two_towers::shares", microbatches),
      m_weight(1.0 / (2.0 * static_cast<double>(rows * microbatches))) {}

void JointLoss::backward(const Space& exec, heddle::Item m, const Input& own, const Input& other,
                         const Output& own_grad) {
  namespace hk = heddle::kernel;
  const auto n = static_cast<int>(m_logits.extent(0));
  const double scale = 1 / std::sqrt(static_cast<double>(own.extent(1)));
  const Output logits(m_logits.data(), m_logits.extent(0), m_logits.extent(1));
  hk::gemm(exec, hk::Transpose::no, hk::Transpose::yes, scale, own, other, 0, logits);
  const Kokkos::RangePolicy<Space> pairs(exec, 0, n);
  Kokkos::parallel_for("example::two_towers::log_sums", pairs,
                       LogSums{m_logits, m_rows, m_columns});
  Kokkos::parallel_for("example::two_towers::share", Kokkos::RangePolicy<Space>(exec, 0, 1),
                       Share{m_logits, m_rows, m_weight, m_shares, static_cast<int>(+m)});
  Kokkos::parallel_for("example::two_towers::logit_gradient", pairs,
                       LogitGradient{m_logits, m_rows, m_columns, m_weight});
  hk::gemm(exec, hk::Transpose::no, hk::Transpose::no, scale, logits, other, 0, own_grad);
}

double JointLoss::share(heddle::Item m) const {
  double value = 0;
  if (+m < m_shares.extent(0)) Kokkos::deep_copy(value, Kokkos::subview(m_shares, +m));
  return value;
}

}  // namespace examples
