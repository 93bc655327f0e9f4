// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ExchangePerformer: one rank's part of a BlockExchange, with the memory that it needs of its own.

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/device_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/memory/message_memory.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// Where this rank's arrays "from" and "to" begin.
using ExchangeMemory = std::array<std::byte*, 2>;

/// Performs an exchange again and again, over a transport that it refers to, in memory of any
/// addresses. All ranks do so alike.
template <Transport T, class MemorySpace>
class ExchangePerformer {
 public:
  ExchangePerformer(Schedule schedule, T& transport, const ExchangeMemory& memory)
      : m_carrier(transport),
        m_memory(memory),
        m_schedule(std::move(schedule)),
        m_executor(slice(m_schedule, transport.rank(),
                         [&](BufferId id, const Buffer& buffer) { return bind(id, buffer); }),
                   m_carrier) {}
  ExchangePerformer(const ExchangePerformer&) = delete;
  ExchangePerformer& operator=(const ExchangePerformer&) = delete;

  /// Begins once more, in `memory`.
  void begin(const ExchangeMemory& memory, const ExecuteOptions& options) {
    for (const auto& [id, which] : m_bound)
      if (m_memory[which] != memory[which]) m_executor.rebind(id, m_memory[which], memory[which]);
    m_memory = memory;
    m_executor.options(options);
    m_executor.begin();
  }
  /// See Executor.
  [[nodiscard]] bool advance(Handler handler) { return m_executor.advance(handler); }
  /// Likewise.
  void finish(Handler handler) { m_executor.finish(handler); }
  /// Likewise.
  void abort(const char* doing, const char* reason) noexcept { m_executor.abort(doing, reason); }

  [[nodiscard]] const Schedule& schedule() const noexcept { return m_schedule; }

 private:
  std::byte* bind(BufferId id, const Buffer& buffer) {
    if (!buffer.transient) {
      m_bound.emplace_back(id, m_schedule[buffer.label] == "to" ? 1 : 0);
      return m_memory[m_bound.back().second];
    }
    m_scratch.push_back(
        memory::message_buffer<MemorySpace>("heddle::tensor::packed", buffer.bytes));
    return m_scratch.back().data();
  }

  DeviceTransport<T, MemorySpace> m_carrier;
  ExchangeMemory m_memory;
  Schedule m_schedule;
  std::vector<std::pair<BufferId, std::size_t>> m_bound;  ///< which of the two it is
  std::vector<Kokkos::View<std::byte*, MemorySpace>> m_scratch;
  Executor<DeviceTransport<T, MemorySpace>> m_executor;  // refers to those above
};

}  // namespace heddle::inline v0::impl
