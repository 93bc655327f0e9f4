// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PerformerIn: the Performer of Views in one memory space.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/lane_shift.hpp>
#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/gpu_aware.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/slice.hpp>
#include <heddle/memory/internal/message_room.hpp>
#include <heddle/memory/space.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// The Performer of Views in `MemorySpace`.
template <class MemorySpace>
class PerformerIn final : public Performer {
  using Shifted = LaneShift<MpiTransport>;
  using Carrier = DeviceTransport<Shifted, MemorySpace>;

 public:
  PerformerIn(PerformerKey key, MpiTransport& transport, const CallMemory& memory);
  ~PerformerIn() override;

  void begin(const CallMemory& memory, std::size_t lane, const ExecuteOptions& options) override;
  bool advance(Handler handler) override;
  void finish(Handler handler) override;
  void abort(const std::string& doing, const char* reason) noexcept override;
  [[nodiscard]] const Schedule& schedule() const noexcept override { return m_schedule; }
  [[nodiscard]] Bytes scratch() const noexcept override;

 private:
  std::byte* bind(BufferId id, const Buffer& buffer);

  Shifted m_shifted;
  Carrier m_carrier;
  CallMemory m_memory;
  Schedule m_schedule;
  std::vector<std::pair<BufferId, std::size_t>> m_bound;  ///< and the number of its memory
  Bytes m_kept = 0;                                       ///< bytes of the third that are in use
  std::vector<memory::impl::Room> m_scratch;
  Executor<Carrier> m_executor;  // refers to those above
};

template <class MemorySpace>
PerformerIn<MemorySpace>::PerformerIn(PerformerKey key, MpiTransport& transport,
                                      const CallMemory& memory)
    : Performer(std::move(key)),
      m_shifted(transport),
      m_carrier(m_shifted, device_path(this->key().path, memory::impl::on_host<MemorySpace>,
                                       gpu_aware<MemorySpace>())),
      m_memory(memory),
      m_schedule(schedule_of(this->key(), transport.size())),
      m_executor(slice(m_schedule, transport.rank(),
                       [&](BufferId id, const Buffer& buffer) { return bind(id, buffer); }),
                 m_carrier) {}

template <class MemorySpace>
PerformerIn<MemorySpace>::~PerformerIn() = default;

template <class MemorySpace>
void PerformerIn<MemorySpace>::begin(const CallMemory& memory, std::size_t lane,
                                     const ExecuteOptions& options) {
  for (const auto& [id, which] : m_bound)
    if (m_memory[which] != memory[which]) m_executor.rebind(id, m_memory[which], memory[which]);
  m_memory = memory;
  m_shifted.shift(lane);
  m_executor.options(options);
  m_executor.begin();
}

template <class MemorySpace>
bool PerformerIn<MemorySpace>::advance(Handler handler) {
  return m_executor.advance(handler);
}

template <class MemorySpace>
void PerformerIn<MemorySpace>::finish(Handler handler) {
  m_executor.finish(handler);
}

template <class MemorySpace>
void PerformerIn<MemorySpace>::abort(const std::string& doing, const char* reason) noexcept {
  m_executor.abort(doing, reason);
}

template <class MemorySpace>
Bytes PerformerIn<MemorySpace>::scratch() const noexcept {
  Bytes bytes = 0;
  for (const memory::impl::Room& room : m_scratch) bytes += room.bytes;
  return bytes;
}

template <class MemorySpace>
std::byte* PerformerIn<MemorySpace>::bind(BufferId id, const Buffer& buffer) {
  if (buffer.transient) {
    if (buffer.bytes == 0) return nullptr;
    m_scratch.push_back(
        memory::impl::message_room<MemorySpace>("heddle::collective::scratch", buffer.bytes));
    return m_scratch.back().data;
  }
  if (const Bytes bytes = kept_bytes(m_schedule, buffer); bytes != 0) {
    m_bound.emplace_back(id, 2);
    return m_memory[2] + std::exchange(m_kept, m_kept + bytes);
  }
  m_bound.emplace_back(id, m_schedule[buffer.label] == "output" ? 1 : 0);
  return m_memory[m_bound.back().second];
}

}  // namespace heddle::inline v0::impl
