// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShapedTransport: another transport behind links of chosen rate and delay, which may change while
/// it runs. For trying on any machine what a program does on a slow network.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

/// What a ShapedTransport makes of its links.
struct Shape {
  /// The link from `from` to `to` at the time `now`; the sending rank asks once a message.
  std::function<Link(Rank from, Rank to, Seconds now)> link;
  /// One clock for all ranks; steady_seconds() is that on one host.
  std::function<Seconds()> now = steady_seconds;
  /// A link takes messages at once and keeps them until it carries them; else the sender's memory
  /// is not free before the link has carried the message, as where a blocking send returns then.
  bool buffers = true;
};

/// A Transport over `T` that lets no message arrive before its link would have carried it.
///
/// A link carries one message after another, whatever their lanes: each occupies it from the time
/// when it was sent, or the link is free, for bytes / bandwidth, and arrives `latency` later, but
/// no sooner than the one before it. A message meets the link as it was when it was sent. What the
/// inner transport takes runs meanwhile and is not added: shape links slower than it.
///
/// The receiver's `test` is false until then. The sender's memory is free as soon as the inner
/// transport says so, so a slow link holds up nobody who does not wait for it, unless it has no
/// buffers (see Shape). The time of arrival
/// travels ahead as a message of its own: the inner transport sees two for each.
template <Transport T>
class ShapedTransport {
  /// One message under way. Lives in a slot of the transport that is used again.
  struct Message {
    Seconds arrival = 0;   ///< which goes ahead
    Seconds complete = 0;  ///< not before this time, at the sender
    typename T::Request ahead;
    typename T::Request body;
    bool receives = false;
  };
  /// The link to one rank.
  struct Road {
    Seconds free = 0;     ///< from when on it carries the next message
    Seconds arrival = 0;  ///< of the last one
  };

 public:
  /// Stands for a message until `test` has said true or `cancel` was called. Move-only.
  class Request {
   public:
    /// No message: complete.
    Request() = default;
    /// Leaves `other` without a message.
    Request(Request&& other) noexcept : m_message(std::exchange(other.m_message, nullptr)) {}
    /// Leaves `other` without a message.
    Request& operator=(Request&& other) noexcept {
      m_message = std::exchange(other.m_message, nullptr);
      return *this;
    }

   private:
    friend class ShapedTransport;
    explicit Request(Message* message) : m_message(message) {}
    Message* m_message = nullptr;
  };

  /// Over `inner`, which outlives it and carries nothing else. All ranks have one.
  /// @throws contract_error without a link or a clock.
  ShapedTransport(T& inner, Shape shape)
      : m_inner(&inner),
        m_shape(std::move(shape)),
        m_roads(static_cast<std::size_t>(inner.size())) {
    expects(m_shape.link != nullptr && m_shape.now != nullptr, [] {
      return Complaint{"heddle::ShapedTransport", "a shape has a link and a clock"};
    });
  }
  ShapedTransport(const ShapedTransport&) = delete;
  ShapedTransport& operator=(const ShapedTransport&) = delete;

  /// Of the inner transport.
  [[nodiscard]] Rank rank() const noexcept { return m_inner->rank(); }
  /// Number of ranks.
  [[nodiscard]] int size() const noexcept { return m_inner->size(); }

  /// Starts a message to `peer`; see Transport.
  /// @throws contract_error for a rank that is not there, and where the shape gives a link of
  ///         negative latency or without bandwidth.
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    const Seconds arrival = arrives(peer, bytes);
    Message& message = take(false);
    message.arrival = arrival;
    message.complete = m_shape.buffers ? 0 : m_roads[+peer].free;
    message.ahead = m_inner->send(peer, lane, header(message), sizeof message.arrival);
    message.body = m_inner->send(peer, lane, data, bytes);
    return Request(&message);
  }

  /// Starts the receive of a message from `peer`, of exactly so many bytes; see Transport.
  [[nodiscard]] Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    Message& message = take(true);
    message.ahead = m_inner->receive(peer, lane, header(message), sizeof message.arrival);
    message.body = m_inner->receive(peer, lane, data, bytes);
    return Request(&message);
  }

  /// Whether it is complete, which a received message is not before it arrives, and a sent one
  /// not before a link without buffers has carried it. Furthers all others.
  [[nodiscard]] bool test(Request& request) {
    Message* const message = request.m_message;
    if (message == nullptr) return true;
    if (!m_inner->test(message->ahead) || !m_inner->test(message->body)) return false;
    const Seconds complete = message->receives ? message->arrival : message->complete;
    if (complete > 0 && m_shape.now() < complete) {
      // There is nothing left to test, but other messages may need the inner transport to be
      // called.
      static_cast<void>(m_inner->aborted());
      return false;
    }
    m_free.push_back(std::exchange(request.m_message, nullptr));
    return true;
  }

  /// Gives the memory of an unfinished message back; see Transport.
  void cancel(Request& request) {
    Message* const message = std::exchange(request.m_message, nullptr);
    if (message == nullptr) return;
    m_inner->cancel(message->body);
    m_inner->cancel(message->ahead);
    m_free.push_back(message);
  }

  /// Tells every other rank, once and at once: no link holds this up.
  void abort(const Abort& abort) { m_inner->abort(abort); }
  /// What another rank has told, if one has.
  [[nodiscard]] std::optional<Abort> aborted() { return m_inner->aborted(); }

 private:
  static std::byte* header(Message& message) {
    return reinterpret_cast<std::byte*>(&message.arrival);
  }

  /// When a message to `peer` that is sent now will be there.
  Seconds arrives(Rank peer, Bytes bytes) {
    constexpr const char* where = "heddle::ShapedTransport";
    expects(+peer < m_roads.size(), [&] {
      return Complaint{where, "no such peer", text("rank ", peer, " of ", size())};
    });
    const Seconds now = m_shape.now();
    const Link link = m_shape.link(rank(), peer, now);
    expects(link.latency >= 0 && std::isfinite(link.latency) && link.bandwidth > 0, [&] {
      return Complaint{where, "a link has a latency of at least 0 and a bandwidth above 0",
                       text("latency ", link.latency, " s, bandwidth ", link.bandwidth,
                            " B/s from rank ", rank(), " to ", peer)};
    });
    Road& road = m_roads[+peer];
    road.free = std::max(now, road.free) + link.occupancy(bytes);
    return road.arrival = std::max(road.arrival, road.free + link.latency);
  }

  Message& take(bool receives) {
    if (m_free.empty()) m_free.push_back(&m_messages.emplace_back());
    Message& message = *m_free.back();
    m_free.pop_back();
    message.receives = receives;
    return message;
  }

  T* m_inner;
  Shape m_shape;
  std::vector<Road> m_roads;       ///< by peer
  std::deque<Message> m_messages;  ///< every slot there is; addresses stay
  std::vector<Message*> m_free;    ///< those that no message uses
};

}  // namespace heddle::inline v0
