// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RingPerformer: one rank's part of an attention schedule around a ring, with the memory of its
/// buffers.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <typeindex>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/impl/joiner.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/kernel/block_attention.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/kernel/visible_keys.hpp>
#include <heddle/layout/placement.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/attention/ring_attention.hpp>
#include <heddle/schedule/pass/drop_unread.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/tensor/impl/merge_by.hpp>

namespace heddle::inline v0::impl {

/// Performs ring_attention() again and again, one sequence at a time. The caller copies rows to and
/// from the persistent buffers, piece by piece; the buffer "state" is the caller's.
template <class Real, class Exec>
class RingPerformer {
  using MemorySpace = typename Exec::memory_space;
  using Carrier = DeviceTransport<MpiTransport, MemorySpace>;

 public:
  /// `state` is where the state of the first sequence will be. `transport` outlives this.
  RingPerformer(const schedule::AttentionForm& form, MpiTransport& transport, std::byte* state)
      : m_form(form),
        m_pieces(form),
        m_heads{static_cast<std::size_t>(form.heads), static_cast<std::size_t>(form.kv_heads),
                static_cast<std::size_t>(form.head_width)},
        m_rank(static_cast<std::uint32_t>(+transport.rank())),
        m_carrier(transport),
        m_state(state),
        m_schedule(
            schedule::fold_attention(schedule::drop_unread(schedule::ring_attention(form)), form)),
        m_executor(slice(m_schedule, transport.rank(),
                         [&](BufferId id, const Buffer& buffer) { return bind(id, buffer); }),
                   m_carrier) {}
  RingPerformer(const RingPerformer&) = delete;
  RingPerformer& operator=(const RingPerformer&) = delete;

  /// Performs the schedule with the state at `state`. Tiles of scores are in `tile`.
  void run(const Exec& exec, std::byte* state, const kernel::Matrix<Real, Exec>& tile,
           const ExecuteOptions& options) {
    if (m_state_id) m_executor.rebind(*m_state_id, m_state, state);
    m_state = state;
    m_executor.options(options);
    m_executor.begin();
    const auto handler = [&](const Task& task) {
      if (task.kind() == Kind::combine)
        Joiner<Exec, MemorySpace, Real, MergeBy>(exec, MergeBy{Merge::sum})(task);
      else
        attend(exec, task, tile);
      if constexpr (!kernel::runs_on_host<Exec>) exec.fence("heddle::sequence::block");
    };
    m_executor.finish(handler);
  }

  /// Number of pieces of this rank's block.
  [[nodiscard]] std::uint32_t pieces() const { return m_pieces.pieces(); }
  /// Rows of a piece that are in use.
  [[nodiscard]] std::size_t rows(std::uint32_t piece) const { return rows(m_rank, piece); }
  /// The rows of a piece of the buffer `label`, which has `columns` columns and in a piece `parts`
  /// matrices, one after the other: the one of number `part`.
  [[nodiscard]] kernel::Matrix<Real, Exec> matrix(const std::string& label, std::uint32_t piece,
                                                  std::size_t columns, std::size_t parts = 1,
                                                  std::size_t part = 0) const {
    Real* const begin = reinterpret_cast<Real*>(m_buffers.at(label).data());
    return matrix(begin + (piece * parts + part) * capacity() * columns, rows(piece), columns);
  }
  /// The state of a piece, in the memory at `state`.
  [[nodiscard]] kernel::AttentionState<Real, Exec> state(Real* state, std::uint32_t piece) const {
    return state_of(state, piece, rows(piece));
  }

 private:
  [[nodiscard]] std::size_t capacity() const {
    return static_cast<std::size_t>(m_pieces.capacity());
  }
  [[nodiscard]] std::size_t rows(std::uint32_t block, std::uint32_t piece) const {
    return static_cast<std::size_t>(m_pieces.positions(block, piece).size());
  }
  [[nodiscard]] static kernel::Matrix<Real, Exec> matrix(Real* data, std::size_t rows,
                                                         std::size_t columns) {
    return kernel::Matrix<Real, Exec>(data, rows, columns);
  }
  /// A piece has room for the outputs of capacity() rows, then for their log-sums.
  [[nodiscard]] kernel::AttentionState<Real, Exec> state_of(Real* state, std::size_t piece,
                                                            std::size_t rows) const {
    Real* const begin = state + piece * kernel::attention_state_size(m_heads, capacity());
    return {matrix(begin, rows, m_heads.query_columns()),
            matrix(begin + capacity() * m_heads.query_columns(), rows, m_heads.heads)};
  }

  std::byte* bind(BufferId id, const Buffer& buffer) {
    const std::string& label = m_schedule[buffer.label];
    if (label == "state") {
      m_state_id = id;
      return m_state;
    }
    if (buffer.bytes == 0) return nullptr;
    return m_buffers
        .emplace(label, memory::message_buffer<MemorySpace>("heddle::sequence::ring", buffer.bytes))
        .first->second.data();
  }

  [[nodiscard]] const kernel::VisibleKeys<Exec>& visible(std::uint32_t query_piece,
                                                         std::uint32_t keys, std::uint32_t piece) {
    const auto [found, added] = m_visible.try_emplace({query_piece, keys, piece}, nullptr);
    if (added)
      found->second = std::make_unique<kernel::VisibleKeys<Exec>>(
          m_pieces.positions(m_rank, query_piece), m_pieces.positions(keys, piece), m_form.mask);
    return *found->second;
  }

