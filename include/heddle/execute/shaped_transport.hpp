// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShapedTransport: another transport behind links of chosen rate and delay and behind ports of
/// ranks, which may change while it runs. It shows on any machine how a program behaves on a slow
/// network.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

/// The links and ports that a ShapedTransport imitates.
struct Shape {
  /// Returns the link from `from` to `to` at the time `now`. The sending rank calls it once per
  /// message.
  std::function<Link(Rank from, Rank to, Seconds now)> link;
  /// Returns the ports that all messages of `rank` to and from others share at the time `time`. A
  /// rank calls it for itself: once for each message that it sends, at that time, and once for each
  /// message that it receives, with the time when the first byte arrives. If it is empty, nothing
  /// is shared.
  std::function<Ports(Rank rank, Seconds time)> ports = nullptr;
  /// Returns the time of a clock common to all ranks, such as steady_seconds() on one host.
  std::function<Seconds()> now = steady_seconds;
  /// If true, a link accepts messages at once and buffers them until it carries them. If false, the
  /// sender's memory is not free before the link has carried the message, as for a blocking send.
  bool buffers = true;

  /// Returns the links of `machine`, and the ports of its ranks if they have any. Over this shape a
  /// schedule takes the time that simulate() predicts for it on that Machine, with the exceptions
  /// that ShapedTransport lists.
  /// @throws contract_error if messages share more than ports of ranks, such as ports of a node or
  ///         a line.
  [[nodiscard]] static Shape of(Machine machine);
};

/// A Transport over `T` in which no message arrives before its link would have carried it.
///
/// A link carries one message after another, whatever their lanes. Each message occupies the link
/// for bytes / bandwidth, from the time when it was sent or the link is free. It arrives `latency`
/// later, but not before the message ahead of it. The properties of the link are those at the time
/// when the message was sent. The time of the inner transport overlaps and is not added, so shape
/// links that are slower than it.
///
/// If the shape has ports, a message to another rank first passes the sender's way out, then its
/// link, and then the receiver's way in. The way out serves messages in the order in which they
/// were sent, whatever their destinations. The way in serves them in the order in which their first
/// bytes arrive; at equal times it uses the order in which their receives were posted. A way serves
/// each message for its bytes / bandwidth, and its bytes follow: it is at the link as soon as the
/// way out begins to serve it, and at the way in a latency after the link begins to serve it. If
/// there are several ways, lane l uses way l % count. The properties of a port are those at the
/// time when the message reached it.
///
/// simulate() predicts the same times for such a Machine, with three exceptions:
///
/// - All messages of a pair share one link, whatever their lanes. In simulate() each lane has its
///   own link.
/// - A message passes the way out when it is its turn, even while its link still carries the one
///   before it, and then waits for the link. In simulate() it reaches the way out when its link is
///   free.
/// - A receiver serves the messages that it knows of. If the receive of a message is posted after
///   the message arrived, or the header of a message arrives later than the message would, this
///   message is served after those that were served before, even if the way in was free for it.
///
/// The receiver's `test` returns false until the message has arrived. The sender's memory is free
/// as soon as the inner transport reports it. So a slow link delays only ranks that wait for it,
/// unless it has no buffers (see Shape). The times of arrival travel ahead as a message of their
/// own, so the inner transport sees two messages for each one.
template <Transport T>
class ShapedTransport {
  static constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

