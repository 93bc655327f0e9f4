// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GELU in its tanh form: x (1 + tanh u) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3) (Hendrycks
/// and Gimpel, 2016). It is computed as x s with s = 1 / (1 + exp(-2 u)), which is the same
/// function with one exponential. For x -> -inf, the exponential overflows to inf and x s becomes
/// -0.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/vector_math.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {
namespace impl {

inline constexpr double gelu_slope = 1.5957691216057308;  // 2 sqrt(2 / pi)
inline constexpr double gelu_cubic = 0.044715;

template <class Real>
KOKKOS_INLINE_FUNCTION Real gelu_gate(Real x) {
  const Real twice_u = Real(gelu_slope) * x * (Real(1) + Real(gelu_cubic) * x * x);
  return Real(1) / (Real(1) + vector_exp(-twice_u));
}

template <ExecutionSpace Exec, class Real>
struct GeluForward {
  Matrix<const Real, Exec> input;
  Matrix<Real, Exec> output;
  KOKKOS_FUNCTION void operator()(std::size_t row, std::size_t column) const {
    const Real x = input(row, column);
    output(row, column) = x * gelu_gate(x);
  }
};

/// d(x s)/dx = s + x s (1 - s) d(2u)/dx.
template <ExecutionSpace Exec, class Real>
struct GeluBackward {
  Matrix<const Real, Exec> input;
  Matrix<const Real, Exec> output_grad;
  Matrix<Real, Exec> input_grad;
  KOKKOS_FUNCTION void operator()(std::size_t row, std::size_t column) const {
    const Real x = input(row, column);
    const Real s = gelu_gate(x);
    const Real slope = Real(gelu_slope) * (Real(1) + Real(3 * gelu_cubic) * x * x);
    input_grad(row, column) = output_grad(row, column) * (s + x * s * (Real(1) - s) * slope);
  }
};

}  // namespace impl

/// Computes output = gelu(input), element by element. It may work in place. The kernel is queued in
/// `exec`.
template <ExecutionSpace Exec, MatrixOn<Exec> Output>
void gelu_forward(const Exec& exec, Matrix<const std::type_identity_t<element<Output>>, Exec> input,
                  const Output& output) {
  impl::expect_shape("heddle::kernel::gelu_forward", "input", input, output.extent(0),
                     output.extent(1));
  impl::for_each_element("heddle::kernel::gelu_forward", exec, output.extent(0), output.extent(1),
                         impl::GeluForward<Exec, element<Output>>{input, output});
}

/// Computes input_grad = output_grad gelu'(input). `input_grad` may be `output_grad`. The kernel is
/// queued in `exec`. GELU has no weights.
template <ExecutionSpace Exec, MatrixOn<Exec> InputGrad>
void gelu_backward_input(const Exec& exec,
                         Matrix<const std::type_identity_t<element<InputGrad>>, Exec> input,
                         Matrix<const std::type_identity_t<element<InputGrad>>, Exec> output_grad,
                         const InputGrad& input_grad) {
  constexpr const char* where = "heddle::kernel::gelu_backward_input";
  const std::size_t rows = input_grad.extent(0), columns = input_grad.extent(1);
  impl::expect_shape(where, "input", input, rows, columns);
  impl::expect_shape(where, "output_grad", output_grad, rows, columns);
  impl::for_each_element(
      where, exec, rows, columns,
      impl::GeluBackward<Exec, element<InputGrad>>{input, output_grad, input_grad});
}

}  // namespace heddle::inline v0::kernel
