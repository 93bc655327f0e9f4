// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The residual connection: the sum of two activations. Its gradient is the output's gradient for
/// both inputs, so backward is the same call.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {
namespace impl {

template <ExecutionSpace Exec, class Real>
struct AddTo {
  Matrix<const Real, Exec> addend;
  Matrix<Real, Exec> sum;
  KOKKOS_FUNCTION void operator()(std::size_t row, std::size_t column) const {
    sum(row, column) += addend(row, column);
  }
};

}  // namespace impl

/// Computes sum += addend, for matrices of equal shape. The kernel is queued in `exec`.
template <ExecutionSpace Exec, MatrixOn<Exec> Sum>
void residual_add(const Exec& exec, Matrix<const std::type_identity_t<element<Sum>>, Exec> addend,
                  const Sum& sum) {
  impl::expect_shape("heddle::kernel::residual_add", "addend", addend, sum.extent(0),
                     sum.extent(1));
  impl::for_each_element("heddle::kernel::residual_add", exec, sum.extent(0), sum.extent(1),
                         impl::AddTo<Exec, element<Sum>>{addend, sum});
}

}  // namespace heddle::inline v0::kernel
