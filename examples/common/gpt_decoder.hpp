// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GptDecoder: a stage of the GPT that continues texts. It computes every position of a text once
/// and keeps its keys and values. The rows of all texts of a step are packed: linear layers and
/// norms compute one matrix without padding, and attention visits the text of each row. The ranks
/// of a TensorLine may divide the stage: each has some heads, with their keys and values.
/// Link with heddle_gpt, which has the decoder for float and double.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/device/mirror.hpp>
#include <heddle/kernel.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/tensor.hpp>

#include "gpt_block.hpp"
#include "gpt_cache.hpp"
#include "gpt_config.hpp"
#include "gpt_decode_kernels.hpp"
#include "gpt_requests.hpp"
#include "gpt_shape.hpp"
#include "space.hpp"

namespace examples {

/// Counts of the rows that a decoder has computed so far.
struct GptDecodeCounts {
  std::size_t rows = 0;         ///< positions of texts
  std::size_t linear_rows = 0;  ///< rows of all linear layers, of which a block has four
  std::size_t logit_rows = 0;   ///< rows of the vocabulary: tokens that were drawn
  std::size_t summed = 0;       ///< elements of all sums over the ranks of the line
};

/// The parameters that a decoder keeps.
enum class GptWeightsOf : std::uint8_t {
  whole,  ///< all of its stage
  ends,   ///< those beside the blocks: the caller has the blocks
};

template <class Real, class Space = examples::Space>
class GptDecoder {
 public:
  using scalar_type = Real;
  using execution_space = typename Space::execution_space;
  using memory_space = typename execution_space::memory_space;
  using Line = heddle::TensorLine<Real, execution_space>;

  /// Constructs blocks [first, last) of the model for steps of these sizes. `parameters` are those
  /// of the whole model, in the order of its GptTable; the decoder copies its part. The line has
  /// rows of the form `whole`, or one rank.
  /// @throws contract_error if a size is out of range, or if there is another number of parameters.
  GptDecoder(const GptConfig& config, int first, int last, const GptBatchSizes& sizes,
             std::span<const Real> parameters, const Line& line = {},
             GptWeightsOf weights = GptWeightsOf::whole, const execution_space& exec = {});
  GptDecoder(const GptDecoder&) = delete;
  GptDecoder& operator=(const GptDecoder&) = delete;

  [[nodiscard]] const GptConfig& config() const { return m_config; }
  [[nodiscard]] bool embeds() const { return m_embeds; }
  [[nodiscard]] bool predicts() const { return m_predicts; }
  /// Elements of a row of an activation.
  [[nodiscard]] std::size_t width() const { return m_shape.width; }
  /// Elements of an activation of the most rows of a step.
  [[nodiscard]] std::size_t activation_size() const { return m_sizes.rows * m_shape.width; }

  /// Computes the rows of a step. The stage that embeds reads `tokens`, one for each row; the
  /// others read `input`, rows x width. The stage that predicts leaves logits(); the others write
  /// `output`. All kernels are complete when it returns. All ranks of the line must make the same
  /// calls.
  void forward(std::span<const GptSegment> segments, std::span<const std::uint8_t> tokens,
               const Real* input, Real* output);

  /// The same step in pieces, for weights that are elsewhere: begin_step(), then compute_half() for
  /// every half of the table in order, with its parameters, then end_step(). A half is complete
  /// when its call returns.
  void begin_step(std::span<const GptSegment> segments, std::span<const std::uint8_t> tokens,
                  const Real* input, Real* output);
  void compute_half(std::size_t half, Real* weights);
  void end_step();
  /// Returns the offsets of this rank's parameters.
  [[nodiscard]] const GptTable& table() const { return m_table; }

  /// Returns the logits of the token that segment number `drawn` of those that draw is to have.
  [[nodiscard]] std::span<const Real> logits(std::size_t drawn) const {
    return {m_host_logits.data() + drawn * m_host_logits.extent(1), m_host_logits.extent(1)};
  }

  [[nodiscard]] const GptDecodeCounts& counts() const { return m_counts; }
  [[nodiscard]] const GptCache<Real, memory_space>& cache() const { return m_cache; }

 private:
  using Matrix = heddle::kernel::Matrix<Real, execution_space>;
  using Vector = heddle::kernel::Vector<Real, execution_space>;
  using Input = heddle::kernel::Matrix<const Real, execution_space>;
  using Buffer = Kokkos::View<Real*, memory_space>;
  template <class T>
  using Places = Kokkos::View<T*, memory_space>;
  using Logits = Kokkos::View<Real**, Kokkos::LayoutRight, memory_space>;

  /// Memory of a step, cut for its rows.
  struct Scratch {
    Matrix stream, normalised, normed, qkv, attended, hidden, picked;
    Vector inverse;
    Scratch(Cutter<Real, execution_space>& cut, const GptBlockShape& shape, std::size_t rows);
  };

  void take_part(std::span<const Real> parameters, const GptTable& whole);
  /// Makes room in the cache and copies the places of the rows. Returns the number of rows.
  std::size_t begin(std::span<const GptSegment> segments, std::span<const std::uint8_t> tokens);
  void embed(const Scratch& scratch, const Matrix& stream);
  using Weights = GptBlockWeights<Real, execution_space>;
  [[nodiscard]] Scratch scratch();
  [[nodiscard]] Matrix stream(const Scratch& scratch) const;
  void attention(std::size_t b, const Weights& weights, const Scratch& scratch,
                 const Matrix& stream);
  void mlp(const Weights& weights, const Scratch& scratch, const Matrix& stream);
  /// Returns the parameters beside the blocks that begin at this offset of the table.
  [[nodiscard]] Real* kept(std::size_t offset) const;
  void attend(std::size_t b, const Scratch& scratch);
  void predict(const Scratch& scratch, const Matrix& stream);
  /// Calls that count rows.
  void column_parallel(const Input& input, const Input& weight, const Vector& bias,
                       const Matrix& output);
  void row_parallel(const Input& input, const Input& weight, const Vector& bias,
                    const Matrix& output);

  GptConfig m_config;
  GptBatchSizes m_sizes;
  bool m_embeds, m_predicts;
  GptWeightsOf m_keeps;
  execution_space m_exec;
  Line m_line;
  GptTable m_table;
  GptBlockShape m_shape;  ///< shape of a step with the most rows
  Buffer m_parameters, m_scratch;
  GptCache<Real, memory_space> m_cache;
  Places<std::uint8_t> m_tokens;
  Places<std::size_t> m_positions, m_picks;
  Places<GptRow> m_rows;
  Logits m_logits, m_own_logits;
  decltype(heddle::host_mirror(m_tokens)) m_host_tokens;
  decltype(heddle::host_mirror(m_positions)) m_host_positions, m_host_picks;
  decltype(heddle::host_mirror(m_rows)) m_host_rows;
  decltype(heddle::host_mirror(m_logits)) m_host_logits;
  std::size_t m_draws = 0;      ///< tokens that this step draws
  std::size_t m_step_rows = 0;  ///< rows of this step
  Real* m_output = nullptr;     ///< of this step
  GptDecodeCounts m_counts;
};

}  // namespace examples
