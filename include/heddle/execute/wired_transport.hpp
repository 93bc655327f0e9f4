// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// WiredTransport: a transport that sends the bytes of messages over a wire without lanes or
/// aborts, such as a library for one kind of device. Another transport decides which message goes
/// when.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/list_place.hpp>

namespace heddle::inline v0 {

/// A type that carries bytes from rank to rank. The k-th send from one rank to another matches the
/// k-th receive there, of the same size. Pairs of ranks do not block each other, and neither do the
/// two directions of a pair. A ticket refers to an operation until `test` has returned true.
/// `abort` ends all operations in flight and releases their memory.
template <class W>
concept Wire = requires(W& wire, Rank peer, std::byte* data, const std::byte* source, Bytes bytes,
                        typename W::Ticket& ticket) {
  requires std::default_initializable<typename W::Ticket>;
  requires std::movable<typename W::Ticket>;
  { wire.send(peer, source, bytes) } -> std::same_as<typename W::Ticket>;
  { wire.receive(peer, data, bytes) } -> std::same_as<typename W::Ticket>;
  { wire.test(ticket) } -> std::same_as<bool>;
  { wire.abort() } -> std::same_as<void>;
};

/// A Transport that sends bytes over `W` and all other information over `T`. It refers to both. All
/// ranks construct one.
///
/// The sender announces a message over `T`, on its own lane, with its size. When a receive matches
/// it, the receiver calls for it, and both sides pass it to the wire in the order of the calls,
/// which is the same for both. So a message without a receive stays off the wire and blocks
/// nothing, and sizes that differ are found before a byte is written. A message takes two short
/// messages of `T` besides its bytes; an empty message takes one. The lane `calls` of `T` belongs
/// to this transport.
template <Transport T, Wire W>
class WiredTransport {
  /// A message in flight. It is in a slot of the transport that is reused.
  struct Message {
    Bytes bytes = 0;
    Bytes announced = 0;  ///< the size, which is sent ahead of the bytes
    typename T::Request ahead;
    std::uint32_t called = 0;  ///< the lane for which the receiver has called
    typename T::Request call;  ///< the call of the receiver
    typename W::Ticket ticket;
    const std::byte* source = nullptr;
    std::byte* target = nullptr;
    Rank peer;
    Lane lane;
    bool here = false;   ///< a message to receive, which its sender has announced
    bool moves = false;  ///< the message is on the wire, or is empty
  };
  /// The receive buffer for the lane for which a receiver calls.
  struct Call {
    std::uint32_t lane = 0;
    typename T::Request request;
  };
  /// The messages that this rank sends to one other rank.
  struct Outbox {
    std::deque<Call> calls;  ///< one receive for the call of each message, in the order of arrival
    std::deque<Message*> waiting;  ///< messages that wait for a call of their lane, in order
  };

 public:
  /// The lane of `T` that carries the calls of receivers.
  static constexpr Lane calls{32766};

  /// A message in flight, until `test` has returned true or `cancel` was called. It can be moved,
  /// but not copied.
  class Request {
   public:
    /// Constructs a request without a message, which counts as complete.
    Request() = default;
    /// Moves the request. `other` is left without a message.
    Request(Request&& other) noexcept : m_message(std::exchange(other.m_message, nullptr)) {}
    /// Moves the request. `other` is left without a message.
    Request& operator=(Request&& other) noexcept {
      m_message = std::exchange(other.m_message, nullptr);
      return *this;
    }

   private:
    friend class WiredTransport;
    explicit Request(Message* message) : m_message(message) {}
    Message* m_message = nullptr;
  };

  /// Constructs the transport over `inner` and `wire`, which must outlive it. Nothing else may use
  /// `wire`.
  WiredTransport(T& inner, W& wire)
      : m_inner(&inner), m_wire(&wire), m_outboxes(static_cast<std::size_t>(inner.size())) {}
  WiredTransport(const WiredTransport&) = delete;
  WiredTransport& operator=(const WiredTransport&) = delete;

  /// Returns the rank in the inner transport.
  [[nodiscard]] Rank rank() const noexcept { return m_inner->rank(); }
  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return m_inner->size(); }

