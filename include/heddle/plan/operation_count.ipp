// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of operation_count.hpp.

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <variant>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/operation_count.hpp>

namespace heddle::inline v0::plan {

namespace impl {

inline void expect_sizes(const char* layer, std::initializer_list<std::int64_t> sizes) {
  for (const std::int64_t size : sizes)
    expects(size >= 1, [&] {
      return ErrorInfo{"heddle::plan::operations", "a size is below 1",
                       text("a ", layer, " with a size of ", size)};
    });
}

}  // namespace impl

HEDDLE_INLINE OperationCount operations(const ConvolutionLayer& layer,
                                        const OperationWeights& weights) {
  impl::expect_sizes("convolution",
                     {layer.inputs, layer.outputs, layer.kernel, layer.height, layer.width});
  const std::int64_t parameters = layer.kernel * layer.kernel * layer.inputs * layer.outputs;
  const std::int64_t product = parameters * layer.height * layer.width * weights.multiply_add();
  return {product, (layer.first ? 1 : 2) * product + parameters * weights.multiply_add()};
}

HEDDLE_INLINE OperationCount operations(const DenseLayer& layer, const OperationWeights& weights) {
  impl::expect_sizes("dense layer", {layer.inputs, layer.outputs});
  const std::int64_t product = layer.inputs * layer.outputs * weights.multiply_add();
  return {product, 2 * product + (layer.inputs + 1) * layer.outputs * weights.multiply_add()};
}

HEDDLE_INLINE OperationCount operations(const ElementLayer& layer,
                                        const OperationWeights& weights) {
  impl::expect_sizes("layer of elements", {layer.elements, layer.kernel});
  const std::int64_t n = layer.elements;
  switch (layer.kind) {
    case ElementLayer::Kind::relu: return {n * weights.compare, 0};
    case ElementLayer::Kind::sum: return {n * weights.add, 0};
    case ElementLayer::Kind::max_pool:
      return {n * layer.kernel * layer.kernel * weights.compare, 0};
    case ElementLayer::Kind::average_pool:
      return {n * ((layer.kernel - 1) * weights.add + weights.multiply), 0};
    case ElementLayer::Kind::softmax: break;
  }
  return {n * (weights.exponential + weights.divide) + (n - 1) * weights.add, 0};
}

HEDDLE_INLINE OperationCount operations(std::span<const CountedLayer> layers,
                                        const OperationWeights& weights) {
  OperationCount sum;
  for (const CountedLayer& layer : layers)
    sum += std::visit([&](const auto& one) { return operations(one, weights); }, layer);
  return sum;
}

HEDDLE_INLINE double search_operations(std::span<const TrainedNetwork> networks) {
  double sum = 0;
  for (const TrainedNetwork& network : networks)
    sum +=
        static_cast<double>(network.epochs) * (static_cast<double>(network.training_images) *
                                                   static_cast<double>(network.sample.training()) +
                                               static_cast<double>(network.evaluated_images) *
                                                   static_cast<double>(network.sample.forward));
  return sum;
}

HEDDLE_INLINE double search_score(double operations, Seconds time, double accuracy) {
  expects(time > 0 && accuracy >= 0 && accuracy < 1, [&] {
    return ErrorInfo{"heddle::plan::search_score", "a time is above 0 and an accuracy is in [0, 1)",
                     text("time = ", time, ", accuracy = ", accuracy)};
  });
  return operations / time * std::abs(std::log(1 - accuracy)) / 1e9;
}

}  // namespace heddle::inline v0::plan
