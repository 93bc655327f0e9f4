// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Multi-head attention over a sequence that is sharded over the ranks of a SequenceLine. A stage
/// calls it where it would call kernel/attention.hpp, beside layers that need no other rank's rows.
///
/// Elements that a rank sends, in units of context * columns / (U R), without a mask, if positions
/// and heads divide, with G heads of Q for each K,V head:
///
///     forward   (2 + 2 / G) (U - 1) / U + (2 / G) (R - 1)
///     backward  (2 + 2 / G) (U - 1) / U + (4 / G) (R - 1)
///
/// Ulysses is R = 1, with 4 (U - 1) / U both ways for G = 1. Ring is U = 1. Under a causal mask the
/// ring leaves out blocks that nobody needs; see schedule::ring_attention().

#include <cstddef>
#include <cstdint>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/block_attention.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/sequence/sequence_line.hpp>
#include <heddle/sequence/sequence_shape.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The parts of `saved`, and their heads and rows.
template <class Real, class Exec>
struct SavedAttention {
  kernel::AttentionHeads heads;
  std::size_t rows;
  Real* qkv;  // Q | K | V after the exchange; if there is none, they are the caller's
  kernel::AttentionState<Real, Exec> state;

  SavedAttention(const SequenceLine<Real, Exec>& line, const SequenceShape& shape,
                 const kernel::Vector<Real, Exec>& saved)
      : heads(line.own_heads(shape.heads)),
        rows(line.ring_rows(shape)),
        qkv(saved.data()),
        state(kernel::attention_state_at<Exec>(saved.data() + line.saved_qkv_size(shape), heads,
                                               rows)) {}
};

/// Checks a matrix that travels as bytes.
template <class View>
void expect_dense(const char* where, const char* name, const View& view, std::size_t rows,
                  std::size_t columns) {
  kernel::expect_shape(where, name, view, rows, columns);
  expects(view.size() == 0 || view.span_is_contiguous(), [&] {
    return ErrorInfo{where, text("the rows of ", name, " lie apart"),
                     text("it is a block of a matrix with rows of ", view.stride(0), " elements"),
                     "copy it into a matrix of its own"};
  });
}

/// The rows of sequence `sequence` and some columns of a matrix of `sequences` sequences.
template <class View>
[[nodiscard]] auto sequence_rows(const View& all, std::size_t sequences, std::size_t sequence,
                                 std::size_t begin, std::size_t columns) {
  using Range = std::pair<std::size_t, std::size_t>;
  const std::size_t rows = all.extent(0) / sequences;
  return Kokkos::subview(all, Range(sequence * rows, (sequence + 1) * rows),
                         Range(begin, begin + columns));
}

/// Q, K and V of one sequence, as Views into Q | K | V.
template <class Into, class View>
[[nodiscard]] Into sequence_qkv(const View& qkv, const kernel::AttentionHeads& heads,
                                std::size_t sequences, std::size_t sequence) {
  const std::size_t q = heads.query_columns(), kv = heads.kv_columns();
  return {sequence_rows(qkv, sequences, sequence, 0, q),
          sequence_rows(qkv, sequences, sequence, q, kv),
          sequence_rows(qkv, sequences, sequence, q + kv, kv)};
}

/// One sequence of a state.
template <class Real, class Exec>
[[nodiscard]] kernel::AttentionState<Real, Exec> sequence_state(
    const kernel::AttentionState<Real, Exec>& state, std::size_t sequences, std::size_t sequence) {
  return {sequence_rows(state.output, sequences, sequence, 0, state.output.extent(1)),
          sequence_rows(state.log_sum, sequences, sequence, 0, state.log_sum.extent(1))};
}

/// Calls visit(piece, sub) for every piece of this rank's block of a ring. `sub(view, begin,
/// columns)` are the rows of the piece, in sequence `sequence` of `sequences`.
template <class Performer, class Visit>
void for_each_piece(const Performer& performer, std::size_t sequences, std::size_t sequence,
                    const Visit& visit) {
  std::size_t first = 0;
  for (std::uint32_t piece = 0; piece < performer.pieces(); ++piece) {
    const std::size_t end = first + performer.rows(piece);
    if (end > first)
      visit(piece, [&](const auto& view, std::size_t begin, std::size_t columns) {
        return Kokkos::subview(sequence_rows(view, sequences, sequence, begin, columns),
                               std::pair(first, end), Kokkos::ALL);
      });
    first = end;
  }
}

/// Copies Q, K and V of one sequence to the buffers of a ring.
template <class Performer, class Real, class Exec>
void put_ring_qkv(const Performer& performer, const Exec& exec,
                  const SavedAttention<Real, Exec>& own, std::size_t sequences,
                  std::size_t sequence, const kernel::Matrix<const Real, Exec>& qkv) {
  const std::size_t q = own.heads.query_columns(), kv = own.heads.kv_columns();
  for_each_piece(performer, sequences, sequence, [&](std::uint32_t piece, const auto& sub) {
    Kokkos::deep_copy(exec, performer.matrix("queries", piece, q), sub(qkv, 0, q));
    for (const std::size_t part : {std::size_t{0}, std::size_t{1}})
      Kokkos::deep_copy(exec, performer.matrix("keys_values", piece, kv, 2, part),
                        sub(qkv, q + part * kv, kv));
  });
}

