// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The linear layer y = x W + b divided along a TensorLine: by the columns of W, so that each rank
/// has some of the outputs, or by its rows, so that each has some of the inputs. One after the
/// other they need no message in between (Shoeybi et al., "Megatron-LM", 2019, section 3).
///
/// N is the number of all rows, n of those that this rank has between divided layers, see
/// TensorLine::rows(). `room` is scratch for all rows, N x width, and is not touched unless rows
/// are sharded. All kernels go to `exec`, in order.

#include <heddle/kernel/linalg.hpp>
#include <heddle/kernel/linear.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/tensor/tensor_line.hpp>

namespace heddle::inline v0 {

/// Divided by columns: output (N x own outputs) = all rows of input (n x inputs) times weight
/// (inputs x own outputs) + bias (own outputs). One gather(), in `room` (N x inputs).
template <class Real, class Exec>
void column_parallel_forward(const TensorLine<Real, Exec>& line, const Exec& exec,
                             const typename TensorLine<Real, Exec>::Input& input,
                             const typename TensorLine<Real, Exec>::Matrix& room,
                             const typename TensorLine<Real, Exec>::Input& weight,
                             const typename TensorLine<Real, Exec>::InputVector& bias,
                             const typename TensorLine<Real, Exec>::Matrix& output) {
  kernel::linear_forward(exec, line.gather(exec, input, room), weight, bias, output);
}

/// input_grad (n x inputs) = this rank's rows of the sum over the ranks of output_grad (N x own
/// outputs) times weight^T. One sum(), in `room` (N x inputs).
template <class Real, class Exec>
void column_parallel_backward_input(const TensorLine<Real, Exec>& line, const Exec& exec,
                                    const typename TensorLine<Real, Exec>::Input& weight,
                                    const typename TensorLine<Real, Exec>::Input& output_grad,
                                    const typename TensorLine<Real, Exec>::Matrix& room,
                                    const typename TensorLine<Real, Exec>::Matrix& input_grad) {
  kernel::linear_backward_input(exec, weight, output_grad, line.term(room, input_grad));
  line.sum(exec, room, input_grad);
}

/// weight_grad += input^T output_grad and bias_grad += column sums of output_grad, over all rows.
/// One gather() of input, which then need not have been kept since forward.
template <class Real, class Exec>
void column_parallel_backward_weight(const TensorLine<Real, Exec>& line, const Exec& exec,
                                     const typename TensorLine<Real, Exec>::Input& input,
                                     const typename TensorLine<Real, Exec>::Matrix& room,
                                     const typename TensorLine<Real, Exec>::Input& output_grad,
                                     const typename TensorLine<Real, Exec>::Matrix& weight_grad,
                                     const typename TensorLine<Real, Exec>::Vector& bias_grad) {
  kernel::linear_backward_weight(exec, line.gather(exec, input, room), output_grad, weight_grad,
                                 bias_grad);
}

/// Divided by rows: output (n x outputs) = this rank's rows of the sum over the ranks of input
/// (N x own inputs) times weight (own inputs x outputs), plus bias (outputs), which all ranks have
/// and one adds. One sum(), in `room` (N x outputs).
template <class Real, class Exec>
void row_parallel_forward(const TensorLine<Real, Exec>& line, const Exec& exec,
                          const typename TensorLine<Real, Exec>::Input& input,
                          const typename TensorLine<Real, Exec>::Input& weight,
                          const typename TensorLine<Real, Exec>::InputVector& bias,
                          const typename TensorLine<Real, Exec>::Matrix& room,
                          const typename TensorLine<Real, Exec>::Matrix& output) {
  using kernel::Transpose;
  const auto term = line.term(room, output);
  if (line.leads())
    kernel::linear_forward(exec, input, weight, bias, term);
  else
    kernel::gemm(exec, Transpose::no, Transpose::no, 1, input, weight, 0, term);
  line.sum(exec, room, output);
}

/// input_grad (N x own inputs) = all rows of output_grad (n x outputs) times weight^T. One gather()
/// of output_grad in `room` (N x outputs), where row_parallel_backward_weight() finds it again.
template <class Real, class Exec>
void row_parallel_backward_input(const TensorLine<Real, Exec>& line, const Exec& exec,
                                 const typename TensorLine<Real, Exec>::Input& weight,
                                 const typename TensorLine<Real, Exec>::Input& output_grad,
                                 const typename TensorLine<Real, Exec>::Matrix& room,
                                 const typename TensorLine<Real, Exec>::Matrix& input_grad) {
  kernel::linear_backward_input(exec, weight, line.gather(exec, output_grad, room), input_grad);
}

/// weight_grad += input^T output_grad and bias_grad += column sums of output_grad, over all rows:
/// those that row_parallel_backward_input() has left in `room`. Nothing travels; all ranks have the
/// same bias_grad.
template <class Real, class Exec>
void row_parallel_backward_weight(const TensorLine<Real, Exec>& line, const Exec& exec,
                                  const typename TensorLine<Real, Exec>::Input& input,
                                  const typename TensorLine<Real, Exec>::Input& output_grad,
                                  const typename TensorLine<Real, Exec>::Matrix& room,
                                  const typename TensorLine<Real, Exec>::Matrix& weight_grad,
                                  const typename TensorLine<Real, Exec>::Vector& bias_grad) {
  kernel::linear_backward_weight(exec, input, line.gathered(output_grad, room), weight_grad,
                                 bias_grad);
}

}  // namespace heddle::inline v0