  /// Starts a message to `peer`; see Transport.
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    Message& message = take(peer, lane, bytes);
    message.source = data;
    message.announced = bytes;
    message.ahead = m_inner->send(peer, lane, bytes_of(message.announced), sizeof(Bytes));
    message.moves = bytes == 0;
    if (message.moves) return Request(&message);
    Outbox& outbox = m_outboxes[+peer];
    Call& call = outbox.calls.emplace_back();
    call.request = m_inner->receive(peer, calls, bytes_of(call.lane), sizeof call.lane);
    outbox.waiting.push_back(&message);
    return Request(&message);
  }

  /// Starts the receive of a message of exactly `bytes` bytes from `peer`; see Transport.
  [[nodiscard]] Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    Message& message = take(peer, lane, bytes);
    message.target = data;
    message.ahead = m_inner->receive(peer, lane, bytes_of(message.announced), sizeof(Bytes));
    m_awaited.push_back(&message);
    return Request(&message);
  }

  /// Returns true if the message is complete, and makes progress on all others.
  /// @throws communication_error if a message and its receive have different sizes.
  [[nodiscard]] bool test(Request& request) {
    Message* const message = request.m_message;
    if (message == nullptr) return true;
    further();
    if (!message->moves || !m_inner->test(message->ahead) || !m_inner->test(message->call) ||
        !m_wire->test(message->ticket))
      return false;
    m_free.push_back(std::exchange(request.m_message, nullptr));
    return true;
  }

  /// Cancels an unfinished message, whose memory is free afterwards; see Transport. It ends all
  /// messages that are on the wire.
  void cancel(Request& request) {
    Message* const message = std::exchange(request.m_message, nullptr);
    if (message == nullptr) return;
    m_inner->cancel(message->ahead);
    m_inner->cancel(message->call);
    if (std::exchange(m_cut, true)) return;
    m_wire->abort();
    for (Outbox& outbox : m_outboxes)
      for (Call& call : outbox.calls) m_inner->cancel(call.request);
  }

  /// Tells every other rank of a failure, once; see Transport.
  void abort(const Abort& abort) { m_inner->abort(abort); }
  /// Returns the failure of another rank, if there is one.
  [[nodiscard]] std::optional<Abort> aborted() { return m_inner->aborted(); }
  /// Tells the other ranks this rank's place in its list after a hang; see ReportsPlaces.
  void answer(const ListPlace& place) requires ReportsPlaces<T> { m_inner->answer(place); }
  /// Returns the places that the ranks have told; see ReportsPlaces.
  [[nodiscard]] std::vector<std::optional<ListPlace>> places() requires ReportsPlaces<T> {
    return m_inner->places();
  }
  /// Notes that a rank is silent; see NotesSilence.
  void note_silence() requires NotesSilence<T> { m_inner->note_silence(); }

 private:
  template <class V>
  static std::byte* bytes_of(V& value) {
    return reinterpret_cast<std::byte*>(&value);
  }

  Message& take(Rank peer, Lane lane, Bytes bytes) {
    if (m_free.empty()) m_free.push_back(&m_messages.emplace_back());
    Message& message = *m_free.back();
    m_free.pop_back();
    message.peer = peer;
    message.lane = lane;
    message.bytes = bytes;
    message.moves = false;
    return message;
  }

  /// Calls for the messages that are announced and awaited, and sends those that peers call for.
  void further() {
    // The last one first: if a message of a lane has arrived, the messages before it have, too.
    for (auto last = m_awaited.rbegin(); last != m_awaited.rend(); ++last)
      (*last)->here = m_inner->test((*last)->ahead);
    std::erase_if(m_awaited, [&](Message* message) {
      if (message->here) call_for(*message);
      return message->here;
    });
    for (Outbox& outbox : m_outboxes) {
      while (!outbox.calls.empty() && m_inner->test(outbox.calls.front().request)) {
        const Lane lane{outbox.calls.front().lane};
        outbox.calls.pop_front();
        const auto next = std::ranges::find(outbox.waiting, lane, &Message::lane);
        Message& message = **next;
        outbox.waiting.erase(next);
        message.ticket = m_wire->send(message.peer, message.source, message.bytes);
        message.moves = true;
      }
    }
  }

  void call_for(Message& message) {
    if (message.announced != message.bytes)
      throw communication_error(
          {text("heddle::WiredTransport, rank ", rank()),
           "the sizes of a message and its receive differ",
           text("from rank ", message.peer, ", lane ", message.lane, ": sent ", message.announced,
                " bytes, expected ", message.bytes)});
    message.moves = true;
    if (message.bytes == 0) return;
    message.called = message.lane.value;
    message.call =
        m_inner->send(message.peer, calls, bytes_of(message.called), sizeof message.called);
    message.ticket = m_wire->receive(message.peer, message.target, message.bytes);
  }

  T* m_inner;
  W* m_wire;
  std::vector<Outbox> m_outboxes;   ///< by peer
  std::vector<Message*> m_awaited;  ///< receives that have not called yet, in order
  std::deque<Message> m_messages;   ///< all slots; their addresses do not change
  std::vector<Message*> m_free;     ///< the slots that no message uses
  bool m_cut = false;               ///< the wire was aborted
};

}  // namespace heddle::inline v0
