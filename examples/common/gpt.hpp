// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A stage of a byte-level GPT for pipelines: some of the transformer blocks, with the embedding
/// where the first block is, and with the final norm, the vocabulary and the loss where the last
/// is. What the backward calls need travels in the caller's `saved` and `delta` buffers, so that
/// any number of microbatches may be in flight. The calls queue kernels and return; `fence` waits.
/// The ranks of a TensorLine may divide the stage between them: each has some heads of every
/// attention, some columns of every MLP, some classes of the vocabulary, and between those some
/// rows of the activations. All of them make the same calls in the same order then. The ranks of a
/// SequenceLine may divide the sequences: each has the rows of its positions, and all parameters.
/// Replicas of a stage may divide its parameters between them, see ParameterShards. Both make the
/// same calls too. The microbatches of a step may also be packed sequences of any lengths, each
/// over ranks of its own, or slices of sequences: see GptPacked. The keys and values of the earlier
/// slices of a sequence are read where their forward passes saved them.
/// Link with heddle_gpt, which has the stage for float and double; another type of number needs a
/// source like gpt_float.cpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/pipeline/partition.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/pipeline/state.hpp>
#include <heddle/pipeline/tied_parameter.hpp>
#include <heddle/sequence.hpp>
#include <heddle/tensor.hpp>

#include "gpt_block.hpp"
#include "gpt_buffers.hpp"
#include "gpt_config.hpp"
#include "gpt_packed.hpp"
#include "gpt_sampling.hpp"
#include "gpt_shape.hpp"
#include "gpt_slice_attention.hpp"
#include "space.hpp"

// What travels between ranks is compiled in gpt_travel_float.cpp and gpt_travel_double.cpp.
extern template class heddle::TensorLine<float, examples::Space::execution_space>;
extern template class heddle::TensorLine<double, examples::Space::execution_space>;
extern template class heddle::ParameterShards<float, examples::Space::execution_space>;
extern template class heddle::ParameterShards<double, examples::Space::execution_space>;

namespace examples {

/// Writes the transpose of a matrix of `columns` columns, or adds it.
template <class Real>
struct GptTranspose {
  const Real* from;
  Real* to;
  std::size_t columns, rows;
  bool adds;

  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    const std::size_t row = i / columns, column = i % columns;
    Real& into = to[column * rows + row];
    into = adds ? into + from[i] : from[i];
  }
};

template <class Real, class Space = examples::Space>
class GptStage {
 public:
  using scalar_type = Real;
  using execution_space = typename Space::execution_space;
  using memory_space = typename execution_space::memory_space;

  using Line = heddle::TensorLine<Real, execution_space>;

  using Room = heddle::ShardRoom<Real, execution_space>;

  using Sequence = heddle::SequenceLine<Real, execution_space>;

  /// Blocks [first, last) of the model, divided along `line`, with parameters divided as `room`
  /// says, which the stages of a rank share, for the positions that `sequence` gives this rank.
  /// Parameters start as f(seed, name, index): the same whichever stage holds them. A stage for
  /// packed sequences has memory for each of the shapes `packed`, and computes no other
  /// microbatches.
  GptStage(const GptConfig& config, int first, int last, std::uint64_t seed = 1,
           const heddle::kernel::AdamOptions& optimizer = {}, const execution_space& exec = {},
           const Line& line = {}, std::shared_ptr<Room> room = nullptr,
           const Sequence& sequence = {}, std::vector<GptBlockShape> packed = {});

  // The stage owns its parameters: a copy would share them.
  GptStage(GptStage&&) = default;
  GptStage& operator=(GptStage&&) = default;

  [[nodiscard]] const GptConfig& config() const { return m_config; }
  /// The blocks that it holds, and which part of them.
  [[nodiscard]] heddle::LayerRange blocks() const { return m_range; }
  [[nodiscard]] GptPart part() const { return part_of(m_blocks.line); }
  [[nodiscard]] bool embeds() const { return m_embeds; }
  [[nodiscard]] bool predicts() const { return m_predicts; }

