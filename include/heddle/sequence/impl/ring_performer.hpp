// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RingPerformer: one rank's part of attention in which blocks travel around a ring and states are
/// continued, by the methods ring and token_ring.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/combine.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/kernel/block_attention.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/kernel/visible_keys.hpp>
#include <heddle/layout/attention_mask.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/attention/ring_attention.hpp>
#include <heddle/schedule/attention/token_ring.hpp>
#include <heddle/schedule/pass/drop_unread.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/sequence_method.hpp>
#include <heddle/sequence/impl/attention_performer.hpp>

namespace heddle::inline v0::impl {

/// Performs ring_attention() or token_ring() again and again, one sequence at a time. The caller
/// keeps the state of each sequence: ring_kept_size() elements.
template <class Real, class Exec>
class RingPerformer {
  using Performer = AttentionPerformer<Real, Exec>;
  using Matrix = kernel::Matrix<Real, Exec>;
  using State = kernel::AttentionState<Real, Exec>;

 public:
  /// `transport` outlives this.
  RingPerformer(SequenceMethod method, const schedule::AttentionForm& form, MpiTransport& transport,
                Real* kept)
      : m_queries_travel(method == SequenceMethod::token_ring),
        m_form(form),
        m_pieces(form),
        m_heads(heads_of(form)),
        m_rank(static_cast<std::uint32_t>(+transport.rank())),
        m_performer(in_two_blocks(m_queries_travel ? schedule::token_ring(form)
                                                   : schedule::ring_attention(form),
                                  form),
                    transport, places(m_queries_travel), kept) {}

  /// Computes the output of one sequence. Tiles of scores are in `tile`.
  void forward(const Exec& exec, const AttentionRows<Real, Exec>& rows, Real* kept,
               const Matrix& tile, const ExecuteOptions& options) {
    run(exec, rows, kept, tile, options);
    for_each_piece([&](std::uint32_t piece, const Range& range) {
      Kokkos::deep_copy(exec, rows_of(rows.output, range),
                        state_of(kept, piece, this->rows(m_rank, piece)).output);
    });
  }
  /// Computes the gradients of one sequence from what forward() kept.
  void backward(const Exec& exec, const AttentionRows<Real, Exec>& rows, Real* kept,
                const Matrix& tile, const ExecuteOptions& options) {
    run(exec, rows, kept, tile, options);
    const Real* const grads = m_performer.buffer("key_value_grads");
    for_each_piece([&](std::uint32_t piece, const Range& range) {
      Kokkos::deep_copy(exec, rows_of(rows.input_grad.keys, range), of_keys(grads, piece, 0));
      Kokkos::deep_copy(exec, rows_of(rows.input_grad.values, range), of_keys(grads, piece, 1));
    });
  }

  /// Bytes of the buffers that are allocated here.
  [[nodiscard]] Bytes allocated() const noexcept { return m_performer.allocated(); }

 private:
  using Table = std::shared_ptr<const kernel::VisibleKeys<Exec>>;
  using Range = std::pair<std::size_t, std::size_t>;

  /// `schedule` without moves that nobody needs, and with room for two travelling blocks.
  [[nodiscard]] static Schedule in_two_blocks(const Schedule& schedule,
                                              const schedule::AttentionForm& form) {
    return schedule::reuse_own_block(
        schedule::fold_attention(schedule::drop_unread(schedule), form), form);
  }
  [[nodiscard]] static BufferPlaces places(bool queries_travel) {
    BufferPlaces made{{{"state", 0}}, {"output_grads", "query_grads"}};
    if (!queries_travel) made.views.push_back("queries");
    return made;
  }
  [[nodiscard]] std::size_t capacity() const {
    return static_cast<std::size_t>(m_pieces.capacity());
  }
  [[nodiscard]] std::size_t rows(std::uint32_t block, std::uint32_t piece) const {
    return static_cast<std::size_t>(m_pieces.positions(block, piece).size());
  }
  /// The rows of a piece in a matrix of this rank's block.
  [[nodiscard]] Range range(std::uint32_t piece) const {
    const std::size_t first = piece == 0 ? 0 : rows(m_rank, 0);
    return {first, first + rows(m_rank, piece)};
  }
  template <class View>
  [[nodiscard]] static auto rows_of(const View& view, const Range& range) {
    return Kokkos::subview(view, range, Kokkos::ALL);
  }
  /// Calls visit(piece, range) for every piece of this rank's block that has rows.
  template <class Visit>
  void for_each_piece(const Visit& visit) const {
    for (std::uint32_t piece = 0; piece < m_pieces.pieces(); ++piece)
      if (rows(m_rank, piece) > 0) visit(piece, range(piece));
  }

