// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of operation_count.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/aiperf/operation_count.hpp>

namespace heddle::inline v0::systems {

namespace impl {

using NamedSize = std::pair<const char*, std::int64_t>;

/// Checks the sizes of a layer and the weights. Their product must fit in 63 bits with the largest
/// weight.
inline void expect_sizes(const char* layer, std::initializer_list<NamedSize> sizes,
                         const OperationWeights& weights) {
  constexpr const char* where = "heddle::systems::operations";
  double product = 1;
  for (const auto& [name, size] : sizes) {
    expects(size >= 1, [&, name = name, size = size] {
      return ErrorInfo{where, "a size is below 1", text("a ", layer, " with ", name, " = ", size)};
    });
    product *= static_cast<double>(size);
  }
  double heaviest = 0;
  for (const auto& [name, weight] : {NamedSize{"add", weights.add},
                                     {"multiply", weights.multiply},
                                     {"compare", weights.compare},
                                     {"divide", weights.divide},
                                     {"exponential", weights.exponential}}) {
    expects(weight >= 0, [&, name = name, weight = weight] {
      return ErrorInfo{where, "a weight is below 0",
                       text("OperationWeights::", name, " = ", weight)};
    });
    heaviest = std::max(heaviest, static_cast<double>(weight));
  }
  // At most 3 passes, each with two operations.
  expects(6 * product * heaviest < 0x1p62, [&] {
    std::string given;
    for (const auto& [name, size] : sizes) given += text(name, " = ", size, ", ");
    return ErrorInfo{where, "the operations do not fit in 63 bits",
                     text("a ", layer, " with ", given, "weights up to ", heaviest)};
  });
}

}  // namespace impl

HEDDLE_INLINE OperationCount operations(const ConvolutionLayer& layer,
                                        const OperationWeights& weights) {
  impl::expect_sizes("convolution",
                     {{"inputs", layer.inputs},
                      {"outputs", layer.outputs},
                      {"kernel", layer.kernel},
                      {"kernel", layer.kernel},
                      {"height", layer.height},
                      {"width", layer.width}},
                     weights);
  const std::int64_t parameters = layer.kernel * layer.kernel * layer.inputs * layer.outputs;
  const std::int64_t product = parameters * layer.height * layer.width * weights.multiply_add();
  return {product, (layer.first ? 1 : 2) * product + parameters * weights.multiply_add()};
}

HEDDLE_INLINE OperationCount operations(const DenseLayer& layer, const OperationWeights& weights) {
  // A bias adds an input.
  impl::expect_sizes("dense layer",
                     {{"inputs", layer.inputs}, {"outputs", layer.outputs}, {"biases", 2}},
                     weights);
  const std::int64_t product = layer.inputs * layer.outputs * weights.multiply_add();
  return {product, 2 * product + (layer.inputs + 1) * layer.outputs * weights.multiply_add()};
}

HEDDLE_INLINE OperationCount operations(const ElementLayer& layer,
                                        const OperationWeights& weights) {
  heddle::impl::expect_enumerator("heddle::systems::operations", "ElementLayer::kind", layer.kind,
                                  ElementLayer::Kind::softmax);
  impl::expect_sizes(
      "layer of elements",
      {{"elements", layer.elements}, {"kernel", layer.kernel}, {"kernel", layer.kernel}}, weights);
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
  for (std::size_t n = 0; n < networks.size(); ++n) {
    const TrainedNetwork& network = networks[n];
    for (const auto& [name, number] : {impl::NamedSize{"sample.forward", network.sample.forward},
                                       {"sample.backward", network.sample.backward},
                                       {"epochs", network.epochs},
                                       {"training_images", network.training_images},
                                       {"evaluated_images", network.evaluated_images}})
      expects(number >= 0, [&, name = name, number = number] {
        return ErrorInfo{"heddle::systems::search_operations", "a number is below 0",
                         text("networks[", n, "].", name, " = ", number)};
      });
    sum +=
        static_cast<double>(network.epochs) * (static_cast<double>(network.training_images) *
                                                   (static_cast<double>(network.sample.forward) +
                                                    static_cast<double>(network.sample.backward)) +
                                               static_cast<double>(network.evaluated_images) *
                                                   static_cast<double>(network.sample.forward));
  }
  return sum;
}

HEDDLE_INLINE double search_score(double operations, Seconds time, double accuracy) {
  expects(heddle::impl::is_time(operations) && time > 0 && std::isfinite(time) && accuracy >= 0 &&
              accuracy < 1,
          [&] {
            return ErrorInfo{
                "heddle::systems::search_score",
                "operations are at least 0, a time is above 0, both are finite, and an accuracy is "
                "in [0, 1)",
                text("operations = ", operations, ", time = ", time, ", accuracy = ", accuracy)};
          });
  return operations / time * std::abs(std::log(1 - accuracy)) / 1e9;
}

}  // namespace heddle::inline v0::systems
