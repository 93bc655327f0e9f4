// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What a stage stores: the roles of its buffers, and their sizes.

#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

/// The roles of the buffers that weave() makes, each with one part per microbatch except weights,
/// which have one per version, and gradients, which have one part.
namespace role {
inline constexpr const char* input = "input";    ///< received output of an earlier stage
inline constexpr const char* output = "output";  ///< what a stage hands on
inline constexpr const char* saved = "saved";    ///< kept from forward to backward
inline constexpr const char* exchanged =
    "exchanged";  ///< received output of a stage that shares a loss with this one
inline constexpr const char* output_grad = "output_grad";  ///< received gradient of the output
inline constexpr const char* input_grad = "input_grad";    ///< gradient of the input, handed back
inline constexpr const char* delta = "delta";              ///< kept from I to W
inline constexpr const char* weights = "weights";          ///< parameters of the stage
inline constexpr const char* gradients =
    "gradients";  ///< their gradients, summed over the microbatches
}  // namespace role

/// Sizes that all stages share, in bytes per microbatch (parameters: per stage). Zero where only
/// the order matters; a Runner replaces them by those of the model.
struct StageSizes {
  Bytes activation = 0;        ///< handed on by a stage; so is its gradient, backwards
  Bytes saved = 0;             ///< kept from forward to backward
  Bytes delta = 0;             ///< kept from I to W
  Bytes parameters = 0;        ///< of the stage; the gradients are as large
  Scalar type = Scalar::byte;  ///< of the elements of all of them
};

}  // namespace heddle::inline v0
