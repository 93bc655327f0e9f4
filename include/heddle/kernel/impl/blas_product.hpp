// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BlasProduct: a matrix product as the arguments of a BLAS, by rows or by columns. For the
/// adaptors of gemm.

#include <cstddef>
#include <limits>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/transpose.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel::impl {

/// The product C = alpha op(A) op(B) + beta C, where C is rows x columns. A leading dimension is
/// the distance of the rows of a matrix, or of its columns if the library stores these one after
/// another.
template <class Real>
struct BlasProduct {
  Transpose transpose_a, transpose_b;
  int rows, columns, depth;
  Real alpha;
  const Real* a;
  int leading_a;
  const Real* b;
  int leading_b;
  Real beta;
  Real* c;
  int leading_c;

  /// Returns the same product for a library with column-major matrices. For such a library, a
  /// row-major matrix is its transpose, so the product is C^T = op(B)^T op(A)^T.
  [[nodiscard]] BlasProduct by_columns() const {
    return {transpose_b, transpose_a, columns,   rows, depth, alpha,    b,
            leading_b,   a,           leading_a, beta, c,     leading_c};
  }
};

/// Returns the product of row-major matrices, whose shapes fit.
/// @throws contract_error if a number does not fit into BLAS's 32-bit index.
template <class A, class C>
[[nodiscard]] BlasProduct<element<C>> blas_product(Transpose transpose_a, Transpose transpose_b,
                                                   element<C> alpha, const A& a, const A& b,
                                                   element<C> beta, const C& c) {
  const std::size_t depth = a.extent(transpose_a == Transpose::yes ? 0 : 1);
  constexpr std::size_t most = std::numeric_limits<int>::max();
  expects(c.extent(0) <= most && c.extent(1) <= most && depth <= most && a.stride(0) <= most &&
              b.stride(0) <= most && c.stride(0) <= most,
          [&] {
            return ErrorInfo{"heddle::kernel::gemm", "a size or stride exceeds BLAS's 32-bit index",
                             text("A is ", shape_text(a), ", B is ", shape_text(b)),
                             "split the product"};
          });
  const auto number = [](std::size_t size) { return static_cast<int>(size); };
  return {transpose_a,
          transpose_b,
          number(c.extent(0)),
          number(c.extent(1)),
          number(depth),
          alpha,
          a.data(),
          number(a.stride(0)),
          b.data(),
          number(b.stride(0)),
          beta,
          c.data(),
          number(c.stride(0))};
}

}  // namespace heddle::inline v0::kernel::impl