  // Sizes are in elements, per microbatch, and of this rank.
  [[nodiscard]] std::size_t input_size() const { return m_embeds ? 0 : m_activation_size; }
  [[nodiscard]] std::size_t output_size() const { return m_predicts ? 0 : m_activation_size; }
  [[nodiscard]] std::size_t saved_size() const { return m_saved_size; }
  [[nodiscard]] std::size_t delta_size() const { return m_delta_size; }
  /// The owned() parameters, which the optimiser of this replica updates, and their gradients.
  [[nodiscard]] std::size_t parameter_count() const { return owned().count; }
  [[nodiscard]] Real* parameters() { return m_shards.weights(); }
  [[nodiscard]] Real* gradients() { return m_shards.gradients(); }
  [[nodiscard]] std::span<Real> added_gradients() { return m_shards.added_gradients(); }
  [[nodiscard]] heddle::Share owned() const { return m_shards.owned(); }
  /// Where they lie, and what the optimiser keeps of them.
  [[nodiscard]] heddle::ParameterShards<Real, execution_space>& shards() { return m_shards; }
  /// The names and places of the stage's parameters, and of the gradients likewise.
  [[nodiscard]] const std::vector<GptTensor>& tensors() const { return m_table.tensors; }
  /// The copies of the embedding that are here, if it is tied.
  [[nodiscard]] std::vector<heddle::TiedParameter> tied_parameters() const {
    std::vector<heddle::TiedParameter> tied;
    for (const GptTensor& tensor : m_table.tensors)
      if (!tensor.shared.empty()) tied.push_back({tensor.shared, tensor.offset, tensor.size});
    return tied;
  }
  /// May be changed between steps.
  [[nodiscard]] heddle::kernel::AdamOptions& optimizer() { return m_optimizer; }

  /// Takes the tokens of the whole local batch, microbatches x sequences x (context + 1), and the
  /// weight of each microbatch's loss: 1 / (microbatches over all replicas) makes the losses' sum
  /// the mean. Of a sequence that is sharded this rank takes the tokens of its positions, and their
  /// part of the weight. If microbatches have other numbers of sequences than the configuration, at
  /// most as many, `sequences` has the number of each; smaller ones weigh less in proportion. The
  /// tokens are copied before this returns.
  void begin_step(std::span<const std::uint8_t> tokens, double weight,
                  std::span<const std::int64_t> sequences = {});
  /// Takes the packed microbatches of a step. Lines must outlive the step. If they are slices, the
  /// microbatches of a sequence follow one another: forwards run from its first slice to its last
  /// one, backward passes from the last one to the first one, and none between them of another
  /// sequence. See heddle::schedule::link_slices().
  void begin_step(std::span<const GptPacked<Real, execution_space>> microbatches);
  /// Of the tokens that begin_step() took.
  [[nodiscard]] std::size_t microbatches() const { return m_losses.extent(0); }

  void forward(const heddle::ForwardCall<Real>& call);

  void backward_input(const heddle::BackwardCall<Real>& call);

  /// Adds to gradients().
  void backward_weight(const heddle::BackwardCall<Real>& call);

  void zero_gradients();

  /// To be called where parameters() were written: hands them to where weights are kept.
  void parameters_written() { m_shards.started(m_exec); }

  /// Calls `visitor(array)` for each part of a tensor that this replica owns: its weights, and the
  /// two moments and the number of steps that Adam keeps.
  template <class Visitor>
  void visit_state(Visitor&& visitor);
  /// To be called where visited arrays were written.
  void state_written() { parameters_written(); }

  /// Sums gradients() over the replicas that divide them.
  void sum_gradients() { m_shards.sum_gradients(m_exec); }

  /// One step of Adam with the gradients as they are.
  void update();

  void fence() { m_exec.fence("heddle::gpt::fence"); }

  /// The weighted loss of one microbatch of this step, 0 where it has not run forward, on a stage
  /// that does not predict, or on any but the first rank of the line. Waits for the queued kernels.
  [[nodiscard]] double loss(heddle::Item m) const;

  /// Returns `count` tokens that continue `prompt`, as request number `request`; see GptSampler. It
  /// needs all blocks. An empty prompt stands for one newline; of a longer text the last `context`
  /// tokens are seen. Every token computes all positions: GptGenerator computes each only once, and
  /// is compared with this function.
  [[nodiscard]] std::string generate(std::string_view prompt, std::size_t count,
                                     const GptSampling& sampling, std::uint32_t request = 0);
  /// Returns request number 0 with all tokens at this temperature.
  [[nodiscard]] std::string generate(std::string_view prompt, std::size_t count, double temperature,
                                     std::uint64_t seed) {
    return generate(prompt, count, GptSampling{.temperature = temperature, .seed = seed});
  }