/// Attention around the ring, of this rank's heads and all positions of its ring rank.
template <class Real, class Exec>
void ring_forward(const SequenceLine<Real, Exec>& line, const Exec& exec,
                  const SequenceShape& shape, const SavedAttention<Real, Exec>& own,
                  const kernel::Matrix<const Real, Exec>& qkv, Real* output) {
  const std::size_t columns = own.heads.query_columns(), each = line.ring_state_size(shape);
  const kernel::Matrix<Real, Exec> all_output(output, own.rows, columns);
  Real* state = own.state.output.data();
  auto& performer = line.ring_performer(shape, false, state);
  for (std::size_t s = 0; s < shape.sequences; ++s, state += each) {
    put_ring_qkv(performer, exec, own, shape.sequences, s, qkv);
    exec.fence("heddle::sequence::ring_forward");
    performer.run(exec, reinterpret_cast<std::byte*>(state), line.workspace().tile(),
                  line.execute());
    for_each_piece(performer, shape.sequences, s, [&](std::uint32_t piece, const auto& sub) {
      Kokkos::deep_copy(exec, sub(all_output, 0, columns), performer.state(state, piece).output);
    });
  }
}

/// The gradients of ring_forward().
template <class Real, class Exec>
void ring_backward(const SequenceLine<Real, Exec>& line, const Exec& exec,
                   const SequenceShape& shape, const SavedAttention<Real, Exec>& own,
                   const kernel::Matrix<const Real, Exec>& qkv,
                   const kernel::Matrix<const Real, Exec>& output_grad,
                   const kernel::Matrix<Real, Exec>& qkv_grad) {
  const std::size_t q = own.heads.query_columns(), kv = own.heads.kv_columns();
  const std::size_t each = line.ring_state_size(shape);
  Real* state = own.state.output.data();
  auto& performer = line.ring_performer(shape, true, state);
  for (std::size_t s = 0; s < shape.sequences; ++s, state += each) {
    put_ring_qkv(performer, exec, own, shape.sequences, s, qkv);
    for_each_piece(performer, shape.sequences, s, [&](std::uint32_t piece, const auto& sub) {
      Kokkos::deep_copy(exec, performer.matrix("output_grads", piece, q), sub(output_grad, 0, q));
    });
    exec.fence("heddle::sequence::ring_backward");
    performer.run(exec, reinterpret_cast<std::byte*>(state), line.workspace().tile(),
                  line.execute());
    for_each_piece(performer, shape.sequences, s, [&](std::uint32_t piece, const auto& sub) {
      Kokkos::deep_copy(exec, sub(qkv_grad, 0, q), performer.matrix("query_grads", piece, q));
      for (const std::size_t part : {std::size_t{0}, std::size_t{1}})
        Kokkos::deep_copy(exec, sub(qkv_grad, q + part * kv, kv),
                          performer.matrix("key_value_grads", piece, kv, 2, part));
    });
  }
}

}  // namespace impl

/// Computes attention over all positions of each sequence for this rank's rows: `qkv` (rows x Q | K
/// | V) to `output` (rows x heads * head width), with line.rows(shape) rows. `saved`, of
/// line.saved_size(shape) elements, is kept for backward. Returns when this rank may write `qkv`;
/// the last kernels may still be queued in `exec`.
/// @throws contract_error if the shapes do not fit, if the matrices are not dense, or as
///         SequenceLine::own_heads(). communication_error if another rank fails, or does not come
///         within the watchdog's time.
template <class Real, class Exec>
void sequence_attention_forward(const SequenceLine<Real, Exec>& line, const Exec& exec,
                                const SequenceShape& shape,
                                const typename SequenceLine<Real, Exec>::Input& qkv,
                                const typename SequenceLine<Real, Exec>::Vector& saved,
                                const typename SequenceLine<Real, Exec>::Matrix& output) {
  constexpr const char* where = "heddle::sequence_attention_forward";
  impl::expect_dense(where, "qkv", qkv, line.rows(shape), shape.qkv_columns());
  impl::expect_dense(where, "output", output, line.rows(shape), shape.heads.query_columns());
  kernel::expect_shape(where, "saved", saved, line.saved_size(shape));
  shape.mask.expect_valid(where);
  line.check_call(where, shape);
  if (shape.sequences == 0 || shape.context == 0) return;
  const impl::SavedAttention<Real, Exec> own(line, shape, saved);
  const bool exchanges = line.heads_size() > 1;
  if (exchanges) line.exchange(exec, shape, true, false, qkv.data(), own.qkv);
  const typename SequenceLine<Real, Exec>::Input own_qkv(
      exchanges ? own.qkv : qkv.data(), own.rows,
      own.heads.query_columns() + 2 * own.heads.kv_columns());

  if (line.ring_size() > 1) {
    Real* const own_output =
        exchanges ? line.workspace().elements(own.rows * own.heads.query_columns()) : output.data();
    impl::ring_forward(line, exec, shape, own, own_qkv, own_output);
    if (exchanges) line.exchange(exec, shape, false, true, own_output, output.data());
    return;
  }
  const IndexSet positions = line.ring_positions(shape.context, line.ring_rank());
  const auto visible = line.workspace().visible(positions, positions, shape.mask);
  kernel::clear_attention(exec, own.state);
  for (std::size_t s = 0; s < shape.sequences; ++s)
    kernel::block_attention_forward(exec, own.heads, visible,
                                    impl::sequence_qkv<kernel::AttentionInput<Real, Exec>>(
                                        own_qkv, own.heads, shape.sequences, s),
                                    line.workspace().tile(),
                                    impl::sequence_state(own.state, shape.sequences, s));

  if (exchanges)
    line.exchange(exec, shape, false, true, own.state.output.data(), output.data());
  else
    Kokkos::deep_copy(exec, output, own.state.output);
}

