// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The linear layer y = x W + b: x is tokens x inputs, W inputs x outputs, b outputs.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/impl/loops.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {
namespace impl {

template <ExecutionSpace Exec, class Real>
struct FillRows {
  Vector<const Real, Exec> row_value;
  Matrix<Real, Exec> matrix;
  KOKKOS_FUNCTION void operator()(std::size_t row, std::size_t column) const {
    matrix(row, column) = row_value(column);
  }
};

}  // namespace impl

/// Computes output = input weight + bias, in the stream order of gemm.
template <ExecutionSpace Exec, MatrixOn<Exec> Output>
void linear_forward(const Exec& exec,
                    Matrix<const std::type_identity_t<element<Output>>, Exec> input,
                    Matrix<const std::type_identity_t<element<Output>>, Exec> weight,
                    Vector<const std::type_identity_t<element<Output>>, Exec> bias,
                    const Output& output) {
  expect_shape("heddle::kernel::linear_forward", "bias", bias, output.extent(1));
  impl::for_each_element("heddle::kernel::linear_forward_bias", exec, output.extent(0),
                         output.extent(1), impl::FillRows<Exec, element<Output>>{bias, output});
  gemm(exec, Transpose::no, Transpose::no, 1, input, weight, 1, output);
}

/// Computes input_grad = output_grad weight^T, in the stream order of gemm.
template <ExecutionSpace Exec, MatrixOn<Exec> InputGrad>
void linear_backward_input(const Exec& exec,
                           Matrix<const std::type_identity_t<element<InputGrad>>, Exec> weight,
                           Matrix<const std::type_identity_t<element<InputGrad>>, Exec> output_grad,
                           const InputGrad& input_grad) {
  gemm(exec, Transpose::no, Transpose::yes, 1, output_grad, weight, 0, input_grad);
}

/// Adds the gradients of the weights: weight_grad += input^T output_grad, and bias_grad += column
/// sums of output_grad, with rows in ascending order. The stream order is that of gemm.
template <ExecutionSpace Exec, MatrixOn<Exec> WeightGrad>
void linear_backward_weight(
    const Exec& exec, Matrix<const std::type_identity_t<element<WeightGrad>>, Exec> input,
    Matrix<const std::type_identity_t<element<WeightGrad>>, Exec> output_grad,
    const WeightGrad& weight_grad,
    Vector<std::type_identity_t<element<WeightGrad>>, Exec> bias_grad) {
  using Real = element<WeightGrad>;
  expect_shape("heddle::kernel::linear_backward_weight", "bias_grad", bias_grad,
               output_grad.extent(1));
  gemm(exec, Transpose::yes, Transpose::no, 1, input, output_grad, 1, weight_grad);
  impl::add_column_sums("heddle::kernel::linear_backward_weight_bias", exec, output_grad.extent(0),
                        impl::ElementOf<Exec, Real>{output_grad}, bias_grad);
}

}  // namespace heddle::inline v0::kernel
