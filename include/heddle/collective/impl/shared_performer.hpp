// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Performers of collectives among ranks of which some share a host: they read each other's memory
/// in place. For calls that block.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/collective/impl/performer.hpp>
#include <heddle/comm/shared_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/execute/shared_executor.hpp>
#include <heddle/schedule/collective/segments.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/pass/copy_out.hpp>
#include <heddle/schedule/pass/share_memory.hpp>

namespace heddle::inline v0 {
namespace impl {

/// The Schedule of `key` among ranks that share memory as `domains` say, over data that lies
/// anywhere. What nobody has chosen goes straight to its destination, in pieces that are in a
/// cache when the next one is copied over them.
[[nodiscard]] inline Schedule shared_schedule_of(const PerformerKey& key, int ranks,
                                                 const std::vector<std::uint32_t>& domains) {
  using schedule::Algorithm;
  using schedule::Collective;
  const Bytes piece = (Bytes{64} << 10) * static_cast<Bytes>(ranks);
  const auto cut = static_cast<int>(std::max<Bytes>(key.bytes / piece, 1));
  const Schedule whole = [&] {
    const bool direct =
        key.usual && schedule::applicable(key.collective, Algorithm::direct, {.ranks = ranks});
    if (direct && key.collective == Collective::all_reduce)
      return schedule::collective_in_segments(key.collective, Algorithm::direct,
                                              {.ranks = ranks,
                                               .bytes = key.bytes,
                                               .type = key.type,
                                               .element = key.element,
                                               .chunks = cut});
    PerformerKey other = key;
    if (direct) other.choice.algorithm = Algorithm::direct;
    if (key.usual) other.chunks = cut;
    return schedule_of(other, ranks);
  }();
  return fold_to_live(share_memory(copy_out(whole, domains), domains), 2);
}

/// One over a SharedTransport. Making it is collective.
class SharedPerformer final : public Performer {
 public:
  SharedPerformer(PerformerKey key, SharedTransport& transport, const CallMemory& memory,
                  const ExecuteOptions& options)
      : Performer(std::move(key)),
        m_memory(memory),
        m_schedule(shared_schedule_of(this->key(), transport.size(), transport.domains())),
        m_shared(
            transport, m_schedule,
            [&](BufferId id, const Buffer& buffer) {
              m_bound.emplace_back(id, m_schedule[buffer.label] == "output" ? 1 : 0);
              return m_memory[m_bound.back().second];
            },
            options) {}

  void begin(const CallMemory& memory, std::size_t) override {
    for (const auto& [id, which] : m_bound)
      if (m_memory[which] != memory[which])
        m_shared.executor().rebind(id, m_memory[which], memory[which]);
    m_memory = memory;
    m_shared.executor().begin();
  }
  bool advance(Handler handler) override { return m_shared.executor().advance(handler); }
  void finish(Handler handler) override { m_shared.executor().finish(handler); }
  void abort(const std::string& doing, const char* reason) noexcept override {
    m_shared.executor().abort(doing, reason);
  }
  [[nodiscard]] const Schedule& schedule() const noexcept override { return m_schedule; }

 private:
  CallMemory m_memory;
  Schedule m_schedule;
  std::vector<std::pair<BufferId, std::size_t>> m_bound;  ///< which of the two it is
  SharedExecutor<SharedTransport> m_shared;
};

/// The performers of a communicator's calls that block. Such calls follow one another on all ranks
/// alike, so all ranks find, make and forget the same ones.
class SharedLine {
 public:
  explicit SharedLine(MPI_Comm comm) : m_transport(comm) {
    const std::vector<std::uint32_t> domains = m_transport.domains();
    for (std::size_t r = 0; r < domains.size(); ++r) m_shares = m_shares || domains[r] != r;
  }

  /// Whether any ranks share memory.
  [[nodiscard]] bool shares() const noexcept { return m_shares; }

  /// A performer for `key`, as the first call of the kind wanted it to wait. Where one is made,
  /// `meet()` comes first, which returns when all ranks have called it.
  template <class Meet>
  Performer& find(PerformerKey key, const CallMemory& memory, const ExecuteOptions& options,
                  Meet&& meet) {
    key.idle = {};
    key.watchdog = 0;
    key.path = {};
    auto found = std::ranges::find_if(
        m_performers, [&](const auto& performer) { return performer->key() == key; });
    if (found == m_performers.end()) {
      meet();
      if (m_performers.size() == most) m_performers.erase(m_performers.begin());
      m_performers.push_back(
          std::make_unique<SharedPerformer>(std::move(key), m_transport, memory, options));
    } else {
      std::rotate(found, found + 1, m_performers.end());  // the last is the latest
    }
    return *m_performers.back();
  }

 private:
  /// Performers that are kept, each with a window of its own.
  static constexpr std::size_t most = 32;

  SharedTransport m_transport;
  bool m_shares = false;
  std::vector<std::unique_ptr<SharedPerformer>> m_performers;  ///< refer to the transport
};

/// Where a communicator keeps its SharedLine, once there is one.
class SharedPlace {
 public:
  explicit SharedPlace(MPI_Comm comm) : m_comm(comm) {}

  /// Made after `meet()`, which returns when all ranks have called it.
  template <class Meet>
  SharedLine& line(Meet&& meet) {
    if (m_line == nullptr) {
      meet();
      m_line = std::make_unique<SharedLine>(m_comm);
    }
    return *m_line;
  }

 private:
  MPI_Comm m_comm;
  std::unique_ptr<SharedLine> m_line;
};

}  // namespace impl
}  // namespace heddle::inline v0
