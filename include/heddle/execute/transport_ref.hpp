// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TransportRef: a reference to any Transport. Functions that take it, and the executor, are
/// compiled once for all transports.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/shared_blocks.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0 {

namespace impl {

/// Messages in flight, in slots that are used again and again.
class MessageRing {
 public:
  MessageRing() = default;
  MessageRing(const MessageRing&) = delete;
  MessageRing& operator=(const MessageRing&) = delete;
  virtual ~MessageRing() = default;

  /// Starts a message in a slot. A message that the slot had before must be complete.
  virtual void send(std::size_t slot, Rank peer, Lane lane, const std::byte* data, Bytes bytes) = 0;
  virtual void receive(std::size_t slot, Rank peer, Lane lane, std::byte* data, Bytes bytes) = 0;
  /// Returns true if the message of a slot is complete, or if it has none.
  [[nodiscard]] virtual bool test(std::size_t slot) = 0;
  virtual void cancel(std::size_t slot) = 0;
};

/// The MessageRing of a Transport, to which it refers.
template <Transport T>
class MessageRingOf final : public MessageRing {
 public:
  MessageRingOf(T& transport, std::size_t slots) : m_transport(&transport), m_requests(slots) {}

  void send(std::size_t slot, Rank peer, Lane lane, const std::byte* data, Bytes bytes) override {
    m_requests[slot] = m_transport->send(peer, lane, data, bytes);
  }
  void receive(std::size_t slot, Rank peer, Lane lane, std::byte* data, Bytes bytes) override {
    m_requests[slot] = m_transport->receive(peer, lane, data, bytes);
  }
  [[nodiscard]] bool test(std::size_t slot) override {
    if (!m_requests[slot]) return true;
    if (!m_transport->test(*m_requests[slot])) return false;
    m_requests[slot].reset();
    return true;
  }
  void cancel(std::size_t slot) override {
    if (m_requests[slot]) m_transport->cancel(*m_requests[slot]);
  }

 private:
  T* m_transport;
  std::vector<std::optional<typename T::Request>> m_requests;
};

/// The functions of a type of transport. Those that it does not have are null.
struct TransportFunctions {
  std::unique_ptr<MessageRing> (*open)(void*, std::size_t);
  void (*abort)(void*, const Abort&);
  std::optional<Abort> (*aborted)(void*);
  void (*answer)(void*, const ListPlace&) = nullptr;
  std::vector<std::optional<ListPlace>> (*places)(void*) = nullptr;
  void (*note_silence)(void*) = nullptr;
  std::vector<std::uint32_t> (*domains)(const void*) = nullptr;
  SharedBlocks (*share)(void*, Bytes) = nullptr;
};

template <Transport T>
[[nodiscard]] constexpr TransportFunctions transport_functions() {
  TransportFunctions found{
      .open = [](void* object, std::size_t slots) -> std::unique_ptr<MessageRing> {
        return std::make_unique<MessageRingOf<T>>(*static_cast<T*>(object), slots);
      },
      .abort = [](void* object, const Abort& abort) { static_cast<T*>(object)->abort(abort); },
      .aborted = [](void* object) { return static_cast<T*>(object)->aborted(); }};
  if constexpr (ReportsPlaces<T>) {
    found.answer = [](void* object, const ListPlace& place) {
      static_cast<T*>(object)->answer(place);
    };
    found.places = [](void* object) { return static_cast<T*>(object)->places(); };
  }
  if constexpr (NotesSilence<T>)
    found.note_silence = [](void* object) { static_cast<T*>(object)->note_silence(); };
  if constexpr (SharesMemory<T>) {
    found.domains = [](const void* object) { return static_cast<const T*>(object)->domains(); };
    found.share = [](void* object, Bytes bytes) { return static_cast<T*>(object)->share(bytes); };
  }
  return found;
}

template <Transport T>
inline constexpr TransportFunctions functions_of = transport_functions<T>();

}  // namespace impl

/// A reference to any Transport. It does not own the transport. The optional members of a
/// transport have a question each, because the reference forgets the type.
class TransportRef {
 public:
  /// Refers to `transport`, which must outlive all that use it.
  template <Transport T>
  TransportRef(T& transport) noexcept  // NOLINT(google-explicit-constructor): it is a reference
      : m_object(&transport),
        m_functions(&impl::functions_of<T>),
        m_rank(transport.rank()),
        m_size(transport.size()) {}

  /// Returns this rank.
  [[nodiscard]] Rank rank() const noexcept { return m_rank; }
  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return m_size; }
  /// Returns room for so many messages in flight.
  [[nodiscard]] std::unique_ptr<impl::MessageRing> open(std::size_t slots) const {
    return m_functions->open(m_object, slots);
  }
  /// Tells every other rank of a failure, once; see Transport.
  void abort(const Abort& abort) const { m_functions->abort(m_object, abort); }
  /// Returns the failure of another rank, if there is one.
  [[nodiscard]] std::optional<Abort> aborted() const { return m_functions->aborted(m_object); }

  /// Returns true if the transport ReportsPlaces.
  [[nodiscard]] bool reports_places() const noexcept { return m_functions->places != nullptr; }
  /// Tells the other ranks the place of this one; see ReportsPlaces.
  void answer(const ListPlace& place) const { m_functions->answer(m_object, place); }
  /// Returns the places that the ranks have told; see ReportsPlaces.
  [[nodiscard]] std::vector<std::optional<ListPlace>> places() const {
    return m_functions->places(m_object);
  }

  /// Tells the transport that a rank is silent, if it NotesSilence.
  void note_silence() const {
    if (m_functions->note_silence != nullptr) m_functions->note_silence(m_object);
  }

  /// Returns true if the transport SharesMemory.
  [[nodiscard]] bool shares_memory() const noexcept { return m_functions->share != nullptr; }
  /// Returns the domain of every rank; see SharesMemory.
  [[nodiscard]] std::vector<std::uint32_t> domains() const {
    return m_functions->domains(m_object);
  }
  /// Allocates a block of memory for every rank; see SharesMemory.
  [[nodiscard]] SharedBlocks share(Bytes bytes) const {
    return m_functions->share(m_object, bytes);
  }

 private:
  void* m_object;
  const impl::TransportFunctions* m_functions;
  Rank m_rank;
  int m_size;
};

}  // namespace heddle::inline v0
