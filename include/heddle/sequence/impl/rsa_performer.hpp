// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RsaPerformer: one rank's part of ring self-attention, which keeps whole rows of probabilities.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/kernel/attention_rows.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/kernel/visible_keys.hpp>
#include <heddle/layout/attention_mask.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/attention/rsa.hpp>
#include <heddle/schedule/pass/drop_unread.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/sequence_method.hpp>
#include <heddle/sequence/impl/attention_performer.hpp>

namespace heddle::inline v0::impl {

/// Performs rsa() again and again, one sequence at a time. The caller keeps the output and the
/// probabilities of each sequence: rsa_kept_size() elements.
template <class Real, class Exec>
class RsaPerformer {
  using Performer = AttentionPerformer<Real, Exec>;
  using Matrix = kernel::Matrix<Real, Exec>;

 public:
  /// `transport` outlives this.
  RsaPerformer(SequenceMethod, const schedule::AttentionForm& form, MpiTransport& transport,
               Real* kept)
      : m_pieces(form),
        m_heads(heads_of(form)),
        m_rank(static_cast<std::uint32_t>(+transport.rank())),
        m_scores_size(rsa_scores_size(form)),
        m_visible(static_cast<std::size_t>(form.ranks)),
        m_mask(form.mask),
        m_performer(schedule::fold_attention(schedule::drop_unread(schedule::rsa(form)), form),
                    transport,
                    {{{"output", 0}, {"scores", rsa_output_size(form)}},
                     {"queries", "output_grads", "query_grads"}},
                    kept) {
    if (!form.backward)
      m_softmax =
          Softmax(Kokkos::view_alloc(Kokkos::WithoutInitializing, "heddle::sequence::softmax"), 2,
                  m_heads.heads * rows(m_rank));
  }

  /// Computes the output of one sequence. The tile is not used.
  void forward(const Exec& exec, const AttentionRows<Real, Exec>& rows, Real* kept, const Matrix&,
               const ExecuteOptions& options) {
    run(exec, rows, kept, options);
    Kokkos::deep_copy(exec, rows.output, of_queries(kept));
  }
  /// Computes the gradients of one sequence from what forward() kept. The tile is not used.
  void backward(const Exec& exec, const AttentionRows<Real, Exec>& rows, Real* kept, const Matrix&,
                const ExecuteOptions& options) {
    run(exec, rows, kept, options);
    const std::size_t part =
        m_rank * static_cast<std::size_t>(m_pieces.block_capacity()) * m_heads.kv_columns();
    Kokkos::deep_copy(exec, rows.input_grad.keys,
                      of_keys(m_performer.buffer("key_grads") + part, m_rank));
    Kokkos::deep_copy(exec, rows.input_grad.values,
                      of_keys(m_performer.buffer("value_grads") + part, m_rank));
  }

  /// Bytes of the buffers that are allocated here.
  [[nodiscard]] Bytes allocated() const noexcept {
    return m_performer.allocated() + m_softmax.size() * sizeof(Real);
  }

 private:
  using Softmax = Kokkos::View<Real**, Kokkos::LayoutRight, typename Exec::memory_space>;

  [[nodiscard]] std::size_t rows(std::uint32_t block) const {
    return static_cast<std::size_t>(m_pieces.positions(block, 0, m_pieces.pieces()).size());
  }
  [[nodiscard]] Matrix of_queries(Real* data) const {
    return Matrix(data, rows(m_rank), m_heads.query_columns());
  }
  [[nodiscard]] Matrix of_keys(Real* data, std::uint32_t block) const {
    return Matrix(data, rows(block), m_heads.kv_columns());
  }
  /// Scores of this rank's queries with a block of keys, as kernel/attention_rows.hpp has them.
  [[nodiscard]] Matrix scores(Real* data, std::uint32_t block) const {
    return Matrix(data, m_heads.heads * rows(m_rank), rows(block));
  }
  [[nodiscard]] const kernel::VisibleKeys<Exec>& visible(std::uint32_t block) {
    auto& found = m_visible[block];
    if (found == nullptr)
      found = std::make_unique<kernel::VisibleKeys<Exec>>(
          m_pieces.positions(m_rank, 0, m_pieces.pieces()),
          m_pieces.positions(block, 0, m_pieces.pieces()), m_mask);
    return *found;
  }