  /// The header that travels ahead of a message: when it is at the other end of its link.
  struct Arrival {
    Seconds head = 0;  ///< its first byte
    Seconds last = 0;  ///< all of it
  };
  /// A message in flight. It lies in a slot of the transport that is reused.
  struct Message {
    Arrival arrival;       ///< the header
    Seconds complete = 0;  ///< not before this time, at the sender
    typename T::Request ahead;
    typename T::Request body;
    bool receives = false;
    // The members below are for messages that are received through a port.
    bool coming = false;   ///< true until the way in has served it
    Seconds head = never;  ///< when its first byte arrives, once this rank knows it
    Rank peer;
    Lane lane;
    Bytes bytes = 0;
  };
  /// The links to and from one rank.
  struct Road {
    Seconds free = 0;  ///< when the link to the rank can carry the next message
    Arrival arrival;   ///< the arrival of the last message at the rank
    Seconds came = 0;  ///< when the last message from the rank passed the way in
  };
  /// The ports of this rank in one direction.
  class Ways {
   public:
    /// Returns the begin and the end of the passage of a message of `lane` that arrives at `time`
    /// through its one of `count` ways.
    std::pair<Seconds, Seconds> pass(Seconds time, Lane lane, int count, Seconds occupancy) {
      const std::size_t way = +lane % static_cast<std::size_t>(count);
      m_free.resize(std::max(m_free.size(), way + 1));
      Seconds& free = m_free[way];
      const Seconds start = std::max(time, free);
      free = start + occupancy;
      return {start, free};
    }

   private:
    std::vector<Seconds> m_free;  ///< when each way is free
  };

 public:
  /// Refers to a message until `test` has said true or `cancel` was called. Move-only.
  class Request {
   public:
    /// Refers to no message, and is complete.
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

  /// Constructs the transport over `inner`, which must outlive it and carry nothing else. All ranks
  /// construct one.
  /// @throws contract_error if the shape has no link or no clock.
  ShapedTransport(T& inner, Shape shape)
      : m_inner(&inner),
        m_shape(std::move(shape)),
        m_roads(static_cast<std::size_t>(inner.size())) {
    expects(m_shape.link != nullptr && m_shape.now != nullptr, [] {
      return ErrorInfo{where, "a shape needs the functions link and now", "one of them is empty",
                       "set both, or call Shape::of()"};
    });
  }
  ShapedTransport(const ShapedTransport&) = delete;
  ShapedTransport& operator=(const ShapedTransport&) = delete;

  /// Returns the rank in the inner transport.
  [[nodiscard]] Rank rank() const noexcept { return m_inner->rank(); }
  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return m_inner->size(); }

