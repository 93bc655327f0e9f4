// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Defines the roles of the buffers of a stage, and their sizes.

#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// The roles of the buffers that weave() makes. `weights` buffers have one part per version,
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
}  // namespace role

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