  /// Sets a buffer that an action is the first to write.
  static void clear(const Exec& exec, const BoundUse& use) {
    if (use.access == Access::write)
      Kokkos::deep_copy(
          exec,
          kernel::Vector<Real, Exec>(reinterpret_cast<Real*>(use.data), use.bytes / sizeof(Real)),
          Real(0));
  }

  void attend(const Exec& exec, const Task& task, const kernel::Matrix<Real, Exec>& tile) {
    const schedule::AttentionBlock block = m_pieces.block(m_schedule, task.id());
    const auto uses = task.uses();
    const auto data = [&](std::size_t use) { return reinterpret_cast<Real*>(uses[use].data); };
    const std::size_t columns = m_heads.query_columns(), kv_columns = m_heads.kv_columns();
    const bool backward = task.kind() == Kind::backward;
    if (backward) {
      clear(exec, uses[4]);
      clear(exec, uses[5]);
    } else if (uses[2].access == Access::write) {
      for (std::uint32_t q = 0; q < block.query_count; ++q)
        kernel::clear_attention(exec, state_of(data(2), q, capacity()));
    }
    for (std::uint32_t q = 0; q < block.query_count; ++q)
      for (std::uint32_t k = 0; k < block.key_count; ++k) {
        const std::uint32_t query_piece = block.first_query + q, key_piece = block.first_key + k;
        const std::size_t queries = rows(m_rank, query_piece), keys = rows(block.keys, key_piece);
        const auto of_queries = [&](std::size_t use) {
          return matrix(data(use) + q * capacity() * columns, queries, columns);
        };
        const auto of_keys = [&](std::size_t use, std::size_t part) {
          return matrix(data(use) + (2 * k + part) * capacity() * kv_columns, keys, kv_columns);
        };
        const kernel::VisibleKeys<Exec>& seen = visible(query_piece, block.keys, key_piece);
        const kernel::AttentionInput<Real, Exec> input{of_queries(0), of_keys(1, 0), of_keys(1, 1)};
        const kernel::AttentionState<Real, Exec> state = state_of(data(2), q, queries);
        if (backward)
          kernel::block_attention_backward(
              exec, m_heads, seen, input, state, of_queries(3), tile,
              kernel::AttentionInputGrad<Real, Exec>{of_queries(4), of_keys(5, 0), of_keys(5, 1)});
        else
          kernel::block_attention_forward(exec, m_heads, seen, input, tile, state);
      }
  }

  schedule::AttentionForm m_form;
  schedule::AttentionPieces m_pieces;
  kernel::AttentionHeads m_heads;
  std::uint32_t m_rank;
  Carrier m_carrier;
  std::map<std::string, Kokkos::View<std::byte*, MemorySpace>> m_buffers;  // by label
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>,
           std::unique_ptr<kernel::VisibleKeys<Exec>>>
      m_visible;  // by piece of the queries, block of the keys and piece of these
  std::byte* m_state;
  std::optional<BufferId> m_state_id = {};  // none: this rank attends to nothing
  Schedule m_schedule;
  Executor<Carrier> m_executor;  // refers to those above
};

/// The performers of a communicator, kept from one call to the next.
class RingPerformers {
 public:
  /// Collective over `comm`.
  explicit RingPerformers(MPI_Comm comm) : m_transport(comm) {}

  /// Returns the performer for `form`. If none can be made on this rank, the others are told,
  /// because they wait for its messages.
  template <class Real, class Exec>
  [[nodiscard]] RingPerformer<Real, Exec>& find(const schedule::AttentionForm& form,
                                                std::byte* state) {
    using Wanted = RingPerformer<Real, Exec>;
    const auto same = [&](const schedule::AttentionForm& other) {
      return other.order == form.order && other.ways == form.ways && other.mask == form.mask &&
             other.backward == form.backward && other.tokens == form.tokens &&
             other.heads == form.heads && other.kv_heads == form.kv_heads &&
             other.head_width == form.head_width;
    };
    for (const Entry& entry : m_known)
      if (entry.type == typeid(Wanted) && same(entry.form))
        return *static_cast<Wanted*>(entry.performer.get());
    const auto tell = [&](const char* reason) {
      m_transport.abort({m_transport.rank(), "preparing attention around a ring", reason});
    };
    try {
      if (m_known.size() == most) m_known.erase(m_known.begin());
      m_known.push_back({typeid(Wanted), form, std::make_shared<Wanted>(form, m_transport, state)});
    } catch (const std::exception& error) {
      tell(error.what());
      throw;
    } catch (...) {
      tell("unknown exception");
      throw;
    }
    return *static_cast<Wanted*>(m_known.back().performer.get());
  }

 private:
  struct Entry {
    std::type_index type;
    schedule::AttentionForm form;
    std::shared_ptr<void> performer;
  };
  static constexpr std::size_t most = 64;  // performers that are kept

  MpiTransport m_transport;
  std::vector<Entry> m_known;  // refer to the transport
};

}  // namespace heddle::inline v0::impl