  /// Starts a message to `peer`; see Transport.
  /// @throws contract_error if there is no such rank, if the shape returns a link of negative
  ///         latency or without bandwidth, or if it returns no port or one without bandwidth.
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    const Arrival arrival = arrives(peer, lane, bytes);
    Message& message = take(false);
    message.arrival = arrival;
    message.complete = m_shape.buffers ? 0 : m_roads[+peer].free;
    message.ahead = m_inner->send(peer, lane, header(message), sizeof message.arrival);
    message.body = m_inner->send(peer, lane, data, bytes);
    return Request(&message);
  }

  /// Starts the receive of a message of exactly `bytes` bytes from `peer`; see Transport.
  [[nodiscard]] Request receive(Rank peer, Lane lane, std::byte* data, Bytes bytes) {
    Message& message = take(true);
    message.ahead = m_inner->receive(peer, lane, header(message), sizeof message.arrival);
    message.body = m_inner->receive(peer, lane, data, bytes);
    if (shares(peer)) {
      message.coming = true;
      message.head = never;
      message.peer = peer;
      message.lane = lane;
      message.bytes = bytes;
      m_coming.push_back(&message);
    }
    return Request(&message);
  }

  /// Returns true if the message is complete. A received message is not complete before it arrives,
  /// and a sent one not before a link without buffers has carried it. The call makes progress on
  /// all other messages.
  /// @throws contract_error if the shape returns no port for this rank, or one without bandwidth.
  [[nodiscard]] bool test(Request& request) {
    Message* const message = request.m_message;
    if (message == nullptr) return true;
    if (message->receives && !m_coming.empty()) serve();
    if (!m_inner->test(message->ahead) || !m_inner->test(message->body)) return false;
    const Seconds complete = message->receives ? message->arrival.last : message->complete;
    if (message->coming || (complete > 0 && m_shape.now() < complete)) {
      // There is nothing left to test, but other messages may need the inner transport to be
      // called.
      static_cast<void>(m_inner->aborted());
      return false;
    }
    m_free.push_back(std::exchange(request.m_message, nullptr));
    return true;
  }

  /// Cancels an unfinished message, whose memory is free afterwards; see Transport.
  void cancel(Request& request) {
    Message* const message = std::exchange(request.m_message, nullptr);
    if (message == nullptr) return;
    m_inner->cancel(message->body);
    m_inner->cancel(message->ahead);
    if (std::exchange(message->coming, false)) std::erase(m_coming, message);
    m_free.push_back(message);
  }

  /// Tells every other rank of a failure, once. No link delays this.
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
  static constexpr const char* where = "heddle::ShapedTransport";

  static std::byte* header(Message& message) {
    return reinterpret_cast<std::byte*>(&message.arrival);
  }

  /// Returns true if a message from or to `peer` passes a port.
  [[nodiscard]] bool shares(Rank peer) const { return m_shape.ports && peer != rank(); }

  /// Returns the arrival of a message to `peer` that is sent now.
  Arrival arrives(Rank peer, Lane lane, Bytes bytes) {
    expects(+peer < m_roads.size(), [&] {
      return ErrorInfo{where, "no such peer", text("rank ", peer, " of ", size())};
    });
    const Seconds now = m_shape.now();
    const Link link = m_shape.link(rank(), peer, now);
    expects(link.latency >= 0 && std::isfinite(link.latency) && link.bandwidth > 0, [&] {
      return ErrorInfo{where, "a link needs a latency of at least 0 and a bandwidth above 0",
                       text("latency ", link.latency, " s, bandwidth ", link.bandwidth,
                            " B/s from rank ", rank(), " to ", peer)};
    });
    Seconds out = now, past = now;  // when the way out begins and ends to carry the message
    if (shares(peer)) {
      const Ports ports = ports_at(now);
      std::tie(out, past) =
          m_out.pass(now, lane, ports.count, static_cast<double>(bytes) / ports.out);
    }
    Road& road = m_roads[+peer];
    const Seconds start = std::max(out, road.free);
    road.free = std::max(start + link.occupancy(bytes), past);
    road.arrival = {std::max(road.arrival.head, start + link.latency),
                    std::max(road.arrival.last, road.free + link.latency)};
    return road.arrival;
  }

  /// Lets the messages whose first byte has arrived pass the way in. The others wait, because a
  /// message that this rank does not know yet may come before them.
  void serve() {
    const Seconds now = m_shape.now();
    for (Message* const message : m_coming)
      if (message->head == never && m_inner->test(message->ahead))
        message->head = message->arrival.head;
    while (!m_coming.empty()) {
      const auto first = std::ranges::min_element(m_coming, {}, &Message::head);
      Message& message = **first;
      if (message.head > now) return;
      const Ports ports = ports_at(message.head);
      const Seconds past = m_in.pass(message.head, message.lane, ports.count,
                                     static_cast<double>(message.bytes) / ports.in)
                               .second;
      Seconds& came = m_roads[+message.peer].came;
      message.arrival.last = came = std::max({came, message.arrival.last, past});
      message.coming = false;
      m_coming.erase(first);
    }
  }

  [[nodiscard]] Ports ports_at(Seconds time) const {
    const Ports ports = m_shape.ports(rank(), time);
    expects(ports.out > 0 && ports.in > 0 && ports.count >= 1, [&] {
      return ErrorInfo{where, "a rank needs at least one port, with bandwidths above 0",
                       text(ports.count, " ports of ", ports.out, " B/s out, ", ports.in,
                            " B/s in at rank ", rank())};
    });
    return ports;
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
  std::vector<Road> m_roads;  ///< by peer
  Ways m_out, m_in;
  std::vector<Message*> m_coming;  ///< wait for the way in, in the order of their receives
  std::deque<Message> m_messages;  ///< all slots; their addresses do not change
  std::vector<Message*> m_free;    ///< the slots that no message uses
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_EXECUTE
#include <heddle/execute/shaped_transport.ipp>
#include <heddle/schedule/list_place.hpp>
#endif