  /// Measures the seconds of one product over all these heads for a (query, key) pair. The forward
  /// pass of causal attention over one sequence of `context` tokens, of at most 256, has two
  /// products for each pair; the fastest of 5 passes counts.
  [[nodiscard]] static double seconds_of_product(const heddle::kernel::AttentionHeads& heads,
                                                 std::int64_t context);

 private:
  using Matrix = heddle::kernel::Matrix<Real, execution_space>;
  using Vector = heddle::kernel::Vector<Real, execution_space>;
  using Input = heddle::kernel::Matrix<const Real, execution_space>;
  using Buffer = Kokkos::View<Real*, memory_space>;
  using Positions = Kokkos::View<std::size_t*, memory_space>;
  using Tokens = Kokkos::View<std::uint8_t*, memory_space>;
  using Losses = Kokkos::View<double*, memory_space>;
  using Partials = Kokkos::View<heddle::RowPartial<Real>*, memory_space>;
  using TokenMatrix = heddle::kernel::Matrix<const std::uint8_t, execution_space>;
  using Block = GptBlock<Real, execution_space>;
  using Saved = GptSaved<Real, execution_space>;
  using Delta = GptDelta<Real, execution_space>;

  /// Where the tokens of a packed microbatch lie.
  struct PackedTokens {
    std::size_t begin;      ///< in m_tokens
    std::size_t row_begin;  ///< in m_packed_rows
  };

  static const GptConfig& checked(const GptConfig& config, int first, int last,
                                  const Sequence& sequence) {
    validate(config);
    heddle::expects(static_cast<std::size_t>(config.context) >= sequence.size(), [&] {
      return heddle::ErrorInfo{
          "GptStage", "there are fewer tokens than ranks that share a sequence",
          heddle::text("context ", config.context, ", ", sequence.size(), " ranks"),
          "use a longer context or fewer ranks"};
    });
    heddle::expects(0 <= first && first < last && last <= config.layers, [&] {
      return heddle::ErrorInfo{"GptStage", "there is no such range of blocks",
                               heddle::text("blocks [", first, ", ", last, ") of ", config.layers),
                               "a stage holds at least one block: use no more stages than layers"};
    });
    return config;
  }

  [[nodiscard]] std::size_t sequences() const {
    return static_cast<std::size_t>(m_config.sequences);
  }
  [[nodiscard]] std::size_t context() const { return static_cast<std::size_t>(m_config.context); }
  /// Of each sequence, on this rank.
  [[nodiscard]] std::size_t positions() const { return m_blocks.shape.positions; }
  [[nodiscard]] std::size_t width() const { return static_cast<std::size_t>(m_config.width); }
  [[nodiscard]] std::size_t vocabulary() const {
    return static_cast<std::size_t>(m_config.vocabulary);
  }
  /// Of an activation between the layers, on this rank.
  [[nodiscard]] std::size_t rows() const { return m_blocks.shape.rows; }
  /// Of the vocabulary.
  [[nodiscard]] heddle::Share classes() const { return m_blocks.line.share(vocabulary()); }
  [[nodiscard]] static GptPart part_of(const Line& line) { return {line.size(), line.rank()}; }

  [[nodiscard]] GptExtent extent() const { return extent(m_blocks.shape); }
  [[nodiscard]] GptExtent extent(const GptBlockShape& shape) const {
    return {shape, classes().count, m_table.blocks.size(), m_embeds, m_predicts};
  }
  /// All memory that calls use and leave.
  [[nodiscard]] static Buffer scratch(const execution_space& exec,
                                      const std::vector<GptBlockShape>& shapes);
  [[nodiscard]] static GptScratch<Real, execution_space> cut(const Buffer& scratch,
                                                             const GptBlockShape& shape) {
    Cutter<Real, execution_space> cutter(scratch.data());
    return {cutter, shape};
  }

  void expect_started(heddle::Item m) const {
    heddle::expects(+m < microbatches(), [&] {
      return heddle::ErrorInfo{"GptStage", "this step has no such microbatch",
                               heddle::text("microbatch ", m, " of ", microbatches()),
                               "begin_step takes the tokens of all local microbatches"};
    });
  }

