// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The sizes of the example's byte-level GPT, and the list of its parameters by name.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/share.hpp>

namespace examples {

struct GptConfig {
  int layers = 4;        ///< transformer blocks
  int width = 64;        ///< elements that describe one token between blocks
  int heads = 4;         ///< attention heads; divides width
  int context = 64;      ///< tokens that a prediction may look back on, itself included
  int sequences = 4;     ///< sequences per microbatch
  int vocabulary = 256;  ///< token numbers are below it; at most 256, since tokens are bytes
  int kv_heads = 0;      ///< heads of keys and of values, a divisor of `heads`; 0: as many
  bool tied = false;  ///< whether the embedding of the tokens is also the matrix of the vocabulary

  /// The heads of keys and of values.
  [[nodiscard]] int heads_of_keys() const { return kv_heads == 0 ? heads : kv_heads; }
  /// Columns of all keys, and of all values.
  [[nodiscard]] std::size_t key_columns() const {
    return static_cast<std::size_t>(heads_of_keys() * (width / heads));
  }
};

/// Returns the bytes of the keys and values of one block and sequence in elements of type Real.
template <class Real>
[[nodiscard]] heddle::Bytes key_bytes(const GptConfig& config) {
  return 2 * config.key_columns() * static_cast<std::size_t>(config.context) * sizeof(Real);
}

/// Adds to the profiled layers what a layer alone does not show: the bytes of its keys and values
/// and of its queries, and the gradient of its output, which a stage with layers behind it keeps
/// from I to W.
template <class Real>
void complete_layers(auto& layers, const GptConfig& config) {
  for (auto& layer : layers) {
    layer.keys = key_bytes<Real>(config);
    layer.queries = static_cast<heddle::Bytes>(config.width) * config.context * sizeof(Real);
    layer.delta += layer.output;
  }
}

/// Throws contract_error naming the first value that makes no model.
inline void validate(const GptConfig& config) {
  const auto positive = [](const char* name, int value) {
    heddle::expects(value > 0, [&] {
      return heddle::ErrorInfo{"GptConfig", heddle::text(name, " must be positive"),
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
    return heddle::ErrorInfo{"GptConfig", "the width must be a multiple of the number of heads",
                             heddle::text("width ", config.width, ", heads ", config.heads),
                             "choose a width that is a multiple of the heads"};
  });
  heddle::expects(config.kv_heads >= 0 && config.heads % config.heads_of_keys() == 0, [&] {
    return heddle::ErrorInfo{"GptConfig", "the K,V heads do not divide the heads",
                             heddle::text("heads ", config.heads, ", K,V heads ", config.kv_heads),
                             "choose a number of K,V heads that divides the heads"};
  });
  heddle::expects(config.vocabulary <= 256, [&] {
    return heddle::ErrorInfo{"GptConfig", "the vocabulary is larger than a byte",
                             heddle::text("vocabulary is ", config.vocabulary)};
  });
}

/// The position of a stage among the ranks that divide every layer.
struct GptPart {
  std::size_t ranks = 1;
  std::size_t rank = 0;

  /// This rank's share of so many columns, rows or classes.
  [[nodiscard]] heddle::Share of(std::size_t count) const {
    return heddle::even_share(count, ranks, rank);
  }
};

/// The part of a tensor that a rank holds. The tensor is seen as outer x columns x inner. The
/// columns are those of one matrix, or of several matrices side by side, and the rank has a share
/// of each matrix's columns.
struct GptSlice {
  /// The columns of one matrix.
  struct Columns {
    std::size_t whole;    ///< of all ranks
    heddle::Share share;  ///< of this rank
  };
  std::size_t outer = 1;
  std::vector<Columns> matrices = {};
  std::size_t inner = 1;

  [[nodiscard]] std::size_t size() const { return outer * own_columns() * inner; }
  /// Elements of the tensor.
  [[nodiscard]] std::size_t whole_size() const {
    std::size_t columns = 0;
    for (const Columns& each : matrices) columns += each.whole;
    return outer * columns * inner;
  }
  /// Where element `i` of the slice lies in the tensor.
  [[nodiscard]] std::size_t in_whole(std::size_t i) const {
    const std::size_t first = i / inner / own_columns();
    std::size_t left = i / inner % own_columns(), place = 0;
    for (const Columns& each : matrices) place += first * each.whole;
    for (const Columns& each : matrices) {
      if (left < each.share.count) {
        place += each.share.first + left;
        break;
      }
      left -= each.share.count;
      place += each.whole;
    }
    return place * inner + i % inner;
  }
  /// Calls `visit(place, count)` for the elements [first, end) of the slice, run by run: `count` of
  /// them that lie one after another in the tensor, from `place` on.
  template <class Visit>
  void for_each_run(std::size_t first, std::size_t end, Visit&& visit) const {
    while (first < end) {
      std::size_t left = first / inner % own_columns();
      auto matrix = matrices.begin();
      for (; left >= matrix->share.count; ++matrix) left -= matrix->share.count;
      const std::size_t count =
          std::min((matrix->share.count - left) * inner - first % inner, end - first);
      visit(in_whole(first), count);
      first += count;
    }
  }

 private:
  [[nodiscard]] std::size_t own_columns() const {
    std::size_t sum = 0;
    for (const Columns& each : matrices) sum += each.share.count;
    return sum;
  }
};

/// One named part of the flat parameter vector, and how it starts.
struct GptTensor {
  std::string name;         ///< the same whichever stage holds it: "block3.attention.qkv"
  std::size_t offset = 0;   ///< of its first element in the stage's parameters
  std::size_t size = 0;     ///< elements on this rank
  double deviation = 0;     ///< of the normal distribution that it starts from
  double start = 0;         ///< the value it starts from where the deviation is 0
  GptSlice slice = {};      ///< what they are of the tensor
  std::string shared = {};  ///< the name of both copies, if it is tied to another tensor

  /// The name of its initial values, and of its state.
  [[nodiscard]] const std::string& origin() const { return shared.empty() ? name : shared; }
};

/// The offsets of one block's parameters.
struct GptBlockOffsets {
  std::size_t norm1_scale, norm1_shift, qkv_weight, qkv_bias, project_weight, project_bias;
  std::size_t norm2_scale, norm2_shift, expand_weight, expand_bias, contract_weight, contract_bias;
};

/// What a stage with blocks [first, last) holds, in the order of the model: the tables of stages
/// that follow one another, joined, are the table of the whole model. Of the matrices a rank holds
/// its part: heads of the attention, columns of the MLP, classes of the vocabulary.
struct GptTable {
  std::vector<GptTensor> tensors;
  std::vector<GptBlockOffsets> blocks;
  std::size_t token_table = 0, position_table = 0;  // valid on the stage with block 0
  std::size_t blocks_end = 0;                       ///< the end of the parameters of all blocks
  std::size_t norm_scale = 0, norm_shift = 0, vocabulary_weight = 0, vocabulary_bias = 0;  // last
  std::size_t size = 0;

  GptTable(const GptConfig& config, int first, int last, const GptPart& part = {}) {
    const auto w = static_cast<std::size_t>(config.width);
    const auto context = static_cast<std::size_t>(config.context);
    const auto vocabulary = static_cast<std::size_t>(config.vocabulary);
    // All of a vector; some columns of a matrix of so many rows, or of Q | K | V; some rows.
    const auto all = [](std::size_t count) { return GptSlice{1, {{count, {0, count}}}, 1}; };
    const auto columns = [&](std::size_t rows, std::size_t count) {
      return GptSlice{rows, {{count, part.of(count)}}, 1};
    };
    const auto qkv = [&](std::size_t rows) {
      const GptSlice::Columns keys{config.key_columns(), part.of(config.key_columns())};
      return GptSlice{rows, {{w, part.of(w)}, keys, keys}, 1};
    };
    const auto rows = [&](std::size_t count, std::size_t width) {
      return GptSlice{1, {{count, part.of(count)}}, width};
    };
    // Weights keep the variance of what passes through them; what is added to the residual stream
    // 2 * layers times is smaller by the root of that. The vocabulary starts near equal odds.
    const double keep = 1 / std::sqrt(static_cast<double>(w));
    const double residual = 1 / std::sqrt(2.0 * config.layers);
    if (first == 0) {
      token_table = add("embedding.token", rows(vocabulary, w), 0.1);
      position_table = add("embedding.position", all(context * w), 0.1);
    }
    for (int b = first; b < last; ++b) {
      const std::string block = heddle::text("block", b, ".");
      GptBlockOffsets& at = blocks.emplace_back();
      at.norm1_scale = add(block + "norm1.scale", all(w), 0, 1);
      at.norm1_shift = add(block + "norm1.shift", all(w), 0);
      at.qkv_weight = add(block + "attention.qkv", qkv(w), keep);
      at.qkv_bias = add(block + "attention.qkv_bias", qkv(1), 0);
      at.project_weight = add(block + "attention.project", rows(w, w), keep * residual);
      at.project_bias = add(block + "attention.project_bias", all(w), 0);
      at.norm2_scale = add(block + "norm2.scale", all(w), 0, 1);
      at.norm2_shift = add(block + "norm2.shift", all(w), 0);
      at.expand_weight = add(block + "mlp.expand", columns(w, 4 * w), keep);
      at.expand_bias = add(block + "mlp.expand_bias", columns(1, 4 * w), 0);
      at.contract_weight = add(block + "mlp.contract", rows(4 * w, w), 0.5 * keep * residual);
      at.contract_bias = add(block + "mlp.contract_bias", all(w), 0);
    }
    blocks_end = size;
    if (last == config.layers) {
      norm_scale = add("norm.scale", all(w), 0, 1);
      norm_shift = add("norm.shift", all(w), 0);
      // A tied matrix has a row for each token, as the embedding.
      vocabulary_weight = config.tied ? add("vocabulary", rows(vocabulary, w), 0.1)
                                      : add("vocabulary", columns(w, vocabulary), 0.1 * keep);
      vocabulary_bias = add("vocabulary_bias", columns(1, vocabulary), 0);
    }
    for (GptTensor& tensor : tensors)
      if (config.tied && (tensor.name == "embedding.token" || tensor.name == "vocabulary"))
        tensor.shared = "embedding.token";
  }

  /// Returns the halves of all blocks: an attention and an MLP for each.
  [[nodiscard]] std::size_t halves() const { return 2 * blocks.size(); }
  /// Returns the place of the parameters of a half, which follow one another.
  [[nodiscard]] heddle::Share half(std::size_t number) const {
    const auto begin = [&](std::size_t h) {
      if (h == halves()) return blocks_end;
      return h % 2 == 0 ? blocks[h / 2].norm1_scale : blocks[h / 2].norm2_scale;
    };
    return {begin(number), begin(number + 1) - begin(number)};
  }
  /// Returns the offsets of a half's parameters within the half. Those of the other half of the
  /// block are 0.
  [[nodiscard]] GptBlockOffsets in_half(std::size_t number) const {
    const GptBlockOffsets& at = blocks[number / 2];
    const std::size_t first = half(number).first;
    GptBlockOffsets own{};
    if (number % 2 == 0) {
      own.norm1_scale = at.norm1_scale - first;
      own.norm1_shift = at.norm1_shift - first;
      own.qkv_weight = at.qkv_weight - first;
      own.qkv_bias = at.qkv_bias - first;
      own.project_weight = at.project_weight - first;
      own.project_bias = at.project_bias - first;
    } else {
      own.norm2_scale = at.norm2_scale - first;
      own.norm2_shift = at.norm2_shift - first;
      own.expand_weight = at.expand_weight - first;
      own.expand_bias = at.expand_bias - first;
      own.contract_weight = at.contract_weight - first;
      own.contract_bias = at.contract_bias - first;
    }
    return own;
  }

 private:
  std::size_t add(std::string name, const GptSlice& slice, double deviation, double start = 0) {
    const std::size_t offset = size;
    tensors.push_back({std::move(name), offset, slice.size(), deviation, start, slice, {}});
    size += slice.size();
    return offset;
  }
};

/// Calls `visit(own, whole)` for all of a stage's parameters that a replica owns, with their places
/// among its own and in the whole model.
template <class Visit>
void for_each_owned(const GptTable& part, const heddle::Share& own, const GptTable& whole,
                    Visit&& visit) {
  auto tensor = whole.tensors.begin();
  for (const GptTensor& each : part.tensors) {
    while (tensor->name != each.name) ++tensor;  // in the same order
    const std::size_t end = std::min(each.offset + each.size, own.end());
    for (std::size_t at = std::max(each.offset, own.first); at < end; ++at)
      visit(at - own.first, tensor->offset + each.slice.in_whole(at - each.offset));
  }
}

}  // namespace examples
