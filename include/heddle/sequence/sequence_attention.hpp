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
/// ring leaves out blocks that nobody needs; see schedule::ring_attention(). RSA sends as many
/// elements as ring, in twice as many messages, and keeps all probabilities for backward.
/// TokenRing sends (R - 1) (2 + 2 / head width) forward; it has no backward pass.

#include <cstddef>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/block_attention.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/schedule/sequence_method.hpp>
#include <heddle/sequence/impl/attention_performer.hpp>
#include <heddle/sequence/impl/ring_performer.hpp>
#include <heddle/sequence/impl/rsa_performer.hpp>
#include <heddle/sequence/sequence_line.hpp>
#include <heddle/sequence/sequence_shape.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The memory that forward saves for backward, by its parts, with the heads and rows in it.
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
        state(kernel::impl::attention_state_at<Exec>(saved.data() + line.saved_qkv_size(shape),
                                                     heads, rows)) {}
};

/// Throws contract_error if a matrix has another shape, or gaps between its rows: its memory is
/// sent as one range of bytes.
template <class View>
void expect_dense(const char* where, const char* name, const View& view, std::size_t rows,
                  std::size_t columns) {
  kernel::impl::expect_shape(where, name, view, rows, columns);
  expects(view.size() == 0 || view.span_is_contiguous(), [&] {
    return ErrorInfo{where, text("the rows of ", name, " have gaps between them"),
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
          sequence_rows(state.max, sequences, sequence, 0, state.max.extent(1)),
          sequence_rows(state.sum, sequences, sequence, 0, state.sum.extent(1))};
}

/// Calls perform(performer, rows, kept) for every sequence, with its Q, K and V, and with the part
/// of `own` that it keeps from forward to backward.
template <class Performer, class Real, class Exec, class Perform>
void for_each_ring_call(const SequenceLine<Real, Exec>& line, const SequenceShape& shape,
                        const SavedAttention<Real, Exec>& own, bool backward,
                        const kernel::Matrix<const Real, Exec>& qkv, const Perform& perform) {
  Real* kept = own.state.output.data();
  auto& performer = line.template ring_performer<Performer>(shape, backward, kept);
  const std::size_t each = line.ring_state_size(shape);
  for (std::size_t s = 0; s < shape.sequences; ++s, kept += each)
    perform(performer,
            AttentionRows<Real, Exec>{sequence_qkv<kernel::AttentionInput<Real, Exec>>(
                qkv, own.heads, shape.sequences, s)},
            kept, s);
}

/// Calls visit(a null pointer to the type that performs the line's method for `shape`).
template <class Real, class Exec, class Visit>
void with_ring_performer(const SequenceLine<Real, Exec>& line, const SequenceShape& shape,
                         const Visit& visit) {
  if (line.method(shape) == SequenceMethod::rsa)
    visit(static_cast<RsaPerformer<Real, Exec>*>(nullptr));
  else
    visit(static_cast<RingPerformer<Real, Exec>*>(nullptr));
}

/// Attention around the ring, of this rank's heads and all positions of its ring rank.
template <class Real, class Exec>
void ring_forward(const SequenceLine<Real, Exec>& line, const Exec& exec,
                  const SequenceShape& shape, const SavedAttention<Real, Exec>& own,
                  const kernel::Matrix<const Real, Exec>& qkv, Real* output) {
  const std::size_t columns = own.heads.query_columns();
  const kernel::Matrix<Real, Exec> all_output(output, own.rows, columns);
  with_ring_performer(line, shape, [&]<class Performer>(Performer*) {
    for_each_ring_call<Performer>(
        line, shape, own, false, qkv,
        [&](Performer& performer, AttentionRows<Real, Exec> rows, Real* kept, std::size_t s) {
          rows.output = sequence_rows(all_output, shape.sequences, s, 0, columns);
          performer.forward(exec, rows, kept, line.workspace().tile(), line.execute());
        });
  });
}

/// The gradients of ring_forward().
template <class Real, class Exec>
void ring_backward(const SequenceLine<Real, Exec>& line, const Exec& exec,
                   const SequenceShape& shape, const SavedAttention<Real, Exec>& own,
                   const kernel::Matrix<const Real, Exec>& qkv,
                   const kernel::Matrix<const Real, Exec>& output_grad,
                   const kernel::Matrix<Real, Exec>& qkv_grad) {
  with_ring_performer(line, shape, [&]<class Performer>(Performer*) {
    for_each_ring_call<Performer>(
        line, shape, own, true, qkv,
        [&](Performer& performer, AttentionRows<Real, Exec> rows, Real* kept, std::size_t s) {
          rows.output_grad =
              sequence_rows(output_grad, shape.sequences, s, 0, own.heads.query_columns());
          rows.input_grad = sequence_qkv<kernel::AttentionInputGrad<Real, Exec>>(
              qkv_grad, own.heads, shape.sequences, s);
          performer.backward(exec, rows, kept, line.workspace().tile(), line.execute());
        });
  });
}

/// Attention of shards that are not empty, after all checks.
template <class Real, class Exec>
void attend_forward(const SequenceLine<Real, Exec>& line, const Exec& exec,
                    const SequenceShape& shape, const kernel::Matrix<const Real, Exec>& qkv,
                    const kernel::Vector<Real, Exec>& saved,
                    const kernel::Matrix<Real, Exec>& output) {
  const SavedAttention<Real, Exec> own(line, shape, saved);
  const bool exchanges = line.heads_size() > 1;
  if (exchanges) line.exchange(exec, shape, true, false, qkv.data(), own.qkv);
  const kernel::Matrix<const Real, Exec> own_qkv(
      exchanges ? own.qkv : qkv.data(), own.rows,
      own.heads.query_columns() + 2 * own.heads.kv_columns());

  if (line.ring_size() > 1) {
    Real* const own_output =
        exchanges ? line.workspace().elements(own.rows * own.heads.query_columns()) : output.data();
    ring_forward(line, exec, shape, own, own_qkv, own_output);
    if (exchanges) line.exchange(exec, shape, false, true, own_output, output.data());
    return;
  }
  const IndexSet positions = line.ring_positions(shape.context, line.ring_rank());
  const auto visible = line.workspace().visible(positions, positions, shape.mask);
  kernel::clear_attention(exec, own.state);
  for (std::size_t s = 0; s < shape.sequences; ++s)
    kernel::block_attention_forward(
        exec, own.heads, visible,
        sequence_qkv<kernel::AttentionInput<Real, Exec>>(own_qkv, own.heads, shape.sequences, s),
        line.workspace().tile(), sequence_state(own.state, shape.sequences, s));

  if (exchanges)
    line.exchange(exec, shape, false, true, own.state.output.data(), output.data());
  else
    Kokkos::deep_copy(exec, output, own.state.output);
}

/// The gradients of attend_forward().
template <class Real, class Exec>
void attend_backward(const SequenceLine<Real, Exec>& line, const Exec& exec,
                     const SequenceShape& shape, const kernel::Matrix<const Real, Exec>& qkv,
                     const kernel::Vector<Real, Exec>& saved,
                     const kernel::Matrix<const Real, Exec>& output_grad,
                     const kernel::Matrix<Real, Exec>& qkv_grad) {
  const SavedAttention<Real, Exec> own(line, shape, saved);
  const bool exchanges = line.heads_size() > 1;
  const std::size_t columns = own.heads.query_columns();
  const std::size_t qkv_columns = columns + 2 * own.heads.kv_columns();
  // The gradients of this rank's heads: of the output, then of Q | K | V.
  Real* const scratch =
      exchanges ? line.workspace().elements(own.rows * (columns + qkv_columns)) : nullptr;
  if (exchanges) line.exchange(exec, shape, false, false, output_grad.data(), scratch);
  const kernel::Matrix<const Real, Exec> own_qkv(exchanges ? own.qkv : qkv.data(), own.rows,
                                                 qkv_columns);
  const kernel::Matrix<const Real, Exec> own_output_grad(exchanges ? scratch : output_grad.data(),
                                                         own.rows, columns);
  const kernel::Matrix<Real, Exec> own_grad(
      exchanges ? scratch + own.rows * columns : qkv_grad.data(), own.rows, qkv_columns);

  if (line.ring_size() > 1) {
    ring_backward(line, exec, shape, own, own_qkv, own_output_grad, own_grad);
    if (exchanges) line.exchange(exec, shape, true, true, own_grad.data(), qkv_grad.data());
    return;
  }
  const IndexSet positions = line.ring_positions(shape.context, line.ring_rank());
  const auto visible = line.workspace().visible(positions, positions, shape.mask);
  Kokkos::deep_copy(exec, own_grad, Real(0));
  for (std::size_t s = 0; s < shape.sequences; ++s)
    kernel::block_attention_backward(
        exec, own.heads, visible,
        sequence_qkv<kernel::AttentionInput<Real, Exec>>(own_qkv, own.heads, shape.sequences, s),
        sequence_state(own.state, shape.sequences, s),
        sequence_rows(own_output_grad, shape.sequences, s, 0, columns), line.workspace().tile(),
        sequence_qkv<kernel::AttentionInputGrad<Real, Exec>>(own_grad, own.heads, shape.sequences,
                                                             s));

  if (exchanges) line.exchange(exec, shape, true, true, own_grad.data(), qkv_grad.data());
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
  impl::expect_valid(shape, where);
  impl::expect_dense(where, "qkv", qkv, line.rows(shape), shape.qkv_columns());
  impl::expect_dense(where, "output", output, line.rows(shape), shape.heads.query_columns());
  kernel::impl::expect_shape(where, "saved", saved, line.saved_size(shape));
  line.check_call(where, shape);
  if (shape.sequences == 0 || shape.context == 0) return;
  line.abort_on_error("forward of attention over a sharded sequence", [&] {
    impl::attend_forward<Real, Exec>(line, exec, shape, qkv, saved, output);
  });
}

/// Writes `qkv_grad` (rows x Q | K | V) from `output_grad` (rows x heads * head width). `qkv` and
/// `saved` are those of sequence_attention_forward(); `qkv` is not read if the heads axis has
/// several ranks, and otherwise does not overlap `qkv_grad`. Returns as forward does.
/// @throws contract_error for the method token_ring, of which no backward pass is published;
///         otherwise as above.
template <class Real, class Exec>
void sequence_attention_backward(const SequenceLine<Real, Exec>& line, const Exec& exec,
                                 const SequenceShape& shape,
                                 const typename SequenceLine<Real, Exec>::Input& qkv,
                                 const typename SequenceLine<Real, Exec>::Vector& saved,
                                 const typename SequenceLine<Real, Exec>::Input& output_grad,
                                 const typename SequenceLine<Real, Exec>::Matrix& qkv_grad) {
  constexpr const char* where = "heddle::sequence_attention_backward";
  impl::expect_valid(shape, where);
  const std::size_t rows = line.rows(shape);
  impl::expect_dense(where, "qkv", qkv, rows, shape.qkv_columns());
  impl::expect_dense(where, "output_grad", output_grad, rows, shape.heads.query_columns());
  impl::expect_dense(where, "qkv_grad", qkv_grad, rows, shape.qkv_columns());
  kernel::impl::expect_shape(where, "saved", saved, line.saved_size(shape));
  expects(line.method(shape) != SequenceMethod::token_ring, [&] {
    return ErrorInfo{
        where, "the method token_ring has no backward pass",
        text("no publication describes one; the line has ", line.ring_size(), " ring ranks"),
        "train with the method ring, which may have two ways"};
  });
  line.check_call(where, shape);
  if (shape.sequences == 0 || shape.context == 0) return;
  line.abort_on_error("backward of attention over a sharded sequence", [&] {
    impl::attend_backward<Real, Exec>(line, exec, shape, qkv, saved, output_grad, qkv_grad);
  });
}

}  // namespace heddle::inline v0
