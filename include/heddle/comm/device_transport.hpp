// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// DeviceTransport: sends and receives messages in memory of any Kokkos memory space, over a
/// transport that may accept host memory only. It is for models whose buffers are in device memory.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <ostream>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/comm/device_path.hpp>
#include <heddle/comm/gpu_aware.hpp>
#include <heddle/comm/impl/host_memory.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/memory/internal/message_room.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Returns true if a message passes `data` itself to the transport. `path` must not be `automatic`.
template <class MemorySpace>
[[nodiscard]] bool handed_over(DevicePath path, const void* data) {
  return path == DevicePath::direct ||
         (path == DevicePath::owned && memory::impl::in_message_memory<MemorySpace>(data));
}

}  // namespace impl

/// A Transport for memory of `MemorySpace`, over another transport `inner`, to which it refers.
///
/// If a message is staged, a send copies the data to a host block before it returns, and a receive
/// copies the data to its destination when `test` finds the message complete. The copies run in the
/// default execution space of `MemorySpace`, and the transport waits for them. Kernels that write
/// the data to send, or that still read the destination, must be complete before the call. Host
/// blocks are kept and reused, because pinned memory is slow to allocate.
template <Transport T, class MemorySpace>
class DeviceTransport {
  static_assert(Kokkos::is_memory_space_v<MemorySpace>,
                "heddle::DeviceTransport: name the Kokkos memory space of the buffers");

  static constexpr bool on_host =
      static_cast<bool>(Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible);
  using HostMemory = impl::HostMemoryBeside<MemorySpace>;

  /// The host memory of a staged message. It is in a slot that is reused.
  struct Slot {
    memory::impl::Room block;
    Bytes bytes = 0;
    std::byte* target = nullptr;  ///< where a received message goes; null for a send
  };

 public:
  /// A message in flight, until `test` has returned true or `cancel` was called. It can be moved,
  /// but not copied.
  class Request {
   public:
    /// Constructs a request without a message, which counts as complete.
    Request() = default;
    /// Constructs a request for a message of the inner transport, which is not staged.
    explicit Request(typename T::Request inner) : m_inner(std::move(inner)) {}
    /// Moves the request. `other` is left without a message.
    Request(Request&& other) noexcept
        : m_inner(std::move(other.m_inner)), m_slot(std::exchange(other.m_slot, nullptr)) {}
    /// Moves the request. `other` is left without a message.
    Request& operator=(Request&& other) noexcept {
      m_inner = std::move(other.m_inner);
      m_slot = std::exchange(other.m_slot, nullptr);
      return *this;
    }

   private:
    friend class DeviceTransport;
    Request(typename T::Request inner, Slot* slot) : m_inner(std::move(inner)), m_slot(slot) {}
    typename T::Request m_inner;
    Slot* m_slot = nullptr;  ///< null if the message is not staged
  };

  /// Constructs the transport over `inner`, which must outlive it.
  explicit DeviceTransport(T& inner, DevicePath path = DevicePath::automatic)
      : m_inner(&inner), m_path(impl::device_path(path, on_host, takes_pointers())) {}
  /// Moves the transport. Requests remain valid.
  DeviceTransport(DeviceTransport&&) = default;  // the addresses of slots stay
  /// Moves the transport.
  DeviceTransport& operator=(DeviceTransport&&) = default;

  /// Returns the path of messages, which is not `automatic`.
  [[nodiscard]] DevicePath path() const noexcept { return m_path; }
  /// Returns the bytes of host memory that staged messages have allocated so far.
  [[nodiscard]] Bytes staging_bytes() const {
    Bytes bytes = 0;
    for (const Slot& slot : m_slots) bytes += slot.block.bytes;
    return bytes;
  }

