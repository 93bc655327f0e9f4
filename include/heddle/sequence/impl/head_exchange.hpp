// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// HeadExchanges: performs the exchanges of Ulysses, from matrices that are sharded by tokens to
/// matrices that are sharded by heads, and back.

#include <cstddef>
#include <memory>
#include <typeindex>
#include <vector>

#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/schedule/attention/head_exchange.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/tensor/internal/exchange_performer.hpp>

namespace heddle::inline v0::impl {

class Instance;

/// Returns the heads of rank `rank` of `ranks`: an even share of the K,V heads, and the heads of Q
/// that these serve.
[[nodiscard]] kernel::AttentionHeads share_of_heads(const kernel::AttentionHeads& heads,
                                                    std::size_t ranks, std::size_t rank);

/// The exchanges of a communicator, ready to be performed, kept from one call to the next.
class HeadExchanges {
 public:
  /// Collective over `comm`.
  explicit HeadExchanges(MPI_Comm comm) : m_transport(comm) {}

  /// Performs `wanted` on elements of `type` in memory of `space`. Returns when this rank has its
  /// elements and what it sends may be written again. All ranks call it alike.
  void run(const Instance& by, const ExchangeSpace& space, const schedule::HeadExchange& wanted,
           Scalar type, const ExchangeMemory& memory, const ExecuteOptions& options);

  /// The transport of all exchanges.
  [[nodiscard]] MpiTransport& transport() noexcept { return m_transport; }

 private:
  /// A prepared exchange, and what it is for.
  struct Known {
    std::type_index space;
    Scalar type;
    schedule::HeadExchange wanted;
    schedule::BlockExchange exchange;
    std::unique_ptr<ExchangePerformer> performer;
  };
  static constexpr std::size_t most = 64;  // exchanges that are kept

  /// The one that was wanted last is often wanted again soon, so it is moved to the end.
  [[nodiscard]] const Known& find(const Instance& by, const ExchangeSpace& space,
                                  const schedule::HeadExchange& wanted, Scalar type,
                                  const ExchangeMemory& memory);

  MpiTransport m_transport;
  std::vector<Known> m_known;  // refer to the transport
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SEQUENCE
#include <heddle/sequence/impl/head_exchange.ipp>
#endif
