// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// How a GPT stage divides the two buffers that the pipeline keeps for it per microbatch: what
/// forward leaves for the backward calls, and what backward_input leaves for backward_weight.

#include <cstddef>

#include <heddle/kernel.hpp>

#include "gpt_block.hpp"
#include "gpt_shape.hpp"

namespace examples {

/// What decides the sizes of a stage's buffers.
struct GptExtent {
  GptBlockShape shape;
  std::size_t vocabulary;  ///< classes on this rank
  std::size_t blocks;      ///< at least one
  bool embeds;             ///< the stage holds the embedding
  bool predicts;           ///< the stage holds the final norm, the vocabulary and the loss
};

/// From forward: the blocks one after another, then what the prediction needs. On a null buffer
/// only `size` means something.
template <class Real, class Exec>
struct GptSaved {
  GptExtent extent;
  Real* data;
  std::size_t block_size = 0, size = 0;
  heddle::kernel::Matrix<Real, Exec> normalised, odds;  // odds: of the next token, per position
  heddle::kernel::Vector<Real, Exec> inverse;

  GptSaved(const GptExtent& of, Real* buffer) : extent(of), data(buffer) {
    Cutter<Real, Exec> one(nullptr);
    (void)GptBlockSaved<Real, Exec>(one, extent.shape);
    block_size = one.size();
    Cutter<Real, Exec> cut(data);
    (void)cut.take(block_size * extent.blocks);
    if (extent.predicts) {
      normalised = cut.matrix(extent.shape.rows, extent.shape.width);
      inverse = cut.vector(extent.shape.rows);
      odds = cut.matrix(extent.shape.all_rows(), extent.vocabulary);
    }
    size = cut.size();
  }

  [[nodiscard]] GptBlockSaved<Real, Exec> block(std::size_t b) const {
    Cutter<Real, Exec> cut(data + b * block_size);
    return {cut, extent.shape};
  }
};

/// From backward_input: the blocks, the gradients of the activations between them, then those of
/// the two ends. On a null buffer only `size` means something.
template <class Real, class Exec>
struct GptDelta {
  GptExtent extent;
  Real* data;
  std::size_t block_size = 0, size = 0;
  Real* between = nullptr;
  heddle::kernel::Matrix<Real, Exec> bottom;        // of the embedding's output
  heddle::kernel::Matrix<Real, Exec> top;           // of the last block's output
  heddle::kernel::Matrix<Real, Exec> normed, odds;  // of the final norm's output, of the logits

  GptDelta(const GptExtent& of, Real* buffer) : extent(of), data(buffer) {
    const std::size_t rows = extent.shape.rows, width = extent.shape.width;
    Cutter<Real, Exec> one(nullptr);
    (void)GptBlockDelta<Real, Exec>(one, extent.shape);
    block_size = one.size();
    Cutter<Real, Exec> cut(data);
    (void)cut.take(block_size * extent.blocks);
    between = cut.take(rows * width * (extent.blocks - 1));
    if (extent.embeds) bottom = cut.matrix(rows, width);
    if (extent.predicts) {
      top = cut.matrix(rows, width);
      normed = cut.matrix(rows, width);
      odds = cut.matrix(extent.shape.all_rows(), extent.vocabulary);
    }
    size = cut.size();
  }

  [[nodiscard]] GptBlockDelta<Real, Exec> block(std::size_t b) const {
    Cutter<Real, Exec> cut(data + b * block_size);
    return {cut, extent.shape};
  }

  /// Of the activations between block b and block b + 1.
  [[nodiscard]] heddle::kernel::Matrix<Real, Exec> after(std::size_t b) const {
    const std::size_t rows = extent.shape.rows, width = extent.shape.width;
    return heddle::kernel::Matrix<Real, Exec>(between + b * rows * width, rows, width);
  }
};

}  // namespace examples
