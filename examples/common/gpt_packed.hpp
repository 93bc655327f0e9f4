// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GptPacked: a microbatch of sequences of several lengths, one behind the other, over the ranks of
/// a SequenceLine of its own; or a slice of all sequences of a microbatch.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/layout/attention_mask.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/sequence.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>

#include "gpt_config.hpp"
#include "gpt_shape.hpp"

namespace examples {

/// Returns the mask of sequences of these lengths that are packed into one: each is a segment.
[[nodiscard]] inline heddle::AttentionMask packed_mask(std::span<const std::int64_t> lengths) {
  heddle::AttentionMask mask;
  std::int64_t end = 0;
  for (const std::int64_t length : lengths) {
    if (end > 0) mask.segments.push_back(end);
    end += length;
  }
  return mask;
}

/// A microbatch of packed sequences, as one rank has it. Empty microbatches have no tokens.
template <class Real, class Exec>
struct GptPacked {
  heddle::SequenceLine<Real, Exec> line;  ///< the ranks that divide the packed sequence
  GptBlockShape shape;
  /// The tokens that this rank reads, then those that it must foretell.
  std::vector<std::uint8_t> tokens = {};
  /// The position of each token within its own sequence: a row of the position table.
  std::vector<std::size_t> table_rows = {};
  double weight = 0;  ///< of the mean loss of this rank's tokens
  /// The slices of a sequence, each of which is a microbatch; 0 for whole sequences.
  std::size_t slices = 0;

  /// Makes the microbatch of an empty group, or of sequences of these lengths. With `blocks`
  /// attention keeps no probabilities, as it must with several sequences or ranks.
  template <class TensorLine>
  GptPacked(const GptConfig& config, const TensorLine& tensor,
            const heddle::SequenceLine<Real, Exec>& over, std::span<const std::int64_t> lengths,
            bool blocks)
      : line(over), shape(config, tensor, over, shape_of(lengths), blocks) {}

  /// Makes slice `slice` of `of_slices` from the tokens of a microbatch, which has
  /// config.sequences x (config.context + 1). The slices have equal lengths, or lengths that differ
  /// by one. `whole_weight` is the weight of the microbatch's mean loss.
  template <class TensorLine>
  GptPacked(const GptConfig& config, const TensorLine& tensor,
            std::span<const std::uint8_t> microbatch, std::size_t slice, std::size_t of_slices,
            double whole_weight)
      : shape(GptBlockShape::of_slice(
            config, tensor, line,
            static_cast<std::int64_t>(slice_of(config, slice, of_slices).count))),
        slices(of_slices) {
    const heddle::Share own = slice_of(config, slice, of_slices);
    const auto context = static_cast<std::size_t>(config.context);
    for (std::size_t first = 0; first < microbatch.size(); first += context + 1)
      for (const std::size_t shift : {std::size_t{0}, std::size_t{1}}) {
        const auto part = microbatch.subspan(first + own.first + shift, own.count);
        tokens.insert(tokens.end(), part.begin(), part.end());
      }
    for (std::size_t at = own.first; at < own.end(); ++at) table_rows.push_back(at);
    weight = whole_weight * static_cast<double>(own.count) / static_cast<double>(context);
  }
  /// Returns the positions of a slice.
  [[nodiscard]] static heddle::Share slice_of(const GptConfig& config, std::size_t slice,
                                              std::size_t slices) {
    return heddle::even_share(static_cast<std::size_t>(config.context), slices, slice);
  }

  /// Takes this rank's part of the sequences: of each one more byte than its length, and `all` is
  /// the number of tokens whose mean loss the step computes.
  void take(std::span<const std::span<const std::uint8_t>> sequences, std::int64_t all) {
    std::vector<std::uint8_t> inputs, targets;
    std::vector<std::size_t> rows;
    for (const auto& sequence : sequences) {
      inputs.insert(inputs.end(), sequence.begin(), sequence.end() - 1);
      targets.insert(targets.end(), sequence.begin() + 1, sequence.end());
      for (std::size_t at = 0; at + 1 < sequence.size(); ++at) rows.push_back(at);
    }
    const heddle::IndexSet own = line.positions(shape.attention.context);
    const auto pick = [&](const auto& from, auto& into) {
      for (const heddle::Interval& each : own.intervals())
        into.insert(into.end(), from.begin() + each.begin, from.begin() + each.end);
    };
    pick(inputs, tokens);
    pick(targets, tokens);
    pick(rows, table_rows);
    weight = heddle::systems::token_weight(own.size(), all);
  }

 private:
  [[nodiscard]] static heddle::SequenceShape shape_of(std::span<const std::int64_t> lengths) {
    std::int64_t tokens = 0;
    for (const std::int64_t length : lengths) tokens += length;
    return {1, tokens, {}, packed_mask(lengths)};
  }
};

}  // namespace examples
