// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The exchange of Ulysses: from matrices that are sharded by tokens to matrices that are sharded
/// by heads, and back.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <typeindex>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/placement.hpp>
#include <heddle/layout/shard_order.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/layout/shared_region.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/redistribution/exchange_schedule.hpp>
#include <heddle/tensor/impl/box_transport.hpp>
#include <heddle/tensor/impl/exchange_handler.hpp>
#include <heddle/tensor/impl/exchange_performer.hpp>

namespace heddle::inline v0::impl {

/// Returns the heads of rank `rank` of `ranks`: an even share of the K,V heads, and the heads of Q
/// that these serve.
[[nodiscard]] inline kernel::AttentionHeads share_of_heads(const kernel::AttentionHeads& heads,
                                                           std::size_t ranks, std::size_t rank) {
  const std::size_t kv_heads = even_share(heads.kv_heads, ranks, rank).count;
  return {kv_heads * (heads.heads / heads.kv_heads), kv_heads, heads.head_width};
}

/// One exchange of a layer. Both matrices have a row for each sequence and position, and columns by
/// heads. Sharded by tokens, rank u of U has an even share of the positions, and all heads. Sharded
/// by heads, it has all positions, and its share_of_heads().
struct HeadExchange {
  std::size_t sequences;         ///< sequences of one microbatch
  std::int64_t positions;        ///< positions of all ranks
  kernel::AttentionHeads heads;  ///< heads of all ranks
  bool qkv;                      ///< the columns are Q | K | V; otherwise the heads of Q alone
  bool to_tokens;                ///< from heads to tokens; otherwise from tokens to heads

  friend bool operator==(const HeadExchange&, const HeadExchange&) = default;

  /// Returns the columns of `rank` of `ranks`, among those of all heads.
  [[nodiscard]] IndexSet columns(std::size_t ranks, std::size_t rank) const {
    const Share kv = even_share(heads.kv_heads, ranks, rank);
    IndexSet columns;
    const auto add = [&](std::size_t begin, std::size_t of_each) {
      columns.add({static_cast<std::int64_t>(begin + kv.first * of_each),
                   static_cast<std::int64_t>(begin + kv.end() * of_each)});
    };
    add(0, heads.heads / heads.kv_heads * heads.head_width);
    if (!qkv) return columns;
    add(heads.query_columns(), heads.head_width);
    add(heads.query_columns() + heads.kv_columns(), heads.head_width);
    return columns;
  }

  /// Returns the blocks that travel between `ranks` ranks, of elements of `element` bytes. The
  /// exchange is a redistribution: every element goes from the rank that has it to the rank that
  /// needs it, and each pair of ranks exchanges one message.
  [[nodiscard]] schedule::BlockExchange blocks(std::size_t ranks, Bytes element) const {
    using Side = SharedRegion::Side;
    struct Part {
      std::vector<IndexSet> indices;
      ArrayShape array;
    };
    const auto part = [&](IndexSet rows, IndexSet columns) {
      const auto all = static_cast<std::int64_t>(sequences);
      Part made{{IndexSet(all), rows, columns}, {{all, rows.size(), columns.size()}, {0, 0, 0}}};
      return made;
    };
    const IndexSet every_column = columns(1, 0);
    std::vector<Part> from, to;
    schedule::BlockExchange exchange;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Part tokens = part(ShardOrder().share(positions, static_cast<std::int64_t>(ranks),
                                            static_cast<std::int64_t>(rank)),
                         every_column);
      Part by_heads = part(IndexSet(positions), columns(ranks, rank));
      if (to_tokens) std::swap(tokens, by_heads);
      exchange.from.push_back(tokens.array.bytes(element));
      exchange.to.push_back(by_heads.array.bytes(element));
      from.push_back(std::move(tokens));
      to.push_back(std::move(by_heads));
    }
    exchange.steps.push_back({"all_to_all", false, {}});
    for (std::size_t target = 0; target < ranks; ++target)
      for (std::size_t source = 0; source < ranks; ++source) {
        const SharedRegion region(from[source].indices, to[target].indices);
        if (region.elements() == 0) continue;
        exchange.deliver({Rank{target}, region.blocks(Side::b, to[target].array, element)},
                         {{Rank{source}, region.blocks(Side::a, from[source].array, element)}},
                         static_cast<Bytes>(region.elements()) * element);
      }
    if (exchange.steps.front().deliveries.empty()) exchange.steps.clear();
    return exchange;
  }
};

/// The exchanges of a communicator, ready to be performed, kept from one call to the next.
class HeadExchanges {
 public:
  /// Collective over `comm`.
  explicit HeadExchanges(MPI_Comm comm) : m_transport(comm) {}

  /// Performs `wanted` on elements of Real. Returns when this rank has its elements and what it
  /// sent may be written again. All ranks call it alike.
  template <class Real, class Exec>
  void run(const Exec& exec, const HeadExchange& wanted, const Real* from, Real* to,
           const ExecuteOptions& options) {
    using MemorySpace = typename Exec::memory_space;
    // The array "from" is only read.
    const ExchangeMemory memory{reinterpret_cast<std::byte*>(const_cast<Real*>(from)),
                                reinterpret_cast<std::byte*>(to)};
    exec.fence("heddle::sequence::exchange");
    Known<Real, MemorySpace>& known = find<Real, MemorySpace>(wanted, memory);
    const ExchangeHandler<Exec, MemorySpace, Real> handler(exec, known.exchange,
                                                           known.performer.transport(), Merge::sum);
    known.performer.begin(memory, options);
    known.performer.finish(handler);
  }

  /// The transport of all exchanges.
  [[nodiscard]] MpiTransport& transport() noexcept { return m_transport; }

 private:
  template <class Real, class MemorySpace>
  struct Known {
    Known(const HeadExchange& wanted, MpiTransport& transport, const ExchangeMemory& memory)
        : exchange(wanted.blocks(static_cast<std::size_t>(transport.size()), sizeof(Real))),
          performer(exchange, to_schedule(exchange, "tokens and heads", scalar_of<Real>), transport,
                    memory, std::nullopt) {}
    schedule::BlockExchange exchange;
    ExchangePerformer<MemorySpace> performer;
  };
  struct Entry {
    std::type_index type;
    HeadExchange wanted;
    std::shared_ptr<void> known;
  };
  static constexpr std::size_t most = 64;  // exchanges that are kept

  /// The one that was wanted last is often wanted again soon, so it is moved to the end.
  template <class Real, class MemorySpace>
  [[nodiscard]] Known<Real, MemorySpace>& find(const HeadExchange& wanted,
                                               const ExchangeMemory& memory) {
    using Wanted = Known<Real, MemorySpace>;
    const auto found = std::find_if(m_known.rbegin(), m_known.rend(), [&](const Entry& entry) {
      return entry.type == typeid(Wanted) && entry.wanted == wanted;
    });
    if (found != m_known.rend()) {
      std::rotate(m_known.rbegin(), found, found + 1);
    } else {
      m_known.push_back({typeid(Wanted), wanted,
                         abort_on_error(m_transport, "preparing an exchange of heads", [&] {
                           return std::make_shared<Wanted>(wanted, m_transport, memory);
                         })});
      if (m_known.size() > most) m_known.erase(m_known.begin());
    }
    return *static_cast<Wanted*>(m_known.back().known.get());
  }

  MpiTransport m_transport;
  std::vector<Entry> m_known;  // refer to the transport
};

}  // namespace heddle::inline v0::impl
