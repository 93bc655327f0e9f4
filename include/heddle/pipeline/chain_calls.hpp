// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ChainLayer: a layer of a Chain, and the arguments of its functions. All arrays are flat.

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <heddle/core/index.hpp>

namespace heddle::inline v0 {

/// An array of parameters of a layer.
struct ChainArray {
  std::string name;      ///< a name of its own in its layer; checkpoints have it
  std::size_t size = 0;  ///< the number of its elements
  /// True if one other layer of the model has an array of this name and size that is the same
  /// parameter. Both layers must give it the same initial values.
  bool tied = false;
};

/// The arguments of a layer's forward pass over a microbatch.
template <class T>
struct ChainForward {
  Item item;                      ///< the number of the microbatch in its step
  std::size_t first;              ///< the first of these samples in the microbatch
  std::size_t samples;            ///< the samples to compute
  std::span<const T> weights;     ///< the arrays of the layer, one after the other
  std::span<const T> input = {};  ///< samples x inputs() elements
  std::span<T> output = {};       ///< samples x outputs() elements, to be computed
  std::span<T> saved = {};        ///< samples x saved() elements, kept for the backward pass
};

/// The arguments of a layer's backward functions over a microbatch.
template <class T>
struct ChainBackward {
  Item item;                            ///< the number of the microbatch in its step
  std::size_t first;                    ///< the first of these samples in the microbatch
  std::size_t samples;                  ///< the samples to compute
  std::span<const T> weights;           ///< the arrays of the layer, one after the other
  std::span<const T> input = {};        ///< the input of its forward pass
  std::span<const T> saved = {};        ///< what its forward pass has saved
  std::span<const T> output_grad = {};  ///< the gradient of its output
  std::span<T> input_grad = {};         ///< to be computed; empty in backward_weight
  std::span<T> delta = {};      ///< samples x delta(), from backward_input to the other half
  std::span<T> gradients = {};  ///< to be added to; empty in backward_input
};

/// The arguments of an update: parameters of one or several layers, and all that belongs to them.
template <class T>
struct ChainUpdate {
  std::span<T> weights;              ///< the parameters, to be changed
  std::span<const T> gradients;      ///< their gradients, summed over microbatches and replicas
  std::vector<std::span<T>> memory;  ///< the arrays of ChainOptions::memory
};

/// A layer whose backward pass is split, so that schedules can place its halves separately.
/// `delta()` is the number of elements for each sample that the first half keeps for the second.
template <class L, class T>
concept SplitChainLayer = requires(L& layer, const L& constant, const ChainBackward<T>& call) {
  { constant.delta() } -> std::convertible_to<std::size_t>;
  layer.backward_input(call);
  layer.backward_weight(call);
};

/// A layer of a Chain, with flat arrays in host memory and no memory of its own:
///
/// - `inputs()`, `outputs()` and `saved()`: the elements for each sample that it reads, computes,
///   and keeps for its backward pass. The first layer has no inputs if it reads the data itself,
///   and the last one no outputs if it computes the loss. Such layers find their data by `item`.
/// - `arrays()`: a vector of the ChainArrays of its parameters; empty if it has none.
/// - `initialize(weights)`: sets the initial values of a std::span of all its parameters.
/// - `forward(ChainForward)`: computes `output` and `saved`. The last layer returns the loss of the
///   microbatch.
/// - `backward(ChainBackward)`: computes `input_grad` and adds to `gradients`. A SplitChainLayer
///   has two functions in its place.
template <class L, class T>
concept ChainLayer = std::copyable<L> &&
    requires(L& layer, const L& constant, const ChainForward<T>& forward, std::span<T> weights) {
  { constant.inputs() } -> std::convertible_to<std::size_t>;
  { constant.outputs() } -> std::convertible_to<std::size_t>;
  { constant.saved() } -> std::convertible_to<std::size_t>;
  { constant.arrays() } -> std::same_as<std::vector<ChainArray>>;
  layer.initialize(weights);
  layer.forward(forward);
} &&(SplitChainLayer<L, T> ||
     requires(L & layer, const ChainBackward<T>& call) { layer.backward(call); });

}  // namespace heddle::inline v0
