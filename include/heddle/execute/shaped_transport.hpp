// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShapedTransport: another transport behind links of chosen rate and delay and ports of ranks,
/// which may change while it runs. For trying on any machine what a program does on a slow network.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

/// What a ShapedTransport makes of its links and ports.
struct Shape {
  /// The link from `from` to `to` at the time `now`; the sending rank asks once a message.
  std::function<Link(Rank from, Rank to, Seconds now)> link;
  /// What all messages of `rank` to and from others share at the time `time`. A rank asks for its
  /// own: once for each message that it sends, at that time, and once for each that it receives,
  /// with the time when the first byte comes. Empty: nothing is shared.
  std::function<Ports(Rank rank, Seconds time)> ports = nullptr;
  /// One clock for all ranks; steady_seconds() is that on one host.
  std::function<Seconds()> now = steady_seconds;
  /// A link takes messages at once and keeps them until it carries them; else the sender's memory
  /// is not free before the link has carried the message, as where a blocking send returns then.
  bool buffers = true;
};

/// The links of `machine` and, where its ranks have them, their ports: a schedule takes over this
/// shape what simulate() says of it on that Machine, but for what ShapedTransport tells.
/// @throws contract_error where messages share more than ports of ranks: those of a node, a line.
[[nodiscard]] inline Shape shape_of(Machine machine) {
  const auto all = std::make_shared<const Machine>(std::move(machine));
  const auto ports = [all](Rank rank, Seconds) {
    return all->levels()[0].ranks == 1 ? all->ports(0, +rank) : Ports{};
  };
  bool shares = false;
  const Rank end{all->ranks()};
  for (Rank from; from < end; ++from)
    for (Rank to; to < end; ++to) {
      const bool out = from != to && ports(from, 0).out != Ports::unlimited;
      const bool in = from != to && ports(to, 0).in != Ports::unlimited;
      shares = shares || out || in;
      const Route route = all->route(from, to, Lane{0});
      // The ranks' own ports are the first on the way out and the last on the way in.
      std::vector<SharedId> more(route.out.begin() + out, route.out.end());
      more.insert(more.end(), route.in.begin(), route.in.end() - in);
      expects(more.empty(), [&] {
        return Complaint{"heddle::shape_of", "a shape has links and ports of ranks only",
                         text("messages from rank ", from, " to ", to, " share '",
                              all->shared()[+more[0]].name, "'")};
      });
    }
  Shape shape;
  shape.link = [all](Rank from, Rank to, Seconds) { return all->link(from, to); };
  if (shares) shape.ports = ports;
  return shape;
}

/// A Transport over `T` that lets no message arrive before its link would have carried it.
///
/// A link carries one message after another, whatever their lanes: each occupies it from the time
/// when it was sent, or the link is free, for bytes / bandwidth, and arrives `latency` later, but
/// no sooner than the one before it. A message meets the link as it was when it was sent. What the
/// inner transport takes runs meanwhile and is not added: shape links slower than it.
///
/// Where the shape has ports, a message to another rank first passes the sender's way out, one
/// message after another in the order sent, to whomever they go, and after its link the receiver's
/// way in, one after another in the order in which their first bytes come, at equal times as their
/// receives were posted. It keeps each for its bytes / bandwidth, and its bytes follow: it is at
/// the link as soon as it is served at the way out, and at the way in a latency after it is served
/// at the link. Of several ways lane l takes number l % count. A message meets a port as it was
/// when it came there.
///
/// That is what simulate() makes of such a Machine, but for three things:
///
/// - Messages of a pair share one link whatever their lanes; there each lane has its own.
/// - A message passes the way out in its turn also while its link carries the one before it, and
///   waits for the link then. There it comes to the way out when its link is free.
/// - A receiver serves those messages that it knows of. One whose receive is posted after it came,
///   or whose time is here later than it would be itself, is served after those that were served
///   before, though the way in may have been free for it.
///
/// The receiver's `test` is false until the message has arrived. The sender's memory is free as
/// soon as the inner transport says so, so a slow link holds up nobody who does not wait for it,
/// unless it has no buffers (see Shape). The times of arrival travel ahead as a message of their
/// own: the inner transport sees two for each.
template <Transport T>
class ShapedTransport {
  static constexpr Seconds never = std::numeric_limits<Seconds>::infinity();

