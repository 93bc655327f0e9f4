// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Counted: a number that counts its operations, and layers of a network written with it.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/systems/aiperf/operation_count.hpp>

namespace heddle::test {

/// The operations of all Counted numbers since the last reset.
struct OperationCounts {
  std::int64_t add = 0, multiply = 0, compare = 0, divide = 0, exponential = 0;

  [[nodiscard]] std::int64_t weighted(const systems::OperationWeights& weights) const {
    return add * weights.add + multiply * weights.multiply + compare * weights.compare +
           divide * weights.divide + exponential * weights.exponential;
  }
};

/// A number whose operations are counted, by kind.
struct Counted {
  inline static OperationCounts counts;

  double value = 0;

  friend Counted operator+(Counted a, Counted b) {
    ++counts.add;
    return {a.value + b.value};
  }
  friend Counted operator-(Counted a, Counted b) {
    ++counts.add;
    return {a.value - b.value};
  }
  friend Counted operator*(Counted a, Counted b) {
    ++counts.multiply;
    return {a.value * b.value};
  }
  friend Counted operator/(Counted a, Counted b) {
    ++counts.divide;
    return {a.value / b.value};
  }
  friend bool operator<(Counted a, Counted b) {
    ++counts.compare;
    return a.value < b.value;
  }
  friend Counted exp(Counted a) {
    ++counts.exponential;
    return {std::exp(a.value)};
  }
};

using CountedVector = std::vector<Counted>;

/// Runs `work` and returns the weighted operations in it.
template <class Work>
std::int64_t count_operations(const systems::OperationWeights& weights, Work&& work) {
  Counted::counts = {};
  work();
  return Counted::counts.weighted(weights);
}

/// Counts a convolution, written as loops: forward, both gradients, and the step of the weights.
inline systems::OperationCount count_layer(const systems::ConvolutionLayer& layer,
                                           const systems::OperationWeights& weights) {
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  const std::int64_t rows = layer.height + layer.kernel - 1;  // with the border
  const std::int64_t columns = layer.width + layer.kernel - 1;
  CountedVector x(size(layer.inputs * rows * columns), {1});
  CountedVector dx(x.size());
  CountedVector w(size(layer.outputs * layer.inputs * layer.kernel * layer.kernel), {0.5});
  CountedVector dw(w.size());
  CountedVector y(size(layer.outputs * layer.height * layer.width));
  const auto loops = [&](auto&& body) {
    for (std::int64_t o = 0; o < layer.outputs; ++o)
      for (std::int64_t r = 0; r < layer.height; ++r)
        for (std::int64_t c = 0; c < layer.width; ++c)
          for (std::int64_t i = 0; i < layer.inputs; ++i)
            for (std::int64_t a = 0; a < layer.kernel; ++a)
              for (std::int64_t b = 0; b < layer.kernel; ++b)
                body(size((o * layer.height + r) * layer.width + c),
                     size(((o * layer.inputs + i) * layer.kernel + a) * layer.kernel + b),
                     size((i * rows + r + a) * columns + c + b));
  };
  systems::OperationCount count;
  count.forward = count_operations(weights, [&] {
    loops([&](std::size_t out, std::size_t k, std::size_t in) { y[out] = y[out] + w[k] * x[in]; });
  });
  count.backward = count_operations(weights, [&] {
    loops([&](std::size_t out, std::size_t k, std::size_t in) { dw[k] = dw[k] + y[out] * x[in]; });
    if (!layer.first)
      loops(
          [&](std::size_t out, std::size_t k, std::size_t in) { dx[in] = dx[in] + w[k] * y[out]; });
    for (std::size_t k = 0; k < w.size(); ++k) w[k] = w[k] - Counted{0.1} * dw[k];
  });
  return count;
}

/// Counts a dense layer in the same way. The sum of an output begins with its bias.
inline systems::OperationCount count_layer(const systems::DenseLayer& layer,
                                           const systems::OperationWeights& weights) {
  const auto inputs = static_cast<std::size_t>(layer.inputs);
  const auto outputs = static_cast<std::size_t>(layer.outputs);
  CountedVector x(inputs, {1}), dx(inputs), w(inputs * outputs, {0.5}), dw(w.size());
  CountedVector bias(outputs, {0.25}), y(outputs);
  systems::OperationCount count;
  count.forward = count_operations(weights, [&] {
    for (std::size_t o = 0; o < outputs; ++o) {
      y[o] = bias[o];
      for (std::size_t i = 0; i < inputs; ++i) y[o] = y[o] + w[o * inputs + i] * x[i];
    }
  });
  count.backward = count_operations(weights, [&] {
    for (std::size_t o = 0; o < outputs; ++o)
      for (std::size_t i = 0; i < inputs; ++i) {
        dw[o * inputs + i] = dw[o * inputs + i] + y[o] * x[i];
        dx[i] = dx[i] + w[o * inputs + i] * y[o];
      }
    for (std::size_t k = 0; k < w.size(); ++k) w[k] = w[k] - Counted{0.1} * dw[k];
    for (std::size_t o = 0; o < outputs; ++o) bias[o] = bias[o] - Counted{0.1} * y[o];
  });
  return count;
}

/// Counts the forward pass of a layer of elements.
inline systems::OperationCount count_layer(const systems::ElementLayer& layer,
                                           const systems::OperationWeights& weights) {
  using Kind = systems::ElementLayer::Kind;
  const auto n = static_cast<std::size_t>(layer.elements);
  const auto kernel = static_cast<std::size_t>(layer.kernel);
  const CountedVector x(n * kernel * kernel, {1});
  CountedVector y(n);
  return {count_operations(weights,
                           [&] {
                             Counted sum;
                             for (std::size_t i = 0; i < n; ++i) switch (layer.kind) {
                                 case Kind::relu:
                                   if (Counted{0} < x[i]) y[i] = x[i];
                                   break;
                                 case Kind::sum: y[i] = x[i] + x[i]; break;
                                 case Kind::max_pool:
                                   y[i] = {-1e300};
                                   for (std::size_t k = 0; k < kernel * kernel; ++k)
                                     if (y[i] < x[i + k * n]) y[i] = x[i + k * n];
                                   break;
                                 case Kind::average_pool:
                                   y[i] = x[i];
                                   for (std::size_t k = 1; k < kernel; ++k)
                                     y[i] = y[i] + x[i + k * n];
                                   y[i] = y[i] * Counted{1.0 / static_cast<double>(kernel)};
                                   break;
                                 case Kind::softmax:
                                   y[i] = exp(x[i]);
                                   sum = i == 0 ? y[i] : sum + y[i];
                                   break;
                               }
                             if (layer.kind == Kind::softmax)
                               for (Counted& one : y) one = one / sum;
                           }),
          0};
}

}  // namespace heddle::test