  /// The first `rows` rows of piece `piece` of a buffer of queries.
  template <class T>
  [[nodiscard]] kernel::Matrix<T, Exec> of_queries(T* data, std::size_t piece,
                                                   std::size_t rows) const {
    return kernel::Matrix<T, Exec>(data + piece * capacity() * m_heads.query_columns(), rows,
                                   m_heads.query_columns());
  }
  /// Keys (part 0) or values (part 1) of piece `piece` of a buffer of keys and values.
  template <class T>
  [[nodiscard]] kernel::Matrix<T, Exec> of_keys(T* data, std::size_t piece, std::size_t part,
                                                std::size_t rows) const {
    return kernel::Matrix<T, Exec>(data + (2 * piece + part) * capacity() * m_heads.kv_columns(),
                                   rows, m_heads.kv_columns());
  }
  /// Keys or values of piece `piece` of this rank's block.
  template <class T>
  [[nodiscard]] kernel::Matrix<T, Exec> of_keys(T* data, std::uint32_t piece,
                                                std::size_t part) const {
    return of_keys(data, piece, part, rows(m_rank, piece));
  }
  /// The state of a piece, which has room for capacity() rows.
  template <class T>
  [[nodiscard]] kernel::AttentionState<T, Exec> state_of(T* state, std::size_t piece,
                                                         std::size_t rows) const {
    return kernel::impl::attention_state_at<Exec>(
        state + piece * kernel::impl::attention_state_size(m_heads, capacity()), m_heads, rows,
        capacity());
  }

  void run(const Exec& exec, const AttentionRows<Real, Exec>& rows, Real* kept, const Matrix& tile,
           const ExecuteOptions& options) {
    for_each_piece([&](std::uint32_t piece, const Range& range) {
      Real* const keys = m_performer.buffer("keys_values");
      Kokkos::deep_copy(exec, of_keys(keys, piece, 0), rows_of(rows.input.keys, range));
      Kokkos::deep_copy(exec, of_keys(keys, piece, 1), rows_of(rows.input.values, range));
      if (m_queries_travel)
        Kokkos::deep_copy(
            exec, of_queries(m_performer.buffer("queries"), piece, this->rows(m_rank, piece)),
            rows_of(rows.input.queries, range));
    });
    exec.fence("heddle::sequence::ring");
    const auto handler = [&](const Task& task) {
      if (combines_records(task))
        combine_records<Real>(task, [&](const Real* from, Real* into, std::size_t) {
          kernel::join_attention(exec, m_heads, state_of(from, 0, capacity()),
                                 state_of(into, 0, capacity()));
        });
      else if (task.kind() == Kind::combine)
        Performer::join(exec, task);
      else
        attend(exec, task, rows, tile);
      if constexpr (!kernel::runs_on_host<Exec>) exec.fence("heddle::sequence::block");
    };
    m_performer.run(kept, options, handler);
  }

