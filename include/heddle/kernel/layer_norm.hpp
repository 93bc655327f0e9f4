// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Layer normalisation over the columns of each row (Ba et al., 2016): y = scale z + shift with z =
/// (x - mean) / sqrt(variance + 1e-5). Backward needs z and the inverse deviation of each row, but
/// not x. y can be recomputed from z.

#include <cstddef>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/internal/loops.hpp>
#include <heddle/kernel/internal/rows.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {

/// The number added to the variance of each row.
inline constexpr double layer_norm_epsilon = 1e-5;

namespace impl {

template <ExecutionSpace Exec, class Real>
struct LayerNormForward {
  Matrix<const Real, Exec> input;
  Vector<const Real, Exec> scale, shift;
  Matrix<Real, Exec> normalised;
  Vector<Real, Exec> inverse_deviation;
  Matrix<Real, Exec> output;

  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const std::size_t columns = input.extent(1);
    const Real* const x = &input(row, 0);
    const Real share = Real(1) / static_cast<Real>(columns);
    const Real mean =
        share * workers.template sum<Real>(columns, [=](std::size_t j) { return x[j]; });
    const Real variance = share * workers.template sum<Real>(columns, [=](std::size_t j) {
      return (x[j] - mean) * (x[j] - mean);
    });
    const Real inverse = Real(1) / Kokkos::sqrt(variance + Real(layer_norm_epsilon));
    workers.once([&] { inverse_deviation(row) = inverse; });
    workers.each(columns, [&](std::size_t j) {
      const Real z = (x[j] - mean) * inverse;
      normalised(row, j) = z;
      output(row, j) = scale(j) * z + shift(j);
    });
  }
};

template <ExecutionSpace Exec, class Real>
struct LayerNormOutput {
  Matrix<const Real, Exec> normalised;
  Vector<const Real, Exec> scale, shift;
  Matrix<Real, Exec> output;
  KOKKOS_FUNCTION void operator()(std::size_t row, std::size_t column) const {
    output(row, column) = scale(column) * normalised(row, column) + shift(column);
  }
};

/// With g = scale dy: dx = inverse (g - mean(g) - z mean(g z)), the means over the row.
template <ExecutionSpace Exec, class Real>
struct LayerNormBackwardInput {
  Matrix<const Real, Exec> normalised;
  Vector<const Real, Exec> inverse_deviation, scale;
  Matrix<const Real, Exec> output_grad;
  Matrix<Real, Exec> input_grad;

  template <class Workers>
  KOKKOS_FUNCTION void operator()(std::size_t row, const Workers& workers) const {
    const std::size_t columns = normalised.extent(1);
    const Real* const z = &normalised(row, 0);
    const Real* const dy = &output_grad(row, 0);
    const Real* const s = scale.data();
    const Real share = Real(1) / static_cast<Real>(columns);
    const Real mean =
        share * workers.template sum<Real>(columns, [=](std::size_t j) { return s[j] * dy[j]; });
    const Real along = share * workers.template sum<Real>(
                                   columns, [=](std::size_t j) { return s[j] * dy[j] * z[j]; });
    const Real inverse = inverse_deviation(row);
    workers.each(columns, [&](std::size_t j) {
      input_grad(row, j) = inverse * (s[j] * dy[j] - mean - z[j] * along);
    });
  }
};

template <ExecutionSpace Exec, class Real>
struct ElementProduct {
  Matrix<const Real, Exec> left, right;
  KOKKOS_FUNCTION Real operator()(std::size_t row, std::size_t column) const {
    return left(row, column) * right(row, column);
  }
};

}  // namespace impl

/// Computes the output, and stores the normalised rows and their inverse deviations for backward.
/// Sums over a row have the order of impl::ordered_sum, on a GPU that of a team reduction of
/// Kokkos. The kernel is queued in `exec`.
template <ExecutionSpace Exec, MatrixOn<Exec> Output>
void layer_norm_forward(const Exec& exec,
                        Matrix<const std::type_identity_t<element<Output>>, Exec> input,
                        Vector<const std::type_identity_t<element<Output>>, Exec> scale,
                        Vector<const std::type_identity_t<element<Output>>, Exec> shift,
                        Matrix<std::type_identity_t<element<Output>>, Exec> normalised,
                        Vector<std::type_identity_t<element<Output>>, Exec> inverse_deviation,
                        const Output& output) {
  constexpr const char* where = "heddle::kernel::layer_norm_forward";
  const std::size_t rows = output.extent(0), columns = output.extent(1);
  impl::expect_shape(where, "input", input, rows, columns);
  impl::expect_shape(where, "scale", scale, columns);
  impl::expect_shape(where, "shift", shift, columns);
  impl::expect_shape(where, "normalised", normalised, rows, columns);
  impl::expect_shape(where, "inverse_deviation", inverse_deviation, rows);
  if (columns == 0) return;
  impl::for_each_row(where, exec, rows,
                     impl::LayerNormForward<Exec, element<Output>>{input, scale, shift, normalised,
                                                                   inverse_deviation, output});
}

