// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BoxTransport: the messages of an exchange, of which some go by the path that a table chooses.

#include <cstddef>
#include <map>
#include <optional>
#include <ostream>
#include <utility>

#include <heddle/comm/device_transport.hpp>
#include <heddle/comm/internal/strided_message.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/tensor/internal/exchange_performer.hpp>

namespace heddle::inline v0::impl {

/// A Transport over an MpiTransport, which it refers to, for memory of `MemorySpace`: a
/// DeviceTransport, but for parts of packed memory that stand for boxes of an array. These go as
/// their StridedMessage does.
template <class MemorySpace>
class BoxTransport {
  using Carrier = DeviceTransport<MpiTransport, MemorySpace>;

 public:
  /// Stands for a message; see DeviceTransport.
  using Request = typename Carrier::Request;
  /// The boxes that a part stands for.
  struct Boxes {
    Rank peer;               ///< to which they go, or from which they come
    bool sends = false;      ///< true: sent from "from", false: received in "to"
    std::size_t array = 0;   ///< the one of ExchangeMemory that they lie in
    StridedMessage message;  ///< how
  };

  explicit BoxTransport(MpiTransport& inner) : m_inner(&inner), m_carrier(inner) {}

  /// From now on the part that begins at `part` stands for `boxes`.
  void stand_for(const std::byte* part, Boxes boxes) { m_boxes.emplace(part, std::move(boxes)); }
  /// From now on the arrays are these. No message may be under way.
  void arrays(const ExchangeMemory& arrays) noexcept { m_arrays = arrays; }
  /// Returns the message that packs and unpacks the part at address `part`; null if there is none.
  [[nodiscard]] const StridedMessage* find(const std::byte* part) const {
    const Boxes* const boxes = at(part);
    return boxes == nullptr ? nullptr : &boxes->message;
  }

  [[nodiscard]] Rank rank() const noexcept { return m_inner->rank(); }
  [[nodiscard]] int size() const noexcept { return m_inner->size(); }
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    if (const Boxes* const boxes = at(data))
      return Request(boxes->message.send(*m_inner, peer, lane, m_arrays[boxes->array]));
    return m_carrier.send(peer, lane, data, bytes);
  }
  [[nodiscard]] Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    if (const Boxes* const boxes = at(data))
      return Request(boxes->message.receive(*m_inner, peer, lane, m_arrays[boxes->array]));
    return m_carrier.receive(peer, lane, data, bytes);
  }
  [[nodiscard]] bool test(Request& request) { return m_carrier.test(request); }
  void cancel(Request& request) { m_carrier.cancel(request); }
  void abort(const Abort& abort) { m_carrier.abort(abort); }
  [[nodiscard]] std::optional<Abort> aborted() { return m_carrier.aborted(); }
  void note_silence() noexcept { m_inner->note_silence(); }

  /// Prints a line for every message of boxes, for example "to rank 1: 8 B of 256 x 2048, direct".
  friend std::ostream& operator<<(std::ostream& out, const BoxTransport& transport) {
    for (const auto& [part, boxes] : transport.m_boxes)
      out << (boxes.sends ? "to" : "from") << " rank " << boxes.peer << ": " << boxes.message
          << '\n';
    return out;
  }

 private:
  [[nodiscard]] const Boxes* at(const std::byte* part) const {
    const auto found = m_boxes.find(part);
    return found == m_boxes.end() ? nullptr : &found->second;
  }

  MpiTransport* m_inner;
  Carrier m_carrier;
  ExchangeMemory m_arrays = {};
  std::map<const std::byte*, Boxes> m_boxes;
};
static_assert(Transport<BoxTransport<Kokkos::HostSpace>>);

}  // namespace heddle::inline v0::impl
