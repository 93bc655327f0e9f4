// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Layer: a forward and a backward function with their parameters, from which a LayerStage is made.

#include <concepts>
#include <cstddef>
#include <tuple>

#include <heddle/kernel/view.hpp>

namespace heddle::inline v0 {

/// The arguments of a layer's forward. The input is a matrix of rows x inputs(), and the output is
/// rows x outputs().
template <class T, kernel::ExecutionSpace Exec>
struct LayerForward {
  const Exec& exec;                     ///< where kernels go
  kernel::Matrix<const T, Exec> input;  ///< the samples of a microbatch, one per row
  kernel::Matrix<T, Exec> output;       ///< to be computed
};

/// The arguments of a layer's backward functions.
template <class T, kernel::ExecutionSpace Exec>
struct LayerBackward {
  const Exec& exec;                           ///< where kernels go
  kernel::Matrix<const T, Exec> input;        ///< the input of its forward
  kernel::Matrix<const T, Exec> output;       ///< the output of its forward
  kernel::Matrix<const T, Exec> output_grad;  ///< empty in backward_weight
  kernel::Matrix<T, Exec> input_grad;         ///< to be computed; empty in backward_weight
  kernel::Matrix<T, Exec> delta;              ///< from backward_input to backward_weight, as output
};

/// A layer whose backward pass is split, so that schedules can place its halves separately.
/// `backward_weight` gets in `delta` what `backward_input` has stored there.
template <class L>
concept SplitLayer = requires(
    L& layer, const LayerBackward<typename L::scalar_type, typename L::execution_space>& backward) {
  layer.backward_input(backward);
  layer.backward_weight(backward);
};

/// One layer of a model, with its parameters:
///
/// - `inputs()` and `outputs()`: the numbers that a sample has before and after it;
/// - `parameters()`: a std::tie of its Parameters, each a value and its gradient;
/// - `forward(LayerForward)`: computes `output`;
/// - `backward(LayerBackward)`: computes `input_grad` and adds to the gradients. A SplitLayer has
///   two functions in its place.
///
/// The functions queue kernels in `exec` and need not wait for them. `parameters()` may change what
/// its Parameters refer to between calls, so kernels use the Views of the moment.
template <class L>
concept Layer = std::movable<L> &&
    requires(L& layer, const L& constant,
             const LayerForward<typename L::scalar_type, typename L::execution_space>& forward) {
  { constant.inputs() } -> std::convertible_to<std::size_t>;
  { constant.outputs() } -> std::convertible_to<std::size_t>;
  std::tuple_size<decltype(layer.parameters())>::value;
  layer.forward(forward);
} &&(SplitLayer<L> ||
     requires(L & layer,
              const LayerBackward<typename L::scalar_type, typename L::execution_space>& backward) {
       layer.backward(backward);
     });

}  // namespace heddle::inline v0
