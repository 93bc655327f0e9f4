// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Analytic counts of the arithmetic operations of a network's layers, and the score of a search
/// over networks. Source of the counts and the score: the code of AIPerf (Ren and others, "AIPerf:
/// automated machine learning as an AI-HPC benchmark", 2020).

#include <cstdint>
#include <span>
#include <variant>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::systems {

/// The weight of each kind of operation. The defaults are those of AIPerf.
struct OperationWeights {
  std::int64_t add = 1;          ///< an addition or subtraction
  std::int64_t multiply = 1;     ///< a multiplication
  std::int64_t compare = 1;      ///< a comparison
  std::int64_t divide = 4;       ///< a division
  std::int64_t exponential = 8;  ///< an exponential function

  /// Returns the weight of a multiplication whose result is added to a sum.
  [[nodiscard]] constexpr std::int64_t multiply_add() const noexcept { return add + multiply; }
};

/// The weighted operations of one sample.
struct OperationCount {
  std::int64_t forward = 0;   ///< operations of the forward pass
  std::int64_t backward = 0;  ///< operations of the backward pass and the step of plain descent

  /// Returns the operations of a step of training.
  [[nodiscard]] constexpr std::int64_t training() const noexcept { return forward + backward; }
  /// Adds both counts.
  constexpr OperationCount& operator+=(const OperationCount& other) noexcept {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
  friend constexpr bool operator==(const OperationCount&, const OperationCount&) = default;
};

/// A convolution without bias. Zeros at the border count as other elements.
struct ConvolutionLayer {
  std::int64_t inputs = 1;   ///< channels of the input
  std::int64_t outputs = 1;  ///< channels of the output
  std::int64_t kernel = 1;   ///< rows and columns of the kernel
  std::int64_t height = 1;   ///< rows of the output
  std::int64_t width = 1;    ///< columns of the output
  bool first = false;        ///< the first layer of the network: no gradient of its input is needed
};

/// A dense layer with bias. AIPerf counts the additions of the bias nowhere and its step of
/// gradient descent in the backward pass.
struct DenseLayer {
  std::int64_t inputs = 1;   ///< elements of the input
  std::int64_t outputs = 1;  ///< elements of the output
};

/// A layer that AIPerf counts in the forward pass only.
struct ElementLayer {
  /// The function that the layer computes.
  enum class Kind : std::uint8_t {
    relu,          ///< a comparison for each element
    sum,           ///< an addition for each element, such as of a skip connection
    max_pool,      ///< kernel^2 comparisons for each element of the output
    average_pool,  ///< the mean of `kernel` elements for each element of the output
    softmax,       ///< exponentials, their sum and divisions, over `elements` classes
  };
  Kind kind = Kind::relu;     ///< what it computes
  std::int64_t elements = 1;  ///< elements of the output
  std::int64_t kernel = 1;    ///< see Kind
};

/// A layer whose operations are counted.
using CountedLayer = std::variant<ConvolutionLayer, DenseLayer, ElementLayer>;

/// Returns the operations of a convolution: k^2 * inputs * outputs * height * width
/// multiply-additions forward, as many for each gradient, and one for the step of each weight. So
/// the backward pass counts k^2 * inputs * outputs * (4 * height * width + 2), or (2 * ... + 2) in
/// the first layer, with the weights of AIPerf.
/// @throws contract_error if a size is below 1 or a weight below 0, if the kind is unknown, or if
///         the operations do not fit in 63 bits.
[[nodiscard]] OperationCount operations(const ConvolutionLayer& layer,
                                        const OperationWeights& weights = {});
/// Returns the operations of a dense layer: inputs * outputs multiply-additions forward, as many
/// for each gradient, and one for the step of each of (inputs + 1) * outputs parameters.
/// @throws contract_error if a size is below 1 or a weight below 0, if the kind is unknown, or if
///         the operations do not fit in 63 bits.
[[nodiscard]] OperationCount operations(const DenseLayer& layer,
                                        const OperationWeights& weights = {});
/// Returns the operations of a layer that has none in the backward pass by AIPerf's count.
/// @throws contract_error if a size is below 1 or a weight below 0, if the kind is unknown, or if
///         the operations do not fit in 63 bits.
[[nodiscard]] OperationCount operations(const ElementLayer& layer,
                                        const OperationWeights& weights = {});
/// Returns the operations of all layers for one sample.
/// @throws contract_error if a size is below 1 or a weight below 0, if the kind is unknown, or if
///         the operations do not fit in 63 bits.
[[nodiscard]] OperationCount operations(std::span<const CountedLayer> layers,
                                        const OperationWeights& weights = {});

/// A network that a search has trained.
struct TrainedNetwork {
  OperationCount sample;              ///< the operations of one sample
  std::int64_t epochs = 1;            ///< epochs of training, each with an evaluation
  std::int64_t training_images = 0;   ///< images of an epoch
  std::int64_t evaluated_images = 0;  ///< images that are evaluated after an epoch
};

/// Returns the operations of training and evaluation: the sum over the networks of epochs *
/// (training_images * training() + evaluated_images * forward).
/// @throws contract_error if a number is below 0.
[[nodiscard]] double search_operations(std::span<const TrainedNetwork> networks);

/// Returns AIPerf's score of a search: operations / time * |ln(1 - accuracy)| / 1e9.
/// @throws contract_error if a number is not finite, if `operations` is below 0, if `time` is not
///         above 0, or if `accuracy` is not in [0, 1).
[[nodiscard]] double search_score(double operations, Seconds time, double accuracy);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/aiperf/operation_count.ipp>
#endif
