// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Defines the roles of the buffers of a stage, and their sizes.

#include <cstdint>
#include <string_view>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// The labels of the buffers that weave() makes. `weights` buffers have one part per version,
/// `gradients` buffers have one part, and all others have one part per microbatch.
namespace role {
/// The output of an earlier stage, received.
inline constexpr const char* input = "input";
/// The output of a stage, which the next stages use.
inline constexpr const char* output = "output";
/// The activations that a stage keeps from its forward to its backward pass.
inline constexpr const char* saved = "saved";
/// Activations that a rank has no memory for, where park() has moved them.
inline constexpr const char* parked = "parked";
/// The output of a stage that shares a loss with this stage, received.
inline constexpr const char* exchanged = "exchanged";
/// The gradient of the output, received.
inline constexpr const char* output_grad = "output_grad";
/// The gradient of the input, which the earlier stage uses.
inline constexpr const char* input_grad = "input_grad";
/// The data that a stage keeps from I (backward_input) to W (backward_weight).
inline constexpr const char* delta = "delta";
/// The parameters of the stage.
inline constexpr const char* weights = "weights";
/// The gradients of the parameters, summed over the microbatches.
inline constexpr const char* gradients = "gradients";
/// The sums of the gradients of the keys and values of slices, which the stages hold; it has no
/// bytes. See link_slices().
inline constexpr const char* slice_grads = "slice_grads";
}  // namespace role

/// The purpose of a buffer of a stage, or of one use of it by an action; see BoundUse::role. Each
/// enumerator stands for the label of the same name in namespace role.
enum class Role : std::uint8_t {
  other,        ///< a buffer with another label
  input,        ///< the output of an earlier stage
  output,       ///< the output of the stage
  saved,        ///< what a stage keeps from its forward to its backward pass
  parked,       ///< saved values that schedule::park() has moved away
  exchanged,    ///< the output of another stage that shares a loss
  output_grad,  ///< the gradient of the output
  input_grad,   ///< the gradient of the input
  delta,        ///< what a stage keeps from I to W
  weights,      ///< the parameters
  gradients,    ///< the gradients of the parameters
  narrow,       ///< a message at a cut, see schedule::cast_at_cut()
  residual,     ///< the rounding errors of the messages at a cut
  slice_grads,  ///< the sums of the gradients of keys and values, see schedule::link_slices()
};

namespace impl {

/// Returns the role of buffers with this label.
[[nodiscard]] Role role_of(std::string_view label) noexcept;

}  // namespace impl

/// The sizes of the buffers of a stage, the same for all stages: bytes per microbatch, and for the
/// parameters bytes per stage. They may be zero if only the order matters. A Runner replaces them
/// by the sizes of the model.
struct StageSizes {
  Bytes activation = 0;        ///< output of a stage, and its gradient
  Bytes saved = 0;             ///< data kept from the forward to the backward pass
  Bytes delta = 0;             ///< data kept from I to W
  Bytes parameters = 0;        ///< parameters of the stage; the gradients have the same size
  Scalar type = Scalar::byte;  ///< the type of the elements of all these buffers
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/stage_storage.ipp>
#endif
