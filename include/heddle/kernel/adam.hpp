// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Adam (Kingma and Ba, 2015) over a flat parameter vector in one pass, with the decoupled weight
/// decay of Loshchilov and Hutter (2019) if asked for.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/view.hpp>

namespace heddle::inline v0::kernel {

/// The parameters of Adam, with the names and defaults of Kingma and Ba. Weight decay is decoupled
/// (Loshchilov and Hutter).
struct AdamOptions {
  double learning_rate = 1e-3;  ///< step length; a parameter changes by at most about this per step
  double beta1 = 0.9;           ///< decay of the mean of the gradients
  double beta2 = 0.999;         ///< decay of the mean of their squares
  double epsilon = 1e-8;        ///< added to the root of the mean square
  double weight_decay = 0;  ///< fraction of each parameter subtracted per step, times learning_rate
};

namespace impl {

/// Checks the numbers of AdamOptions on behalf of the function `where`.
/// @throws contract_error if a number is negative or not finite, or if a decay is not below 1.
inline void expect_valid(const AdamOptions& options, const char* where) {
  const auto expect = [&](const char* name, double value, bool valid, const char* wanted) {
    expects(valid, [&] {
      return ErrorInfo{where, text("a number of AdamOptions is out of range, expected ", wanted),
                       text(name, " = ", value)};
    });
  };
  const auto finite = [&](const char* name, double value) {
    expect(name, value, value >= 0 && value <= std::numeric_limits<double>::max(),
           "a finite number of at least 0");
  };
  const auto decay = [&](const char* name, double value) {
    expect(name, value, value >= 0 && value < 1, "0 <= decay < 1");
  };
  finite("learning_rate", options.learning_rate);
  decay("beta1", options.beta1);
  decay("beta2", options.beta2);
  finite("epsilon", options.epsilon);
  finite("weight_decay", options.weight_decay);
}

template <ExecutionSpace Exec, class Real>
struct AdamStep {
  Vector<const Real, Exec> gradient;
  Vector<Real, Exec> mean, square, parameter;
  Real beta1, beta2, rate, square_correction, epsilon, keep;
  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    const Real g = gradient(i);
    const Real m = beta1 * mean(i) + (Real(1) - beta1) * g;
    const Real v = beta2 * square(i) + (Real(1) - beta2) * g * g;
    mean(i) = m;
    square(i) = v;
    parameter(i) = keep * parameter(i) - rate * m / (Kokkos::sqrt(v * square_correction) + epsilon);
  }
};

}  // namespace impl

/// Performs one step of Adam. `step` counts from 1. `mean` and `square` are the data of the
/// optimiser, and must be 0 before step 1. The bias corrections 1 / (1 - beta^step) are computed in
/// double. The kernel is queued in `exec`.
template <ExecutionSpace Exec, impl::VectorOn<Exec> Parameter>
void adam_update(const Exec& exec, const AdamOptions& options, std::uint64_t step,
                 Vector<const std::type_identity_t<element<Parameter>>, Exec> gradient,
                 Vector<std::type_identity_t<element<Parameter>>, Exec> mean,
                 Vector<std::type_identity_t<element<Parameter>>, Exec> square,
                 const Parameter& parameter) {
  using Real = element<Parameter>;
  constexpr const char* where = "heddle::kernel::adam_update";
  const std::size_t size = parameter.extent(0);
  impl::expect_shape(where, "gradient", gradient, size);
  impl::expect_shape(where, "mean", mean, size);
  impl::expect_shape(where, "square", square, size);
  expects(step > 0, [&] {
    return ErrorInfo{where, "steps must be at least 1, got 0", {}, "count the steps from 1"};
  });
  impl::expect_valid(options, where);
  const auto steps = static_cast<double>(step);
  const double mean_correction = 1 / (1 - std::pow(options.beta1, steps));
  const double square_correction = 1 / (1 - std::pow(options.beta2, steps));
  Kokkos::parallel_for(where,
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, size),
                       impl::AdamStep<Exec, Real>{
                           gradient, mean, square, parameter, static_cast<Real>(options.beta1),
                           static_cast<Real>(options.beta2),
                           static_cast<Real>(options.learning_rate * mean_correction),
                           static_cast<Real>(square_correction), static_cast<Real>(options.epsilon),
                           static_cast<Real>(1 - options.learning_rate * options.weight_decay)});
}

}  // namespace heddle::inline v0::kernel
