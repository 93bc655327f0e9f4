// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The contrastive loss of two towers (as in Radford et al., "CLIP", 2021). By the product of
/// embeddings, an image should select its own text among all texts of the microbatch, and a text
/// its own image.

#include <cstddef>

#include <heddle/heddle.hpp>

#include "space.hpp"

namespace examples {

/// One tower's part of the loss. Let u be the rows of this tower, v those of the other tower, and L
/// = u v^T / sqrt(w) the logits for embeddings of w numbers. The loss of n pairs is
///   mean over rows of (log sum exp L_row - L_own) / 2 + the same over columns.
/// Each tower computes the part of its own rows. The columns of one tower are the rows of the
/// other.
class JointLoss {
 public:
  using Input = heddle::kernel::Matrix<const double, Space>;
  using Output = heddle::kernel::Matrix<double, Space>;

  JointLoss() = default;
  /// Constructs the loss of microbatches of `rows` pairs. Losses are averaged over the microbatches
  /// of a step.
  JointLoss(std::size_t rows, std::size_t microbatches);

  /// Computes the gradient of the whole loss for `own`, and this tower's share of the loss.
  void backward(const Space& exec, heddle::Item m, const Input& own, const Input& other,
                const Output& own_grad);
  /// Returns this tower's share of the loss of a microbatch; 0 before its backward.
  [[nodiscard]] double share(heddle::Item m) const;

 private:
  Kokkos::View<double**, Kokkos::LayoutRight, Space> m_logits;
  Kokkos::View<double*, Space> m_rows, m_columns, m_shares;
  double m_weight = 0;
};

}  // namespace examples
