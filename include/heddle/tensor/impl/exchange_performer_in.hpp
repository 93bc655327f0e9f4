// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ExchangePerformerIn: the ExchangePerformer of arrays in one memory space.

#include <cstddef>
#include <map>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include <heddle/comm/internal/strided_message.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/layout/path_table.hpp>
#include <heddle/memory/internal/message_room.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/tensor/impl/box_transport.hpp>
#include <heddle/tensor/internal/exchange_performer.hpp>

namespace heddle::inline v0::impl {

/// The ExchangePerformer of arrays in `MemorySpace`.
template <class MemorySpace>
class ExchangePerformerIn final : public ExchangePerformer {
 public:
  /// See exchange_performer().
  ExchangePerformerIn(const schedule::BlockExchange& exchange, Schedule schedule,
                      MpiTransport& transport, const ExchangeMemory& memory,
                      const std::optional<PathTable>& paths, bool apart)
      : m_carrier(transport),
        m_memory(memory),
        m_schedule(std::move(schedule)),
        m_executor(slice(m_schedule, transport.rank(),
                         [&](BufferId id, const Buffer& buffer) { return bind(id, buffer); }),
                   m_carrier) {
    if (paths) choose(exchange, *paths, apart);
  }

  void begin(const ExchangeMemory& memory, const ExecuteOptions& options) override {
    for (const auto& [id, which] : m_bound)
      if (m_memory[which] != memory[which]) m_executor.rebind(id, m_memory[which], memory[which]);
    m_memory = memory;
    m_carrier.arrays(memory);
    m_executor.options(options);
    m_executor.begin();
  }
  bool advance(Handler handler) override { return m_executor.advance(handler); }
  void finish(Handler handler) override { m_executor.finish(handler); }
  void abort(const char* doing, const char* reason) noexcept override {
    m_executor.abort(doing, reason);
  }
  [[nodiscard]] const Schedule& schedule() const noexcept override { return m_schedule; }
  [[nodiscard]] const StridedMessage* find(const std::byte* part) const override {
    return m_carrier.find(part);
  }
  void print(std::ostream& out) const override { out << m_carrier; }

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
      const bool sends = program.steps[steps[1]].does == Program::Step::Does::send;
      const std::size_t cast = sends ? steps[0] : steps[1];
      const Program::Step& move = program.steps[sends ? steps[1] : steps[0]];
      const Action& action = m_schedule[program.steps[cast].action];
      if (!move.moves() || action.kind != Kind::cast) continue;
      const std::vector<StridedBlock>& blocks = exchange.pieces[+action.item].blocks;
      StridedPath path = path_of(blocks, paths);
      if (apart && path == StridedPath::datatype) path = StridedPath::direct;
      m_carrier.stand_for(part, {.peer = program.ports[move.port].peer,
                                 .sends = sends,
                                 .array = array_of(program.uses_of(cast)[1].buffer),
                                 .message = strided_message<MemorySpace>(blocks, path, part)});
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
        memory::impl::message_room<MemorySpace>("heddle::tensor::packed", buffer.bytes));
    return m_scratch.back().data;
  }

  BoxTransport<MemorySpace> m_carrier;
  ExchangeMemory m_memory;
  Schedule m_schedule;
  std::vector<std::pair<BufferId, std::size_t>> m_bound;  ///< and the number of its array
  std::vector<memory::impl::Room> m_scratch;
  Executor<BoxTransport<MemorySpace>> m_executor;  // refers to those above
};

}  // namespace heddle::inline v0::impl