  /// Begins a call: from here on the stage has the shape of the microbatch.
  void begin(heddle::Item m, std::size_t samples);
  /// Gives the stage the shape of a microbatch with so many whole sequences.
  void shape_for(std::size_t sequences);
  /// Shows block `b` the slices that microbatch `m` attends to, if sequences are cut.
  void attend_to(heddle::Item m, std::size_t b);
  /// Begins or continues the sums of the gradients of keys and values, if sequences are cut.
  void begin_key_gradients(heddle::Item m);
  /// Whether the microbatch is empty. If only this rank has none of its rows, it takes part.
  [[nodiscard]] bool idle() const { return m_blocks.shape.attention.context == 0; }
  void expect_tokens(std::span<const std::uint8_t> tokens) const;
  void copy_tokens(const std::vector<std::uint8_t>& own, std::size_t microbatches);

  // Views of the ends' parameters or gradients in a flat vector.
  Matrix token_table(Real* flat) const {
    return Matrix(flat + m_table.token_table, classes().count, width());
  }
  Matrix position_table(Real* flat) const {
    return Matrix(flat + m_table.position_table, context(), width());
  }
  Vector norm_scale(Real* flat) const { return Vector(flat + m_table.norm_scale, width()); }
  Vector norm_shift(Real* flat) const { return Vector(flat + m_table.norm_shift, width()); }
  Matrix vocabulary_weight(Real* flat) const {
    return Matrix(flat + m_table.vocabulary_weight, width(), classes().count);
  }
  /// The same, of a tied matrix in memory of its own.
  Matrix head_weight(Real* flat);
  /// Where to add its gradient, which add_head_gradient() then hands on.
  Matrix begin_head_gradient(Real* grads);
  void add_head_gradient(Real* grads);
  Vector vocabulary_bias(Real* flat) const {
    return Vector(flat + m_table.vocabulary_bias, classes().count);
  }

  /// Positions as rows of the position table.
  [[nodiscard]] static Positions table_rows(const execution_space& exec,
                                            const heddle::IndexSet& positions);
  /// The tokens of `all` at this rank's positions, then those that they must foretell, for each
  /// sequence.
  [[nodiscard]] std::vector<std::uint8_t> own_tokens(std::span<const std::uint8_t> all) const;

  /// The tokens that a microbatch reads, and those that it must foretell: one position later.
  TokenMatrix input_tokens(heddle::Item m) const { return tokens(m, 0); }
  TokenMatrix targets(heddle::Item m) const { return tokens(m, 1); }
  TokenMatrix tokens(heddle::Item m, std::size_t half) const {
    const std::size_t each = positions();
    const std::size_t count = m_blocks.shape.attention.sequences;
    const std::size_t begin =
        m_packed.empty() ? m_first_sequence[+m] * 2 * each : m_packed_tokens[+m].begin;
    const TokenMatrix all(m_tokens.data() + begin, count, 2 * each);
    return Kokkos::subview(all, Kokkos::ALL, std::pair(half * each, (half + 1) * each));
  }

  /// The gradient of block b's output and where that of its input goes.
  Input above(const Delta& delta, std::size_t b, const Real* output_grad) const {
    if (b + 1 < m_table.blocks.size()) return delta.after(b);
    return m_predicts ? Input(delta.top) : Input(output_grad, rows(), width());
  }
  Matrix below(const Delta& delta, std::size_t b, Real* input_grad) const {
    if (b > 0) return delta.after(b - 1);
    return m_embeds ? delta.bottom : Matrix(input_grad, rows(), width());
  }

  /// The head up to the logits, in keep.odds.
  void predict(Real* flat, const Matrix& stream, const Saved& keep);

  void start_parameters(std::uint64_t seed);

  /// Where the scale of every norm lies, with its shift behind it.
  [[nodiscard]] const std::vector<std::size_t>& norm_offsets() const { return m_norm_offsets; }
  /// Where a backward pass leaves the gradients of norm `i`: where rows are divided, in memory of
  /// their own, which add_norms() sums over the line. Later would be too late: gradients that are
  /// summed may be on their way to another replica.
  [[nodiscard]] Real* norm_gradients(Real* gradients, std::size_t i) const {
    return m_blocks.shape.sharded ? m_norms.data() + i * 2 * width()
                                  : gradients + norm_offsets()[i];
  }
  void add_norms(Real* gradients);

