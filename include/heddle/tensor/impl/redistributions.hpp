// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Redistributions: the prepared redistributions of a communicator.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <typeindex>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/collective/internal/instance.hpp>
#include <heddle/comm/internal/strided_message.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/layout/layout.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/schedule/redistribution/exchange_schedule.hpp>
#include <heddle/schedule/redistribution/redistribution.hpp>
#include <heddle/tensor/impl/shard_ref.hpp>
#include <heddle/tensor/internal/exchange_performer.hpp>

namespace heddle::inline v0::impl {

/// The prepared redistributions of a communicator, kept from one call to the next.
class Redistributions {
 public:
  /// Constructs an empty collection. Collective over `comm`.
  explicit Redistributions(MPI_Comm comm) : m_transport(comm) {}

  /// A prepared redistribution, and what it is for.
  struct Known {
    std::type_index space;
    Scalar type;
    Bytes element;
    std::optional<PathTable> paths;
    schedule::Redistribution plan;
    std::unique_ptr<ExchangePerformer> performer;
  };

  /// Returns the one from `source` to `target` by `paths`, and makes it if it is not known yet.
  [[nodiscard]] const Known& find(const Instance& by, const ShardRef& source, const Layout& target,
                                  const ExchangeMemory& memory,
                                  const std::optional<PathTable>& paths) {
    const Layout& from = source.tensor->in_memory();
    // The last is the latest, which is often wanted again.
    const auto found = std::find_if(m_known.rbegin(), m_known.rend(), [&](const Known& known) {
      return known.space == by.memory() && known.type == source.type &&
             known.element == source.element && known.plan.source == from &&
             known.plan.target == target && known.paths == paths;
    });
    if (found != m_known.rend()) {
      std::rotate(m_known.rbegin(), found, found + 1);
    } else {
      m_known.push_back(prepared(by, source, target, memory, paths));
      if (m_known.size() > most) m_known.erase(m_known.begin());
    }
    return m_known.back();
  }

 private:
  /// The number of redistributions that are kept.
  static constexpr std::size_t most = 64;

  /// All ranks reject the same layouts. The other ranks are told of any other error, such as a
  /// table of this rank alone, because they wait for messages of this rank.
  [[nodiscard]] Known prepared(const Instance& by, const ShardRef& source, const Layout& target,
                               const ExchangeMemory& memory,
                               const std::optional<PathTable>& paths) {
    constexpr const char* doing = "preparing a redistribution";
    abort_on_error(m_transport, doing, [&] {
      if (paths) expect_usable(*paths, source.space->memory(), "heddle::redistribute");
    });
    const auto prepare = [&] {
      schedule::Redistribution plan = schedule::redistribution(source.tensor->in_memory(), target,
                                                               m_transport.size(), source.element);
      auto performer = source.space->performer(plan.exchange, to_schedule(plan, source.type),
                                               m_transport, memory, paths, false);
      return Known{by.memory(), source.type,     source.element,
                   paths,       std::move(plan), std::move(performer)};
    };
    return abort_on_error(m_transport, doing, prepare, ContractErrors::of_every_rank);
  }

  MpiTransport m_transport;
  std::vector<Known> m_known;  ///< each refers to the transport
};

}  // namespace heddle::inline v0::impl
