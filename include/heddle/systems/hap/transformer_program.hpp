// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// transformer_program(): the forward pass of a transformer as a TensorProgram.

#include <cstdint>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/systems/hap/program.hpp>

namespace heddle::inline v0::systems {

/// The sizes of transformer_program().
struct TransformerShape {
  std::int64_t layers = 1;     ///< blocks of attention and MLP
  std::int64_t sequences = 1;  ///< samples
  std::int64_t context = 64;   ///< positions of a sequence
  std::int64_t width = 64;     ///< elements of a position between blocks
  std::int64_t heads = 4;      ///< heads of attention; divides the width
  std::int64_t kv_heads = 0;   ///< heads of keys and values; divides `heads`; 0: as many
  std::int64_t hidden = 0;     ///< width inside the MLP; 0: 4 * width
  /// Words of the embedding and of the predictions. 0: the program has neither, only the blocks.
  std::int64_t vocabulary = 0;
  std::string activation = "gelu";  ///< function of the MLP: "gelu" (tanh form), "relu", "tanh"
  double epsilon = 1e-5;            ///< added to the variance in layer norms
  Scalar type = Scalar::f32;        ///< numbers of all tensors, for bytes
};

/// Returns the forward pass of a transformer with pre-norm blocks: x += attention(norm(x)) and
/// x += mlp(norm(x)), with biases. Softmax and layer norm are programs of reduce and elementwise
/// operations. reverse() adds the gradients.
///
///     const systems::TensorProgram step = reverse(
///         systems::transformer_program({.layers = 2, .width = 64, .vocabulary = 256}), "loss");
///
/// Dimensions: sequence, position, key (the positions of keys and values), width, head, head_width,
/// hidden and word, and `query` if several heads share keys and values: head k of queries is query
/// k % (heads / kv_heads) of head k / (heads / kv_heads).
///
/// Inputs: "mask"[position, key] is added to the scores: 0 for a key that the position sees, else a
/// large negative number. With a vocabulary: "tokens"[sequence, position] are words, and
/// "targets"[sequence, position, word] has 1 at the word that follows, else 0. The output is then
/// "loss", the mean cross entropy over all positions, and the logits are "vocabulary_result".
/// Without a vocabulary: from "input" to "output", both [sequence, position, width].
///
/// Parameters of block i, each with the prefix "blocki.": norm1.scale, norm1.shift, attention.q,
/// .k, .v, .project, norm2.scale, norm2.shift, mlp.expand and mlp.contract; the six matrices have a
/// bias: attention.q_bias. The block's result is "blocki.output". With a vocabulary there are
/// embedding.token, embedding.position, norm.scale, norm.shift, vocabulary and vocabulary_bias.
/// @throws contract_error if a size is below 1, if heads do not divide the width or K,V heads the
///         heads, or if the activation is unknown.
[[nodiscard]] TensorProgram transformer_program(const TransformerShape& shape);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/hap/transformer_program.ipp>
#endif
