// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ExchangePerformer: one rank's part of a BlockExchange, with the memory that it needs of its own.

#include <cstddef>
#include <map>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/impl/strided_message.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/tensor/impl/box_transport.hpp>

namespace heddle::inline v0::impl {

/// Performs an exchange again and again, over a transport that it refers to, in memory of any
/// addresses. All ranks do so alike, but for their tables.
template <class MemorySpace>
class ExchangePerformer {
 public:
  /// Performs the Schedule of `exchange`. If there is a table (one that expect_usable() accepts),
  /// it chooses how each message of non-contiguous boxes is sent. `apart`: as in to_schedule(); the
  /// arrays may then be written while messages are in flight, so MPI never gathers from them.
  ExchangePerformer(const schedule::BlockExchange& exchange, Schedule schedule,
                    MpiTransport& transport, const ExchangeMemory& memory,
                    const std::optional<PathTable>& paths, bool apart = false)
      : m_carrier(transport),
        m_memory(memory),
        m_schedule(std::move(schedule)),
        m_executor(slice(m_schedule, transport.rank(),
                         [&](BufferId id, const Buffer& buffer) { return bind(id, buffer); }),
                   m_carrier) {
    if (paths) choose(exchange, *paths, apart);
  }
  ExchangePerformer(const ExchangePerformer&) = delete;
  ExchangePerformer& operator=(const ExchangePerformer&) = delete;

  /// Begins once more, in `memory`.
  void begin(const ExchangeMemory& memory, const ExecuteOptions& options) {
    for (const auto& [id, which] : m_bound)
      if (m_memory[which] != memory[which]) m_executor.rebind(id, m_memory[which], memory[which]);
    m_memory = memory;
    m_carrier.arrays(memory);
    m_executor.options(options);
    m_executor.begin();
  }
  /// See Executor.
  [[nodiscard]] bool advance(Handler handler) { return m_executor.advance(handler); }
  /// Executes the rest of the step.
  void finish(Handler handler) { m_executor.finish(handler); }
  /// Ends the step with an error on all ranks.
  void abort(const char* doing, const char* reason) noexcept { m_executor.abort(doing, reason); }

  [[nodiscard]] const Schedule& schedule() const noexcept { return m_schedule; }
  /// Knows how what is packed is packed, and which messages go by which path.
  [[nodiscard]] const BoxTransport<MemorySpace>& transport() const noexcept { return m_carrier; }

 private:
  /// The path of each message whose part only a cast touches beside it: the cast that packs it
  /// before it is sent, or the one that unpacks it when it has come.
  void choose(const schedule::BlockExchange& exchange, const PathTable& paths, bool apart) {
    const Program& program = m_executor.program();
    std::map<std::byte*, std::vector<std::size_t>> touching;  // steps, by the part
    for (std::size_t step = 0; step < program.size(); ++step)
      for (const BoundUse& use : program.uses_of(step))
        if (m_schedule[use.buffer].transient) touching[use.data].push_back(step);
    for (const auto& [part, steps] : touching) {
      if (steps.size() != 2) continue;
      const bool sends = program.steps[steps[1]].does == Step::Does::send;
      const std::size_t cast = sends ? steps[0] : steps[1];
      const Step& move = program.steps[sends ? steps[1] : steps[0]];
      const Action& action = m_schedule[program.steps[cast].action];
      if (!move.moves() || action.kind != Kind::cast) continue;
      const std::vector<StridedBlock>& blocks = exchange.pieces[+action.item].blocks;
      StridedPath path = path_of(blocks, paths);
      if (apart && path == StridedPath::datatype) path = StridedPath::direct;
      m_carrier.stand_for(part, {.peer = program.ports[move.port].peer,
                                 .sends = sends,
                                 .array = array_of(program.uses_of(cast)[1].buffer),
                                 .message = {blocks, path, part}});
    }
  }

  /// Returns the number of the array that `id` names.
  [[nodiscard]] std::size_t array_of(BufferId id) const {
    return m_schedule[m_schedule[id].label] == "to" ? 1 : 0;
  }
  [[nodiscard]] std::byte* bind(BufferId id, const Buffer& buffer) {
    if (!buffer.transient) {
      m_bound.emplace_back(id, array_of(id));
      return m_memory[m_bound.back().second];
    }
    m_scratch.push_back(
        memory::message_buffer<MemorySpace>("heddle::tensor::packed", buffer.bytes));
    return m_scratch.back().data();
  }

  BoxTransport<MemorySpace> m_carrier;
  ExchangeMemory m_memory;
  Schedule m_schedule;
  std::vector<std::pair<BufferId, std::size_t>> m_bound;  ///< and the number of its array
  std::vector<Kokkos::View<std::byte*, MemorySpace>> m_scratch;
  Executor<BoxTransport<MemorySpace>> m_executor;  // refers to those above
};

}  // namespace heddle::inline v0::impl
