// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The contrastive loss of two towers (as Radford et al., "CLIP", 2021, have it): of all texts in
/// the microbatch an image shall pick its own by the product of the embeddings, and the reverse.

#include <cstddef>

#include <heddle/heddle.hpp>

#include "space.hpp"

namespace examples {

/// One tower's side of it. With rows u of this tower and v of the other, logits L = u v^T / sqrt(w)
/// for embeddings of w numbers, the loss of n pairs is
///   mean over rows of (log sum exp L_row - L_own) / 2 + the same over columns,
/// of which each tower adds the rows that are its own: the other's columns are its rows.
class JointLoss {
 public:
  using Input = heddle::kernel::Matrix<const double, Space>;
  using Output = heddle::kernel::Matrix<double, Space>;

  JointLoss() = default;
  /// For microbatches of `rows` pairs, so many in a step; their losses are averaged over the step.
  JointLoss(std::size_t rows, std::size_t microbatches);

  /// The gradient of the whole loss for `own`, and this tower's share of the loss.
  void backward(const Space& exec, heddle::Item m, const Input& own, const Input& other,
                const Output& own_grad);
  /// This tower's share of the loss of a microbatch; 0 before its backward.
  [[nodiscard]] double share(heddle::Item m) const;

 private:
  Kokkos::View<double**, Kokkos::LayoutRight, Space> m_logits;
  Kokkos::View<double*, Space> m_rows, m_columns, m_shares;
  double m_weight = 0;
};

}  // namespace examples
