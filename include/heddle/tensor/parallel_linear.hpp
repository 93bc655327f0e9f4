// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The linear layer y = x W + b divided along a TensorLine. It is divided by the columns of W, so
/// that each rank computes some outputs, or by the rows of W, so that each rank uses some inputs. A
/// layer divided by rows after a layer divided by columns needs no message between them (Shoeybi et
/// al., "Megatron-LM", 2019, section 3).
///
/// N is the number of all rows, and n is the number of rows that this rank has between divided
/// layers, see TensorLine::rows(). `room` is scratch memory for all rows, N x width. It is not
/// accessed unless rows are sharded. All kernels run in `exec`, in order.

#include <heddle/kernel/linalg.hpp>
#include <heddle/kernel/linear.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/tensor/tensor_line.hpp>

namespace heddle::inline v0 {

/// Computes the forward pass of a layer divided by columns: output (N x own outputs) = all rows of
/// input (n x inputs) times weight (inputs x own outputs) + bias (own outputs). It needs one
/// gather() with `room` (N x inputs).
template <class Real, class Exec>
void column_parallel_forward(const TensorLine<Real, Exec>& line, const Exec& exec,
                             const typename TensorLine<Real, Exec>::Input& input,
                             const typename TensorLine<Real, Exec>::Matrix& room,
                             const typename TensorLine<Real, Exec>::Input& weight,
                             const typename TensorLine<Real, Exec>::InputVector& bias,
                             const typename TensorLine<Real, Exec>::Matrix& output) {
  kernel::linear_forward(exec, line.gather(exec, input, room), weight, bias, output);
}

/// Computes the gradient of the input of a layer divided by columns: input_grad (n x inputs) = this
/// rank's rows of the sum over ranks of output_grad (N x own outputs) times weight^T. It needs one
/// sum() with `room` (N x inputs).
template <class Real, class Exec>
void column_parallel_backward_input(const TensorLine<Real, Exec>& line, const Exec& exec,
                                    const typename TensorLine<Real, Exec>::Input& weight,
                                    const typename TensorLine<Real, Exec>::Input& output_grad,
                                    const typename TensorLine<Real, Exec>::Matrix& room,
                                    const typename TensorLine<Real, Exec>::Matrix& input_grad) {
  kernel::linear_backward_input(exec, weight, output_grad, line.term(room, input_grad));
  line.sum(exec, room, input_grad);
}

/// Adds the gradients of a layer divided by columns, over all rows: weight_grad += input^T
/// output_grad, and bias_grad += column sums of output_grad. It needs one gather() of input, so the
/// forward pass does not have to keep the gathered input.
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

/// Computes the forward pass of a layer divided by rows: output (n x outputs) = this rank's rows of
/// the sum over ranks of input (N x own inputs) times weight (own inputs x outputs), plus bias
/// (outputs). All ranks have the bias, and one of them adds it. It needs one sum() with `room` (N x
/// outputs).
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

/// Computes the gradient of the input of a layer divided by rows: input_grad (N x own inputs) = all
/// rows of output_grad (n x outputs) times weight^T. It needs one gather() of output_grad. The
/// result of the gather() stays in `room` (N x outputs) for row_parallel_backward_weight().
template <class Real, class Exec>
void row_parallel_backward_input(const TensorLine<Real, Exec>& line, const Exec& exec,
                                 const typename TensorLine<Real, Exec>::Input& weight,
                                 const typename TensorLine<Real, Exec>::Input& output_grad,
                                 const typename TensorLine<Real, Exec>::Matrix& room,
                                 const typename TensorLine<Real, Exec>::Matrix& input_grad) {
  kernel::linear_backward_input(exec, weight, line.gather(exec, output_grad, room), input_grad);
}

/// Adds the gradients of a layer divided by rows, over all rows: weight_grad += input^T
/// output_grad, and bias_grad += column sums of output_grad. It reads the gathered output_grad that
/// row_parallel_backward_input() has left in `room`, so it sends no message. All ranks get the same
/// bias_grad.
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
