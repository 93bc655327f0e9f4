// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The sizes of the example's byte-level GPT, and the list of its parameters by name.

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace examples {

struct GptConfig {
  int layers = 4;        ///< transformer blocks
  int width = 64;        ///< elements that describe one token between blocks
  int heads = 4;         ///< attention heads; divides width
  int context = 64;      ///< tokens that a prediction may look back on, itself included
  int sequences = 4;     ///< sequences per microbatch
  int vocabulary = 256;  ///< token numbers are below it; at most 256, since tokens are bytes
};

/// Throws contract_error naming the first value that makes no model.
inline void validate(const GptConfig& config) {
  const auto positive = [](const char* name, int value) {
    heddle::expects(value > 0, [&] {
      return heddle::Complaint{"GptConfig", heddle::text(name, " must be positive"),
                               heddle::text(name, " is ", value)};
    });
  };
  positive("layers", config.layers);
  positive("width", config.width);
  positive("heads", config.heads);
  positive("context", config.context);
  positive("sequences", config.sequences);
  positive("vocabulary", config.vocabulary);
  heddle::expects(config.width % config.heads == 0, [&] {
    return heddle::Complaint{"GptConfig", "the width does not divide into the heads",
                             heddle::text("width ", config.width, ", heads ", config.heads),
                             "choose a width that is a multiple of the heads"};
  });
  heddle::expects(config.vocabulary <= 256, [&] {
    return heddle::Complaint{"GptConfig", "the vocabulary is larger than a byte",
                             heddle::text("vocabulary is ", config.vocabulary)};
  });
}

/// One named part of the flat parameter vector, and how it starts.
struct GptTensor {
  std::string name;        ///< the same whichever stage holds it: "block3.attention.qkv"
  std::size_t offset = 0;  ///< of its first element in the stage's parameters
  std::size_t size = 0;    ///< elements
  double deviation = 0;    ///< of the normal distribution that it starts from
  double start = 0;        ///< the value it starts from where the deviation is 0
};

/// The offsets of one block's parameters.
struct GptBlockOffsets {
  std::size_t norm1_scale, norm1_shift, qkv_weight, qkv_bias, project_weight, project_bias;
  std::size_t norm2_scale, norm2_shift, expand_weight, expand_bias, contract_weight, contract_bias;
};

/// What a stage with blocks [first, last) holds, in the order of the model: the tables of stages
/// that follow one another, joined, are the table of the whole model.
struct GptTable {
  std::vector<GptTensor> tensors;
  std::vector<GptBlockOffsets> blocks;
  std::size_t token_table = 0, position_table = 0;  // valid on the stage with block 0
  std::size_t norm_scale = 0, norm_shift = 0, vocabulary_weight = 0, vocabulary_bias = 0;  // last
  std::size_t size = 0;

  GptTable(const GptConfig& config, int first, int last) {
    const auto w = static_cast<std::size_t>(config.width);
    const auto context = static_cast<std::size_t>(config.context);
    const auto vocabulary = static_cast<std::size_t>(config.vocabulary);
    // Weights keep the variance of what passes through them; what is added to the residual stream
    // 2 * layers times is smaller by the root of that. The vocabulary starts near equal odds.
    const double keep = 1 / std::sqrt(static_cast<double>(w));
    const double residual = 1 / std::sqrt(2.0 * config.layers);
    if (first == 0) {
      token_table = add("embedding.token", vocabulary * w, 0.1);
      position_table = add("embedding.position", context * w, 0.1);
    }
    for (int b = first; b < last; ++b) {
      const std::string block = heddle::text("block", b, ".");
      GptBlockOffsets& at = blocks.emplace_back();
      at.norm1_scale = add(block + "norm1.scale", w, 0, 1);
      at.norm1_shift = add(block + "norm1.shift", w, 0);
      at.qkv_weight = add(block + "attention.qkv", w * 3 * w, keep);
      at.qkv_bias = add(block + "attention.qkv_bias", 3 * w, 0);
      at.project_weight = add(block + "attention.project", w * w, keep * residual);
      at.project_bias = add(block + "attention.project_bias", w, 0);
      at.norm2_scale = add(block + "norm2.scale", w, 0, 1);
      at.norm2_shift = add(block + "norm2.shift", w, 0);
      at.expand_weight = add(block + "mlp.expand", w * 4 * w, keep);
      at.expand_bias = add(block + "mlp.expand_bias", 4 * w, 0);
      at.contract_weight = add(block + "mlp.contract", 4 * w * w, 0.5 * keep * residual);
      at.contract_bias = add(block + "mlp.contract_bias", w, 0);
    }
    if (last == config.layers) {
      norm_scale = add("norm.scale", w, 0, 1);
      norm_shift = add("norm.shift", w, 0);
      vocabulary_weight = add("vocabulary", w * vocabulary, 0.1 * keep);
      vocabulary_bias = add("vocabulary_bias", vocabulary, 0);
    }
  }

 private:
  std::size_t add(std::string name, std::size_t count, double deviation, double start = 0) {
    const std::size_t offset = size;
    tensors.push_back({std::move(name), offset, count, deviation, start});
    size += count;
    return offset;
  }
};

}  // namespace examples