  /// Views of the parameters of a block.
  [[nodiscard]] typename Block::Weights block(Real* flat, std::size_t b) const {
    return {flat, m_table.blocks[b], m_blocks.shape};
  }
  /// Of the gradients, as a backward pass leaves them.
  [[nodiscard]] typename Block::Weights block_gradients(Real* flat, std::size_t b) const {
    typename Block::Weights views = block(flat, b);
    Real* const norm1 = norm_gradients(flat, 2 * b);
    Real* const norm2 = norm_gradients(flat, 2 * b + 1);
    views.scale1 = Vector(norm1, width());
    views.shift1 = Vector(norm1 + width(), width());
    views.scale2 = Vector(norm2, width());
    views.shift2 = Vector(norm2 + width(), width());
    return views;
  }

  GptConfig m_config;
  heddle::LayerRange m_range;
  GptTable m_table;
  bool m_embeds, m_predicts;
  execution_space m_exec;
  heddle::kernel::AdamOptions m_optimizer;
  heddle::ParameterShards<Real, execution_space> m_shards;
  std::vector<GptBlockShape> m_shapes;  ///< that microbatches may have
  Buffer m_scratch;
  Block m_blocks;
  heddle::IndexSet m_positions;                            ///< of this rank
  Positions m_table_rows;                                  ///< the same, if the sequence is sharded
  std::vector<GptPacked<Real, execution_space>> m_packed;  ///< of this step
  std::vector<PackedTokens> m_packed_tokens;
  Positions m_packed_rows;
  GptSliceAttention<Real, execution_space> m_slices;
  std::vector<Real*> m_kept;  ///< where the slices of this step are saved, by microbatch
  Buffer m_key_grads;         ///< of the slices of one sequence, by block
  std::size_t m_summed = 0;   ///< the microbatch that has added to m_key_grads last
  Buffer m_row_loss;
  Partials m_row_partials;
  std::vector<std::size_t> m_norm_offsets;
  Buffer m_norms;  ///< of a backward pass, where rows are divided
  Buffer m_head;  ///< a tied matrix of the vocabulary with a column for each token, or its gradient
  std::size_t m_activation_size = 0, m_saved_size = 0, m_delta_size = 0;
  double m_weight = 0;                        ///< of the loss of the present microbatch
  double m_whole_weight = 0;                  ///< of one with all sequences
  std::vector<std::size_t> m_first_sequence;  ///< of each microbatch, and the end of the last one
  Tokens m_tokens;
  Losses m_losses;
  Kokkos::View<double*, Kokkos::HostSpace> m_host_losses;
};

template <class Real, class Space>
template <class Visitor>
void GptStage<Real, Space>::visit_state(Visitor&& visitor) {
  const heddle::Share own = owned();
  for (const GptTensor& tensor : m_table.tensors) {
    const std::size_t first = std::max(tensor.offset, own.first);
    const std::size_t end = std::min(tensor.offset + tensor.size, own.end());
    if (first >= end) continue;
    int layer = 0;
    for (std::size_t b = 1; b < m_table.blocks.size(); ++b)
      if (tensor.offset >= m_table.blocks[b].norm1_scale) layer = static_cast<int>(b);
    if (!tensor.shared.empty()) layer = heddle::whole_model;
    heddle::IndexSet elements;
    tensor.slice.for_each_run(first - tensor.offset, end - tensor.offset,
                              [&](std::size_t place, std::size_t count) {
                                const auto begin = static_cast<std::int64_t>(place);
                                elements.add({begin, begin + static_cast<std::int64_t>(count)});
                              });
    const auto whole = static_cast<std::int64_t>(tensor.slice.whole_size());
    const std::pair<const char*, Real*> kept[] = {
        {"", m_shards.weights()}, {"mean/", m_shards.mean()}, {"square/", m_shards.square()}};
    for (const auto& [prefix, data] : kept)
      visitor(heddle::StateArray<Real, memory_space>{layer, prefix + tensor.origin(),
                                                     data + (first - own.first), elements, whole});
  }
  // The same for all layers, because the optimiser steps a stage as a whole.
  for (int layer = 0; layer < m_range.size(); ++layer)
    visitor(heddle::whole_array<Kokkos::HostSpace>(
        layer, "steps", reinterpret_cast<std::int64_t*>(&m_shards.steps()), 1));
}

}  // namespace examples
