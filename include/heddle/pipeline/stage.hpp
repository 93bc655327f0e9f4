// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The PipelineStage concept: a piece of a model that a pipeline can run forward and backward.

#include <concepts>
#include <cstddef>

#include <heddle/core/index.hpp>

namespace heddle::inline v0 {

/// The arguments of PipelineStage::forward.
template <class T>
struct ForwardCall {
  Item item = {};            ///< the microbatch
  const T* input = nullptr;  ///< input_size() elements; null if that is 0
  T* output = nullptr;       ///< output_size() elements; null if that is 0
  T* saved = nullptr;        ///< saved_size() elements
  /// The samples to compute, if ranks divide the microbatch, it may be smaller than others (see
  /// StageShares), or the stage runs on a PlannedMesh: at most StagePlace::samples. The memory has
  /// room for so many. 0: not divided.
  std::size_t samples = 0;
};

/// The arguments of PipelineStage::backward_input and backward_weight.
template <class T>
struct BackwardCall {
  Item item = {};            ///< the microbatch
  const T* input = nullptr;  ///< the input of its forward
  const T* saved = nullptr;  ///< the values that its forward saved
  /// output_size() elements, as many for each partner in the loss, null if that is 0
  const T* output_grad = nullptr;
  T* input_grad = nullptr;  ///< input_size() elements; null if that is 0
  T* delta = nullptr;       ///< delta_size() elements
  std::size_t samples = 0;  ///< the samples to compute, as in ForwardCall
};

/// Consecutive layers of a model on one rank, with their parameters. LayerStage makes one from a
/// list of layers.
///
/// The caller owns all memory. Pointers refer to elements of `scalar_type` in `memory_space`, a
/// Kokkos memory space. Several microbatches are in flight at once, each with its own input, output
/// and saved memory; but forwards without backward passes share one `saved`. All calls come from
/// one thread, in the schedule's order. They may return before their kernels end; `fence` waits for
/// all of them.
///
/// In a step a stage is called in this order: `begin_step` (optional), forwards and backward passes
/// of the microbatches, `update`. `zero_gradients` comes before the first `backward_weight` of the
/// step, and before the first one after each update in schedules that update several times a step.
///
/// - Sizes are in elements per microbatch, and constant. If the schedule has StageShares, they are
///   those of StagePlace::samples samples, and a call may have fewer. `input_size` is 0 for the
///   stage that reads the data itself, `output_size` is 0 for the one that computes the loss. In
///   inference the last stage may have an output, which is the result.
/// - `forward(ForwardCall)` computes the output, and stores in `saved` what the backward passes
///   need. They do not get the output: a stage that needs it again saves a copy.
/// - `backward_input(BackwardCall)` computes the gradient of the input, and stores in `delta` what
///   `backward_weight` needs.
/// - `backward_weight(BackwardCall)` adds to `gradients()`. Gradients are summed over microbatches
///   and replicas, never divided: a loss that is a mean over the batch divides itself by the number
///   of samples of the whole batch, over all microbatches and replicas.
/// - `update` steps the optimiser with `gradients()`, which it may overwrite. If it makes a
///   collective call, all ranks of the communicator must make it, and equally often: a rank calls
///   `update` for each of its stages. CallOptions::watch_library names a rank that does not.
///
/// A stage may also have
///
/// - `begin_step(arguments...)`: takes the arguments of Runner::step(), on every stage of the rank,
///   before the first forward of a step. Stages that read data or compute a loss take them here.
/// - `microbatches()`: the number of microbatches that the last `begin_step` gave it, or a
///   std::optional without a value if it got none of the data. A step throws contract_error if its
///   schedule has another number.
/// - `loss(m) -> double`: the loss of microbatch `m` of this step, after its forward. The result of
///   Runner::step() is the sum over all microbatches and replicas.
/// - `loss_partners()`: the most stages with which it may share a loss, 1 without it. Its backward
///   passes get all their outputs.
/// - `backward(BackwardCall)`: `backward_input` and `backward_weight` in one. It is called if the
///   schedule does not split them.
/// - `use_parameters(pointer)`: from now on `parameters()` is `pointer`, memory of the caller that
///   holds values; all calls read it and `update` steps it. Schedules that update while
///   microbatches are in flight need it, because they keep several versions of the parameters.
/// - `update(first, count)`: steps the optimiser for the parameters [first, first + count) alone.
///   GradientSum::sharded needs it, because each replica then updates a part of the parameters.
/// - `tied_parameters()`: a vector of the TiedParameters that another layer of the model has, too.
///   Both copies then get the sum of their gradients before `update`. The stage names their values
///   in `visit_state` as arrays of `whole_model`, so that a checkpoint has them once.
/// - `added_gradients() -> std::span<scalar_type>`: where `backward_weight` adds, if that is more
///   than the `parameter_count()` elements of `gradients()`, because `update` sums it over other
///   ranks and steps a share of it. The gradients of replicas within the pipeline are added to it
///   before `update`.
/// - `sum_gradients()` and `owned() -> Share`: for a stage whose `update` sums gradients over other
///   ranks and divides the update among them, and which has tied parameters. `sum_gradients`
///   completes the sums of `gradients()`, and the `update` after it does not sum again. `owned` is
///   the part of the stage's parameters that `parameters()` and `gradients()` hold; the ranges of
///   `tied_parameters()` count all of them.
/// - `forward_and_backward(ForwardCall, other, BackwardCall)`: `forward` here, and `backward_input`
///   and `backward_weight` of `other`, a stage of the same type or this one, in any order, so that
///   one computes while the other communicates. If the gradients of `other` begin with this pair,
///   `other.zero_gradients()` is called before it. It is called for a forward that the schedule has
///   fused with the backward after it, unless both belong to one stage with two versions of its
///   parameters. Without it, and for pairs whose backward is first, the two are done in turn.
/// - `visit_state(visitor)` and `state_written()`: names everything that lasts from step to step.
///   Then it can be saved, restored and moved to other ranks; see HasState.
template <class S>
concept PipelineStage = std::movable<S> &&
    requires(S& stage, const S& constant, const ForwardCall<typename S::scalar_type>& forward,
             const BackwardCall<typename S::scalar_type>& backward) {
  typename S::memory_space;
  { constant.input_size() } -> std::convertible_to<std::size_t>;
  { constant.output_size() } -> std::convertible_to<std::size_t>;
  { constant.saved_size() } -> std::convertible_to<std::size_t>;
  { constant.delta_size() } -> std::convertible_to<std::size_t>;
  { constant.parameter_count() } -> std::convertible_to<std::size_t>;
  { stage.parameters() } -> std::same_as<typename S::scalar_type*>;
  { stage.gradients() } -> std::same_as<typename S::scalar_type*>;
  stage.forward(forward);
  stage.backward_input(backward);
  stage.backward_weight(backward);
  stage.zero_gradients();
  stage.update();
  stage.fence();
};

}  // namespace heddle::inline v0
