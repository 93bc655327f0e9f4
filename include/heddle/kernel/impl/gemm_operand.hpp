// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// An operand of a matrix product, plain or transposed. For the team kernels of gemm.

#include <cstddef>

namespace heddle::inline v0::kernel::impl {

/// op(A) by its strides: a transposed operand is the same memory with the two strides exchanged.
/// One of the two is 1.
template <class Real>
struct Operand {
  const Real* data;
  std::size_t rows, columns, row_stride, column_stride;

  template <class View>
  Operand(const View& view, bool transposed)
      : data(view.data()),
        rows(view.extent(transposed ? 1 : 0)),
        columns(view.extent(transposed ? 0 : 1)),
        row_stride(transposed ? 1 : view.stride(0)),
        column_stride(transposed ? view.stride(0) : 1) {}
};

}  // namespace heddle::inline v0::kernel::impl
