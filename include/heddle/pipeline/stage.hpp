// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The PipelineStage concept: a piece of a model that a pipeline can run forward and backward.

#include <concepts>
#include <cstddef>

#include <heddle/core/index.hpp>

namespace heddle::inline v0 {

/// What PipelineStage::forward takes, as one.
template <class T>
struct ForwardCall {
  Item item = {};            ///< the microbatch
  const T* input = nullptr;  ///< input_size() elements, null where that is 0
  T* output = nullptr;       ///< output_size() elements, null where that is 0
  T* saved = nullptr;        ///< saved_size() elements
};

/// What PipelineStage::backward_input and backward_weight take, as one.
template <class T>
struct BackwardCall {
  Item item = {};                  ///< the microbatch
  const T* input = nullptr;        ///< as its forward had it
  const T* saved = nullptr;        ///< what its forward left there
  const T* output_grad = nullptr;  ///< output_size() elements, null where that is 0
  T* input_grad = nullptr;         ///< input_size() elements, null where that is 0
  T* delta = nullptr;              ///< delta_size() elements
};

/// Consecutive layers of a model on one rank, with their parameters.
///
/// All memory is the caller's: pointers to elements of `scalar_type` in `memory_space` (a Kokkos
/// memory space). Several microbatches are in flight at once, each with its own input, output and
/// saved memory, but that forwards without backward passes share one `saved`. Calls come from one
/// thread, in the schedule's order, and may return before their kernels end; `fence` waits for all
/// of them.
///
/// - Sizes are in elements per microbatch and constant. `input_size` is 0 for the stage that takes
///   the data itself, `output_size` 0 for the one that computes the loss. In inference the last
///   stage may have an output, which is the result.
/// - `forward(m, input, output, saved)` leaves in `saved` what the backward calls need.
/// - `backward_input(m, input, saved, output_grad, input_grad, delta)` computes the gradient of the
///   input and leaves in `delta` what `backward_weight` needs; `input_grad` is null where
///   `input_size` is 0.
/// - `backward_weight(m, input, saved, output_grad, delta)` adds to `gradients()`.
/// - `update` steps the optimiser with `gradients()`, which it may use up.
///
/// A stage may also have
///
/// - `use_parameters(pointer)`: from now on `parameters()` is `pointer`, memory of the caller with
///   values in it, which all calls read and `update` steps. Schedules that update while
///   microbatches are under way need it: they keep several versions of the parameters.
/// - `added_gradients() -> std::span<scalar_type>`: where `backward_weight` adds, if that is more
///   than the `parameter_count()` elements of `gradients()`, because `update` sums it over other
///   ranks and steps a share of it. What replicas within the pipeline have is added to it before.
/// - `loss(m) -> double`: the loss of a microbatch of this step, after its forward.
/// - `forward_and_backward(forward, other, backward)`: a ForwardCall, a stage of the same type (or
///   itself) and a BackwardCall: `forward` here, and `backward_input` and `backward_weight` of
///   `other`, in whatever order suits, so that one computes while the other communicates;
///   `other.zero_gradients()` has come before it where the gradients begin with this pair. Called
///   for an F that a schedule has fused with the B after it, unless both are of one stage with two
///   versions of its parameters. Such pairs, those whose B is first, and all where a stage has no
///   such function, are done one after the other.
template <class S>
concept PipelineStage = std::movable<S> &&
    requires(S& stage, const S& constant, Item item, const typename S::scalar_type* in,
             typename S::scalar_type* out) {
  typename S::memory_space;
  { constant.input_size() } -> std::convertible_to<std::size_t>;
  { constant.output_size() } -> std::convertible_to<std::size_t>;
  { constant.saved_size() } -> std::convertible_to<std::size_t>;
  { constant.delta_size() } -> std::convertible_to<std::size_t>;
  { constant.parameter_count() } -> std::convertible_to<std::size_t>;
  { stage.parameters() } -> std::same_as<typename S::scalar_type*>;
  { stage.gradients() } -> std::same_as<typename S::scalar_type*>;
  stage.forward(item, in, out, out);
  stage.backward_input(item, in, in, in, out, out);
  stage.backward_weight(item, in, in, in, in);
  stage.zero_gradients();
  stage.update();
  stage.fence();
};

}  // namespace heddle::inline v0