/// Writes `qkv_grad` (rows x Q | K | V) from `output_grad` (rows x heads * head width). `qkv` and
/// `saved` are those of sequence_attention_forward(); `qkv` is not read if the heads axis has
/// several ranks. Returns as forward does.
/// @throws as above.
template <class Real, class Exec>
void sequence_attention_backward(const SequenceLine<Real, Exec>& line, const Exec& exec,
                                 const SequenceShape& shape,
                                 const typename SequenceLine<Real, Exec>::Input& qkv,
                                 const typename SequenceLine<Real, Exec>::Vector& saved,
                                 const typename SequenceLine<Real, Exec>::Input& output_grad,
                                 const typename SequenceLine<Real, Exec>::Matrix& qkv_grad) {
  using Line = SequenceLine<Real, Exec>;
  constexpr const char* where = "heddle::sequence_attention_backward";
  const std::size_t rows = line.rows(shape);
  impl::expect_dense(where, "qkv", qkv, rows, shape.qkv_columns());
  impl::expect_dense(where, "output_grad", output_grad, rows, shape.heads.query_columns());
  impl::expect_dense(where, "qkv_grad", qkv_grad, rows, shape.qkv_columns());
  kernel::expect_shape(where, "saved", saved, line.saved_size(shape));
  line.check_call(where, shape);
  if (shape.sequences == 0 || shape.context == 0) return;
  const impl::SavedAttention<Real, Exec> own(line, shape, saved);
  const bool exchanges = line.heads_size() > 1;
  const std::size_t columns = own.heads.query_columns();
  const std::size_t qkv_columns = columns + 2 * own.heads.kv_columns();
  // The gradients of this rank's heads: of the output, then of Q | K | V.
  Real* const scratch =
      exchanges ? line.workspace().elements(own.rows * (columns + qkv_columns)) : nullptr;
  if (exchanges) line.exchange(exec, shape, false, false, output_grad.data(), scratch);
  const typename Line::Input own_qkv(exchanges ? own.qkv : qkv.data(), own.rows, qkv_columns);
  const typename Line::Input own_output_grad(exchanges ? scratch : output_grad.data(), own.rows,
                                             columns);
  const typename Line::Matrix own_grad(exchanges ? scratch + own.rows * columns : qkv_grad.data(),
                                       own.rows, qkv_columns);

  if (line.ring_size() > 1) {
    impl::ring_backward(line, exec, shape, own, own_qkv, own_output_grad, own_grad);
    if (exchanges) line.exchange(exec, shape, true, true, own_grad.data(), qkv_grad.data());
    return;
  }
  const IndexSet positions = line.ring_positions(shape.context, line.ring_rank());
  const auto visible = line.workspace().visible(positions, positions, shape.mask);
  Kokkos::deep_copy(exec, own_grad, Real(0));
  for (std::size_t s = 0; s < shape.sequences; ++s)
    kernel::block_attention_backward(
        exec, own.heads, visible,
        impl::sequence_qkv<kernel::AttentionInput<Real, Exec>>(own_qkv, own.heads, shape.sequences,
                                                               s),
        impl::sequence_state(own.state, shape.sequences, s),
        impl::sequence_rows(own_output_grad, shape.sequences, s, 0, columns),
        line.workspace().tile(),
        impl::sequence_qkv<kernel::AttentionInputGrad<Real, Exec>>(own_grad, own.heads,
                                                                   shape.sequences, s));

  if (exchanges) line.exchange(exec, shape, true, true, own_grad.data(), qkv_grad.data());
}

}  // namespace heddle::inline v0