  /// The keys of one piece that queries of another see; null if they see none. Pairs of pieces that
  /// see each other whole share one table, so that the tables do not grow with the number of ranks.
  [[nodiscard]] const kernel::VisibleKeys<Exec>* visible(std::uint32_t queries,
                                                         std::uint32_t query_piece,
                                                         std::uint32_t keys,
                                                         std::uint32_t key_piece) {
    const auto [found, added] =
        m_visible.try_emplace({queries, query_piece, keys, key_piece}, nullptr);
    Table& table = found->second;
    if (!added) return table.get();
    const IndexSet& of_queries = m_pieces.positions(queries, query_piece);
    const IndexSet& of_keys = m_pieces.positions(keys, key_piece);
    const std::int64_t pairs = m_pieces.pairs({queries, keys, query_piece, 1, key_piece, 1});
    if (pairs == 0) return nullptr;
    const auto make = [](const IndexSet& rows, const IndexSet& columns, const AttentionMask& mask) {
      return std::make_shared<const kernel::VisibleKeys<Exec>>(rows, columns, mask);
    };
    if (pairs != of_queries.size() * of_keys.size()) {
      table = make(of_queries, of_keys, m_form.mask);
    } else {
      Table& whole = m_whole[{of_queries.size(), of_keys.size()}];
      if (whole == nullptr)
        whole = make(IndexSet(of_queries.size()), IndexSet(of_keys.size()), {.causal = false});
      table = whole;
    }
    return table.get();
  }

  void attend(const Exec& exec, const Task& task, const AttentionRows<Real, Exec>& own,
              const Matrix& tile) {
    const schedule::AttentionPieces::Block block =
        m_pieces.block(m_performer.schedule(), task.id());
    const auto uses = task.uses();
    const auto data = [&](std::size_t use) { return reinterpret_cast<Real*>(uses[use].data); };
    const bool backward = task.kind() == Kind::backward;
    const auto begins = [&](std::size_t use) { return uses[use].access == Access::write; };
    if (backward) {
      Performer::clear(exec, uses[5]);
      for (std::uint32_t q = 0; begins(4) && q < block.query_count; ++q)
        Kokkos::deep_copy(exec, rows_of(own.input_grad.queries, range(block.first_query + q)),
                          Real(0));
    } else if (begins(2)) {
      for (std::uint32_t q = 0; q < block.query_count; ++q)
        kernel::clear_attention(exec, state_of(data(2), q, capacity()));
    }
    for (std::uint32_t q = 0; q < block.query_count; ++q)
      for (std::uint32_t k = 0; k < block.key_count; ++k) {
        const std::uint32_t query_piece = block.first_query + q, key_piece = block.first_key + k;
        const std::size_t queries = rows(block.queries, query_piece);
        const std::size_t keys = rows(block.keys, key_piece);
        const kernel::VisibleKeys<Exec>* const seen =
            visible(block.queries, query_piece, block.keys, key_piece);
        if (seen == nullptr) continue;
        kernel::AttentionInput<Real, Exec> input{
            {}, of_keys(data(1), k, 0, keys), of_keys(data(1), k, 1, keys)};
        if (m_queries_travel)
          input.queries = of_queries(data(0), q, queries);
        else
          input.queries = rows_of(own.input.queries, range(query_piece));
        const State state = state_of(data(2), q, queries);
        if (backward)
          kernel::block_attention_backward(
              exec, m_heads, *seen, input, state, rows_of(own.output_grad, range(query_piece)),
              tile,
              kernel::AttentionInputGrad<Real, Exec>{
                  rows_of(own.input_grad.queries, range(query_piece)), of_keys(data(5), k, 0, keys),
                  of_keys(data(5), k, 1, keys)});
        else
          kernel::block_attention_forward(exec, m_heads, *seen, input, tile, state);
      }
  }

  bool m_queries_travel;  // token_ring: the queries of other ranks come, and their states return
  schedule::AttentionForm m_form;
  schedule::AttentionPieces m_pieces;
  kernel::AttentionHeads m_heads;
  std::uint32_t m_rank;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, Table>
      m_visible;  // by block and piece of the queries, and of the keys
  std::map<std::pair<std::int64_t, std::int64_t>, Table> m_whole;  // by numbers of queries and keys
  Performer m_performer;
};

}  // namespace heddle::inline v0::impl
