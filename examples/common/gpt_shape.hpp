// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The sizes of a block of the example's GPT on one rank, and a cutter that lays matrices of such
/// sizes into one buffer.

#include <cstddef>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel.hpp>
#include <heddle/sequence/sequence_shape.hpp>

#include "gpt_config.hpp"

namespace examples {

/// Cuts a flat buffer into Views, one after another; on a null buffer it only counts.
template <class Real, class Exec>
class Cutter {
 public:
  explicit Cutter(Real* data) : m_data(data) {}

  [[nodiscard]] heddle::kernel::Matrix<Real, Exec> matrix(std::size_t rows, std::size_t columns) {
    return heddle::kernel::Matrix<Real, Exec>(take(rows * columns), rows, columns);
  }
  [[nodiscard]] heddle::kernel::Vector<Real, Exec> vector(std::size_t size) {
    return heddle::kernel::Vector<Real, Exec>(take(size), size);
  }
  [[nodiscard]] Real* take(std::size_t count) {
    Real* const start = m_data == nullptr ? nullptr : m_data + m_size;
    m_size += count;
    return start;
  }
  [[nodiscard]] std::size_t size() const { return m_size; }

 private:
  Real* m_data;
  std::size_t m_size = 0;
};

/// The sizes of a block on one rank: N = the rows of its positions, n = those that it has between
/// divided layers, w = width, a = columns of its heads, h = its columns of the MLP. On one rank
/// n = N, a = w, h = 4 w.
struct GptBlockShape {
  heddle::SequenceShape attention;  ///< of this rank's heads, and of all positions
  std::size_t positions;            ///< of each sequence, on this rank
  std::size_t rows;                 ///< n
  std::size_t width;                ///< w
  std::size_t hidden;               ///< h
  bool sharded;                     ///< whether rows are gathered
  bool blockwise;                   ///< whether attention keeps no probabilities
  std::size_t attention_saved;      ///< elements that attention keeps for backward
  std::size_t attention_scratch;    ///< elements that its backward needs

  /// Of microbatches of equal sequences.
  template <class Line, class Sequence>
  GptBlockShape(const GptConfig& config, const Line& line, const Sequence& sequence)
      : GptBlockShape(config, line, sequence,
                      {static_cast<std::size_t>(config.sequences), config.context, {}},
                      sequence.size() > 1) {}

  /// Of a microbatch with the sequences, the context and the mask of `wanted`. Without `blocks`
  /// attention keeps probabilities if it can: the mask has no segments then.
  template <class Line, class Sequence>
  GptBlockShape(const GptConfig& config, const Line& line, const Sequence& sequence,
                heddle::SequenceShape wanted, bool blocks)
      : attention{wanted.sequences, wanted.context, own_heads(config, line),
                  std::move(wanted.mask)},
        positions(static_cast<std::size_t>(sequence.positions(attention.context).size())),
        rows(line.rows(all_rows()).count),
        width(static_cast<std::size_t>(config.width)),
        hidden(line.share(4 * width).count),
        sharded(line.sharded()),
        blockwise(blocks || attention.heads.heads != attention.heads.kv_heads),
        attention_saved(attention.context == 0 ? 0
                        : blockwise            ? sequence.saved_size(attention)
                                               : probabilities()),
        attention_scratch(blockwise ? 0 : probabilities()) {}

  /// Returns the shape of a slice of `count` positions of each sequence, which reads the keys and
  /// values of earlier slices, too.
  template <class Line, class Sequence>
  [[nodiscard]] static GptBlockShape of_slice(const GptConfig& config, const Line& line,
                                              const Sequence& sequence, std::int64_t count) {
    GptBlockShape shape(config, line, sequence,
                        {static_cast<std::size_t>(config.sequences), count, {}}, true);
    // The largest score and the sum of each row and head. The output is in `attended`.
    shape.attention_saved = 2 * shape.all_rows() * shape.attention.heads.heads;
    return shape;
  }

  /// N.
  [[nodiscard]] std::size_t all_rows() const { return attention.sequences * positions; }
  /// a.
  [[nodiscard]] std::size_t columns() const { return attention.heads.query_columns(); }
  /// Rows of the memory where rows are gathered: none where they are not.
  [[nodiscard]] std::size_t gathered_rows() const { return sharded ? all_rows() : 0; }
  /// The attention of whole sequences with as many heads of K and V, which keeps probabilities.
  [[nodiscard]] heddle::kernel::AttentionShape whole_attention() const {
    return {attention.sequences, positions, attention.heads.heads, columns()};
  }

 private:
  [[nodiscard]] std::size_t probabilities() const {
    return whole_attention().probability_rows() * positions;
  }

  /// The heads of this rank of a TensorLine.
  template <class Line>
  [[nodiscard]] static heddle::kernel::AttentionHeads own_heads(const GptConfig& config,
                                                                const Line& line) {
    const auto heads = static_cast<std::size_t>(config.heads);
    const auto kv_heads = static_cast<std::size_t>(config.heads_of_keys());
    const auto width = static_cast<std::size_t>(config.width);
    const std::size_t own = line.own_heads({1, 1, heads, width}).heads;
    heddle::expects(kv_heads % line.size() == 0, [&] {
      return heddle::ErrorInfo{
          "GptStage", "the K,V heads do not divide among the ranks of a divided layer",
          heddle::text(kv_heads, " K,V heads, ", line.size(), " ranks"),
          "use a number of ranks that divides the K,V heads, or as many heads"};
    });
    return {own, kv_heads / line.size(), width / heads};
  }
};

}  // namespace examples
