// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The linear layer y = x W + b: x is tokens x inputs, W inputs x outputs, b outputs.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/core/linkage.hpp>
#include <heddle/kernel/impl/host_exec.hpp>
#include <heddle/kernel/internal/loops.hpp>
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

/// linear_forward() and linear_backward_weight() on Matrices. Those of the host are compiled once.
template <ExecutionSpace Exec, class Real>
void linear_forward(const Exec& exec, Matrix<const Real, Exec> input,
                    Matrix<const Real, Exec> weight, Vector<const Real, Exec> bias,
                    Matrix<Real, Exec> output) {
  expect_shape("heddle::kernel::linear_forward", "bias", bias, output.extent(1));
  for_each_element("heddle::kernel::linear_forward_bias", exec, output.extent(0), output.extent(1),
                   FillRows<Exec, Real>{bias, output});
  gemm<Exec, Real>(exec, Transpose::no, Transpose::no, 1, input, weight, 1, output);
}

template <ExecutionSpace Exec, class Real>
void linear_backward_weight(const Exec& exec, Matrix<const Real, Exec> input,
                            Matrix<const Real, Exec> output_grad, Matrix<Real, Exec> weight_grad,
                            Vector<Real, Exec> bias_grad) {
  expect_shape("heddle::kernel::linear_backward_weight", "bias_grad", bias_grad,
               output_grad.extent(1));
  gemm<Exec, Real>(exec, Transpose::yes, Transpose::no, 1, input, output_grad, 1, weight_grad);
  add_column_sums("heddle::kernel::linear_backward_weight_bias", exec, output_grad.extent(0),
                  ElementOf<Exec, Real>{output_grad}, bias_grad);
}

}  // namespace impl

/// Computes output = input weight + bias, in the stream order of gemm.
template <ExecutionSpace Exec, MatrixOn<Exec> Output>
void linear_forward(const Exec& exec,
                    Matrix<const std::type_identity_t<element<Output>>, Exec> input,
                    Matrix<const std::type_identity_t<element<Output>>, Exec> weight,
                    Vector<const std::type_identity_t<element<Output>>, Exec> bias,
                    const Output& output) {
  impl::linear_forward<Exec, element<Output>>(exec, input, weight, bias, output);
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
  impl::linear_backward_weight<Exec, element<WeightGrad>>(exec, input, output_grad, weight_grad,
                                                          bias_grad);
}

}  // namespace heddle::inline v0::kernel

#if HEDDLE_DEFINES_KERNEL
#include <heddle/kernel/linear.ipp>
#else
namespace heddle::inline v0::kernel::impl {
extern template void linear_forward<HostExec, float>(const HostExec&, ConstHostMatrix<float>,
                                                     ConstHostMatrix<float>, ConstHostVector<float>,
                                                     HostMatrix<float>);
extern template void linear_backward_weight<HostExec, float>(const HostExec&,
                                                             ConstHostMatrix<float>,
                                                             ConstHostMatrix<float>,
                                                             HostMatrix<float>, HostVector<float>);
extern template void linear_forward<HostExec, double>(const HostExec&, ConstHostMatrix<double>,
                                                      ConstHostMatrix<double>,
                                                      ConstHostVector<double>, HostMatrix<double>);
extern template void linear_backward_weight<HostExec, double>(const HostExec&,
                                                              ConstHostMatrix<double>,
                                                              ConstHostMatrix<double>,
                                                              HostMatrix<double>,
                                                              HostVector<double>);
}  // namespace heddle::inline v0::kernel::impl
#endif
