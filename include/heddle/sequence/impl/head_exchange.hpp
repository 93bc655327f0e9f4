// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HeadExchanges: performs the exchanges of Ulysses, from matrices that are sharded by tokens to
/// matrices that are sharded by heads, and back.

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
#include <heddle/execute/execute_options.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/layout/placement.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/schedule/attention/head_exchange.hpp>
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

/// The exchanges of a communicator, ready to be performed, kept from one call to the next.
class HeadExchanges {
 public:
  /// Collective over `comm`.
  explicit HeadExchanges(MPI_Comm comm) : m_transport(comm) {}

  /// Performs `wanted` on elements of Real. Returns when this rank has its elements and what it
  /// sent may be written again. All ranks call it alike.
  template <class Real, class Exec>
  void run(const Exec& exec, const schedule::HeadExchange& wanted, const Real* from, Real* to,
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
    Known(const schedule::HeadExchange& wanted, MpiTransport& transport,
          const ExchangeMemory& memory)
        : exchange(wanted.blocks(static_cast<std::size_t>(transport.size()), sizeof(Real))),
          performer(exchange, to_schedule(exchange, "tokens and heads", scalar_of<Real>), transport,
                    memory, std::nullopt) {}
    schedule::BlockExchange exchange;
    ExchangePerformer<MemorySpace> performer;
  };
  struct Entry {
    std::type_index type;
    schedule::HeadExchange wanted;
    std::shared_ptr<void> known;
  };
  static constexpr std::size_t most = 64;  // exchanges that are kept

  /// The one that was wanted last is often wanted again soon, so it is moved to the end.
  template <class Real, class MemorySpace>
  [[nodiscard]] Known<Real, MemorySpace>& find(const schedule::HeadExchange& wanted,
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
