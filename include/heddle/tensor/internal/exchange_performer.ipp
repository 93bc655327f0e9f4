// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of exchange_performer.hpp.

#include <memory>
#include <optional>
#include <utility>

#include <Kokkos_Core.hpp>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/tensor/impl/exchange_performer_in.hpp>
#include <heddle/tensor/internal/exchange_performer.hpp>

namespace heddle::inline v0::impl {

template <class MemorySpace>
std::unique_ptr<ExchangePerformer> exchange_performer(const schedule::BlockExchange& exchange,
                                                      Schedule schedule, MpiTransport& transport,
                                                      const ExchangeMemory& memory,
                                                      const std::optional<PathTable>& paths,
                                                      bool apart) {
  return std::make_unique<ExchangePerformerIn<MemorySpace>>(exchange, std::move(schedule),
                                                            transport, memory, paths, apart);
}

#if !HEDDLE_FULL_HEADER_ONLY
template std::unique_ptr<ExchangePerformer> exchange_performer<Kokkos::HostSpace>(
    const schedule::BlockExchange&, Schedule, MpiTransport&, const ExchangeMemory&,
    const std::optional<PathTable>&, bool);
#endif

}  // namespace heddle::inline v0::impl