/// Recomputes the output from the normalised rows. The weight gradient of the next layer reads it.
template <ExecutionSpace Exec, MatrixOn<Exec> Output>
void layer_norm_output(const Exec& exec,
                       Matrix<const std::type_identity_t<element<Output>>, Exec> normalised,
                       Vector<const std::type_identity_t<element<Output>>, Exec> scale,
                       Vector<const std::type_identity_t<element<Output>>, Exec> shift,
                       const Output& output) {
  constexpr const char* where = "heddle::kernel::layer_norm_output";
  impl::expect_shape(where, "normalised", normalised, output.extent(0), output.extent(1));
  impl::expect_shape(where, "scale", scale, output.extent(1));
  impl::expect_shape(where, "shift", shift, output.extent(1));
  impl::for_each_element(
      where, exec, output.extent(0), output.extent(1),
      impl::LayerNormOutput<Exec, element<Output>>{normalised, scale, shift, output});
}

/// Computes the gradient of the input. `input_grad` may be `output_grad`. The kernel is queued in
/// `exec`.
template <ExecutionSpace Exec, MatrixOn<Exec> InputGrad>
void layer_norm_backward_input(
    const Exec& exec, Matrix<const std::type_identity_t<element<InputGrad>>, Exec> normalised,
    Vector<const std::type_identity_t<element<InputGrad>>, Exec> inverse_deviation,
    Vector<const std::type_identity_t<element<InputGrad>>, Exec> scale,
    Matrix<const std::type_identity_t<element<InputGrad>>, Exec> output_grad,
    const InputGrad& input_grad) {
  constexpr const char* where = "heddle::kernel::layer_norm_backward_input";
  const std::size_t rows = input_grad.extent(0), columns = input_grad.extent(1);
  impl::expect_shape(where, "normalised", normalised, rows, columns);
  impl::expect_shape(where, "inverse_deviation", inverse_deviation, rows);
  impl::expect_shape(where, "scale", scale, columns);
  impl::expect_shape(where, "output_grad", output_grad, rows, columns);
  if (columns == 0) return;
  impl::for_each_row(where, exec, rows,
                     impl::LayerNormBackwardInput<Exec, element<InputGrad>>{
                         normalised, inverse_deviation, scale, output_grad, input_grad});
}

/// Adds the gradients of the weights: scale_grad += column sums of output_grad * normalised, and
/// shift_grad += column sums of output_grad. Rows are added in ascending order. The kernel is
/// queued in `exec`.
template <ExecutionSpace Exec, impl::VectorOn<Exec> Grad>
void layer_norm_backward_weight(const Exec& exec,
                                Matrix<const std::type_identity_t<element<Grad>>, Exec> normalised,
                                Matrix<const std::type_identity_t<element<Grad>>, Exec> output_grad,
                                const Grad& scale_grad,
                                Vector<std::type_identity_t<element<Grad>>, Exec> shift_grad) {
  using Real = element<Grad>;
  constexpr const char* where = "heddle::kernel::layer_norm_backward_weight";
  const std::size_t rows = normalised.extent(0), columns = normalised.extent(1);
  impl::expect_shape(where, "output_grad", output_grad, rows, columns);
  impl::expect_shape(where, "scale_grad", scale_grad, columns);
  impl::expect_shape(where, "shift_grad", shift_grad, columns);
  impl::add_column_sums("heddle::kernel::layer_norm_backward_weight_scale", exec, rows,
                        impl::ElementProduct<Exec, Real>{output_grad, normalised},
                        Vector<Real, Exec>(scale_grad));
  impl::add_column_sums("heddle::kernel::layer_norm_backward_weight_shift", exec, rows,
                        impl::ElementOf<Exec, Real>{output_grad}, shift_grad);
}

}  // namespace heddle::inline v0::kernel