  /// Returns the rank of `inner`. The members below also forward to `inner`.
  [[nodiscard]] Rank rank() const noexcept { return m_inner->rank(); }
  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return m_inner->size(); }

  /// Starts a send. If it is staged, `data` may be written again when the call returns.
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes);

  /// Starts a receive. The data are in place when `test` returns true.
  [[nodiscard]] Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes);

  /// Returns true if the message is complete. Makes progress in all messages.
  [[nodiscard]] bool test(Request& request);

  /// Releases the memory of an unfinished message, after an abort.
  void cancel(Request& request);

  /// Tells every other rank that this one has failed.
  void abort(const Abort& abort) { m_inner->abort(abort); }
  /// Returns the abort that another rank has sent, if there is one.
  [[nodiscard]] std::optional<Abort> aborted() { return m_inner->aborted(); }
  /// Tells the other ranks this rank's place in its list after a hang; see ReportsPlaces.
  void answer(const ListPlace& place) requires ReportsPlaces<T> { m_inner->answer(place); }
  /// Returns the places that the ranks have told; see ReportsPlaces.
  [[nodiscard]] std::vector<std::optional<ListPlace>> places() requires ReportsPlaces<T> {
    return m_inner->places();
  }
  /// Notes that a rank is silent; see NotesSilence.
  void note_silence() requires NotesSilence<T> { m_inner->note_silence(); }

  /// Prints the path, for example "messages from and to CudaSpace go through host memory".
  friend std::ostream& operator<<(std::ostream& out, const DeviceTransport& transport) {
    out << "messages from and to " << MemorySpace::name();
    switch (transport.m_path) {
      case DevicePath::staged: return out << " go through host memory";
      case DevicePath::owned:
        return out << " go through host memory where theirs is not message_memory()";
      default: return out << " are handed over as they lie";
    }
  }

 private:
  template <class Byte, class Space>
  using Unmanaged = Kokkos::View<Byte*, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using HostBytes = Unmanaged<std::byte, HostMemory>;
  using ConstHostBytes = Unmanaged<const std::byte, HostMemory>;
  using DeviceBytes = Unmanaged<std::byte, MemorySpace>;
  using ConstDeviceBytes = Unmanaged<const std::byte, MemorySpace>;

  [[nodiscard]] static bool takes_pointers() {
    if constexpr (std::same_as<T, MpiTransport>)
      return impl::gpu_aware<MemorySpace>();
    else
      return on_host;
  }

  template <class To, class From>
  void copy(const To& to, const From& from) {
    Kokkos::deep_copy(m_exec, to, from);
    m_exec.fence("heddle::comm::staged");
  }

  /// Calls `start(slot)` with a free host block of at least `bytes` bytes and returns the request.
  /// The slot stays free if `start` throws. A program has messages of few sizes, so any block that
  /// is large enough is used. If there is none, a free block grows.
  template <class Start>
  [[nodiscard]] Request through(Bytes bytes, Start&& start) {
    auto chosen = m_free.begin();
    while (chosen != m_free.end() && (*chosen)->block.bytes < bytes) ++chosen;
    if (chosen == m_free.end()) {
      if (m_free.empty()) m_free.push_back(&m_slots.emplace_back());
      chosen = m_free.end() - 1;
      (*chosen)->block = memory::impl::message_room<HostMemory>("heddle::comm::staging", bytes);
    }
    Slot& slot = **chosen;
    slot.bytes = bytes;
    slot.target = nullptr;
    Request request(start(slot), &slot);
    m_free.erase(chosen);
    return request;
  }

  T* m_inner;
  DevicePath m_path;
  typename MemorySpace::execution_space m_exec{};
  std::deque<Slot> m_slots;   ///< all slots; their addresses do not change
  std::vector<Slot*> m_free;  ///< slots without a message
};

// Not inline, so that a program that links heddle::compiled does not compile those of the host.
template <Transport T, class MemorySpace>
auto DeviceTransport<T, MemorySpace>::send(Rank peer, Lane lane, const std::byte* data, Bytes bytes)
    -> Request {
  if (bytes == 0 || impl::handed_over<MemorySpace>(m_path, data))
    return Request(m_inner->send(peer, lane, data, bytes));
  return through(bytes, [&](Slot& slot) {
    copy(HostBytes(slot.block.data, bytes), ConstDeviceBytes(data, bytes));
    return m_inner->send(peer, lane, slot.block.data, bytes);
  });
}

template <Transport T, class MemorySpace>
auto DeviceTransport<T, MemorySpace>::receive(Rank peer, Lane lane, std::byte* data, Bytes bytes)
    -> Request {
  if (bytes == 0 || impl::handed_over<MemorySpace>(m_path, data))
    return Request(m_inner->receive(peer, lane, data, bytes));
  return through(bytes, [&](Slot& slot) {
    slot.target = data;
    return m_inner->receive(peer, lane, slot.block.data, bytes);
  });
}

template <Transport T, class MemorySpace>
bool DeviceTransport<T, MemorySpace>::test(Request& request) {
  if (!m_inner->test(request.m_inner)) return false;
  if (Slot* const slot = std::exchange(request.m_slot, nullptr)) {
    m_free.push_back(slot);
    if (slot->target != nullptr)
      copy(DeviceBytes(slot->target, slot->bytes), ConstHostBytes(slot->block.data, slot->bytes));
  }
  return true;
}

template <Transport T, class MemorySpace>
void DeviceTransport<T, MemorySpace>::cancel(Request& request) {
  m_inner->cancel(request.m_inner);
  if (Slot* const slot = std::exchange(request.m_slot, nullptr)) m_free.push_back(slot);
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COMM
#include <heddle/comm/device_transport.ipp>
#else
extern template class heddle::DeviceTransport<heddle::MpiTransport, Kokkos::HostSpace>;
#endif