  /// What goes ahead of a message: when it is at the other end of its link.
  struct Arrival {
    Seconds head = 0;  ///< its first byte
    Seconds last = 0;  ///< all of it
  };
  /// One message under way. Lives in a slot of the transport that is used again.
  struct Message {
    Arrival arrival;       ///< which goes ahead
    Seconds complete = 0;  ///< not before this time, at the sender
    typename T::Request ahead;
    typename T::Request body;
    bool receives = false;
    // Of one that is received through a port:
    bool coming = false;   ///< and has not been served
    Seconds head = never;  ///< when its first byte is there, once the rank has learned it
    Rank peer;
    Lane lane;
    Bytes bytes = 0;
  };
  /// The links to and from one rank.
  struct Road {
    Seconds free = 0;  ///< from when on that to it carries the next message
    Arrival arrival;   ///< there, of the last one
    Seconds came = 0;  ///< here, the last one to pass the way in
  };
  /// The ports of this rank in one direction.
  class Ways {
   public:
    /// From when to when a message of `lane` that comes at `time` is at its one of `count`.
    std::pair<Seconds, Seconds> pass(Seconds time, Lane lane, int count, Seconds occupancy) {
      const std::size_t way = +lane % static_cast<std::size_t>(count);
      m_free.resize(std::max(m_free.size(), way + 1));
      Seconds& free = m_free[way];
      const Seconds start = std::max(time, free);
      free = start + occupancy;
      return {start, free};
    }

   private:
    std::vector<Seconds> m_free;  ///< when each is
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
      return Complaint{where, "a shape has a link and a clock"};
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
  ///         negative latency or without bandwidth, or no port, or one without bandwidth.
  [[nodiscard]] Request send(Rank peer, Lane lane, const std::byte* data, Bytes bytes) {
    const Arrival arrival = arrives(peer, lane, bytes);
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

  /// Whether it is complete, which a received message is not before it arrives, and a sent one
  /// not before a link without buffers has carried it. Furthers all others.
  /// @throws contract_error where the shape gives this rank no port, or one without bandwidth.
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

  /// Gives the memory of an unfinished message back; see Transport.
  void cancel(Request& request) {
    Message* const message = std::exchange(request.m_message, nullptr);
    if (message == nullptr) return;
    m_inner->cancel(message->body);
    m_inner->cancel(message->ahead);
    if (std::exchange(message->coming, false)) std::erase(m_coming, message);
    m_free.push_back(message);
  }

  /// Tells every other rank, once and at once: no link holds this up.
  void abort(const Abort& abort) { m_inner->abort(abort); }
  /// What another rank has told, if one has.
  [[nodiscard]] std::optional<Abort> aborted() { return m_inner->aborted(); }

 private:
  static constexpr const char* where = "heddle::ShapedTransport";

  static std::byte* header(Message& message) {
    return reinterpret_cast<std::byte*>(&message.arrival);
  }

  /// Whether a message from or to `peer` passes a port.
  [[nodiscard]] bool shares(Rank peer) const { return m_shape.ports && peer != rank(); }

  /// When a message to `peer` that is sent now will be there.
  Arrival arrives(Rank peer, Lane lane, Bytes bytes) {
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
    Seconds out = now, past = now;  // served at the way out, and done with it
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

  /// Lets the messages whose first byte is here pass the way in. The others wait: one that this
  /// rank does not know of yet may come before them.
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
      return Complaint{where, "there is at least one port, with a bandwidth above 0",
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
  std::vector<Message*> m_coming;  ///< which wait for the way in, as their receives were posted
  std::deque<Message> m_messages;  ///< every slot there is; addresses stay
  std::vector<Message*> m_free;    ///< those that no message uses
};

}  // namespace heddle::inline v0