  void run(const Exec& exec, const AttentionRows<Real, Exec>& rows, Real* kept,
           const ExecuteOptions& options) {
    if (this->rows(m_rank) > 0) {
      Kokkos::deep_copy(exec, of_keys(m_performer.buffer("keys"), m_rank), rows.input.keys);
      Kokkos::deep_copy(exec, of_keys(m_performer.buffer("values"), m_rank), rows.input.values);
    }
    exec.fence("heddle::sequence::ring");
    const auto handler = [&](const Task& task) {
      switch (task.kind()) {
        case Kind::forward: forward(exec, task, rows); break;
        case Kind::backward: backward(exec, task, rows); break;
        case Kind::user: finish_rows(exec, task); break;
        default: Performer::join(exec, task); break;
      }
      if constexpr (!kernel::runs_on_host<Exec>) exec.fence("heddle::sequence::block");
    };
    m_performer.run(kept, options, handler);
  }

  [[nodiscard]] const std::string& label(const BoundUse& use) const {
    const Schedule& schedule = m_performer.schedule();
    return schedule[schedule[use.buffer].label];
  }
  [[nodiscard]] static Real* data(const BoundUse& use) { return reinterpret_cast<Real*>(use.data); }
  /// The block of keys that an action computes with.
  [[nodiscard]] static std::uint32_t block(const Task& task) { return task.item().value; }

  /// Scores with a block of keys, or, once they are probabilities, its part of the output.
  void forward(const Exec& exec, const Task& task, const AttentionRows<Real, Exec>& own) {
    const auto uses = task.uses();
    const std::uint32_t k = block(task);
    const Matrix keys = of_keys(data(uses[1]), k);
    if (label(uses[0]) != "scores")
      return kernel::impl::attention_scores(exec, m_heads, visible(k), own.input.queries, keys,
                                            scores(data(uses[2]), k));
    if (uses[2].access == Access::write) Performer::clear(exec, uses[2]);
    kernel::attend(exec, m_heads, visible(k), scores(data(uses[0]), k), keys,
                   of_queries(data(uses[2])));
  }

  /// Gradients of the scores with a block of keys and of its values, then those of the queries and
  /// of the keys.
  void backward(const Exec& exec, const Task& task, const AttentionRows<Real, Exec>& own) {
    const auto uses = task.uses();
    const std::uint32_t k = block(task);
    const Matrix keys = of_keys(data(uses[1]), k);
    if (label(uses[0]) == "scores") {
      Performer::clear(exec, uses[5]);
      return kernel::impl::attention_values_backward(
          exec, m_heads, visible(k), scores(data(uses[0]), k), keys, of_queries(data(uses[2])),
          own.output_grad, scores(data(uses[4]), k), of_keys(data(uses[5]), k));
    }
    Performer::clear(exec, uses[4]);
    if (uses[3].access == Access::write) Kokkos::deep_copy(exec, own.input_grad.queries, Real(0));
    kernel::impl::attention_scores_backward(exec, m_heads, visible(k), scores(data(uses[0]), k),
                                            own.input.queries, keys, own.input_grad.queries,
                                            of_keys(data(uses[4]), k));
  }

  /// The action between two passes: the softmax of all rows, or in the backward pass the gradients
  /// of blocks that this rank does not see.
  void finish_rows(const Exec& exec, const Task& task) {
    const auto uses = task.uses();
    if (label(uses[0]) != "scores") {
      for (const BoundUse& use : uses) Performer::clear(exec, use);
      return;
    }
    const kernel::Vector<Real, Exec> max(Kokkos::subview(m_softmax, 0, Kokkos::ALL));
    const kernel::Vector<Real, Exec> sum(Kokkos::subview(m_softmax, 1, Kokkos::ALL));
    Kokkos::deep_copy(exec, max, -Kokkos::Experimental::infinity_v<Real>);
    Kokkos::deep_copy(exec, sum, Real(0));
    const auto for_each_block = [&](const auto& visit) {
      const auto parts = task.schedule().uses(task.id());
      for (std::size_t i = 0; i + 1 < parts.size(); ++i)  // the last one is the values
        for (std::uint32_t part = 0; part < parts[i].count; ++part)
          visit(parts[i].first + part, data(uses[i]) + part * m_scores_size);
    };
    for_each_block([&](std::uint32_t k, Real* begin) {
      kernel::impl::add_to_softmax_sums(exec, m_heads, visible(k), scores(begin, k), max, sum);
    });
    for_each_block([&](std::uint32_t k, Real* begin) {
      kernel::impl::scores_to_probabilities(exec, m_heads, visible(k), max, sum, scores(begin, k));
    });
  }

  schedule::AttentionPieces m_pieces;
  kernel::AttentionHeads m_heads;
  std::uint32_t m_rank;
  std::size_t m_scores_size;  // elements for one block of keys
  std::vector<std::unique_ptr<kernel::VisibleKeys<Exec>>> m_visible;  // by block of keys
  AttentionMask m_mask;
  Softmax m_softmax = {};  // of each row of scores: the largest one, then the sum
  Performer m_performer;
};

}  // namespace heddle::inline v0::impl
