// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The conformance battery of the Transport concept: what every model of it must do. Each rank
/// calls it with its own end. A failure is thrown, not asserted, because ranks may be threads and
/// Catch2 counts assertions of one thread only: write
/// REQUIRE_NOTHROW(transport_battery(transport)).

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/transport.hpp>

#include "support/cases.hpp"

namespace heddle::test {

/// Throws unless `ok`.
inline void verify(bool ok, const std::string& what) {
  if (!ok) throw std::runtime_error("transport battery: " + what);
}

/// No wait of the battery is longer than this.
inline constexpr Seconds battery_patience = 60;

/// The bytes of message `number` from `from` to `to` on `lane`: byte i is (*this)(i).
class BatteryBytes {
 public:
  BatteryBytes(Rank from, Rank to, Lane lane, std::uint64_t number)
      : m_first(Random((+from * 131 + +to) * 131 + +lane, "battery").bits(number)) {}
  std::byte operator()(std::size_t i) const {
    return static_cast<std::byte>(m_first + i * 7 + (i >> 8));
  }

 private:
  std::uint64_t m_first;
};

/// A message under way, with its memory.
template <Transport T>
class BatteryMessage {
 public:
  /// Starts to send message `number`, of `bytes` bytes.
  static BatteryMessage sent(T& transport, Rank to, Lane lane, std::uint64_t number, Bytes bytes) {
    BatteryMessage message(transport.rank(), to, lane, number, bytes);
    const BatteryBytes value(transport.rank(), to, lane, number);
    for (std::size_t i = 0; i < bytes; ++i) message.m_data[i] = value(i);
    message.m_request = transport.send(to, lane, message.data(), bytes);
    return message;
  }

  /// Starts to receive message `number`, of `bytes` bytes.
  static BatteryMessage awaited(T& transport, Rank from, Lane lane, std::uint64_t number,
                                Bytes bytes) {
    BatteryMessage message(from, transport.rank(), lane, number, bytes);
    message.m_request = transport.receive(from, lane, message.data(), bytes);
    return message;
  }

  /// Waits for the message. Both sides look at every byte: a sender's memory must stay as it was.
  void finish(T& transport) {
    Waiting waiting(Idle::nap);
    const Seconds since = steady_seconds();
    while (!transport.test(m_request)) {
      waiting();
      if (waiting.polls() % 64 != 0) continue;
      if (const std::optional<Abort> abort = transport.aborted())
        verify(false, text("rank ", abort->rank, " failed: ", abort->reason));
      verify(steady_seconds() - since < battery_patience, name() + " did not complete");
    }
    const BatteryBytes value(m_from, m_to, m_lane, m_number);
    for (std::size_t i = 0; i < m_bytes; ++i)
      if (m_data[i] != value(i)) verify(false, text(name(), " differs at byte ", i));
  }

  [[nodiscard]] typename T::Request& request() { return m_request; }

 private:
  BatteryMessage(Rank from, Rank to, Lane lane, std::uint64_t number, Bytes bytes)
      : m_from(from), m_to(to), m_lane(lane), m_number(number), m_bytes(bytes), m_data(bytes) {}

  /// An empty message has no memory at all.
  std::byte* data() { return m_bytes == 0 ? nullptr : m_data.data(); }

  std::string name() const {
    return text("message ", m_number, " of ", m_bytes, " bytes from rank ", m_from, " to ", m_to,
                " on lane ", m_lane);
  }

  Rank m_from, m_to;
  Lane m_lane;
  std::uint64_t m_number;
  Bytes m_bytes;
  std::vector<std::byte> m_data;
  typename T::Request m_request;
};

/// The parts of the battery. Every one leaves no message behind.
template <Transport T>
class TransportBattery {
 public:
  TransportBattery(T& transport, Bytes large)
      : m_transport(transport),
        m_large(large),
        m_next{(+transport.rank() + 1) % static_cast<std::size_t>(transport.size())},
        m_previous{(+transport.rank() + static_cast<std::size_t>(transport.size()) - 1) %
                   static_cast<std::size_t>(transport.size())} {}

  void run() {
    identity();
    order();
    lanes();
    all_to_all();
    large();
    ring();
    token();
  }

 private:
  using Message = BatteryMessage<T>;

  void identity() {
    verify(m_transport.size() >= 1, "size() is below 1");
    verify(+m_transport.rank() < static_cast<std::size_t>(m_transport.size()),
           "rank() lies outside size()");
    typename T::Request none;
    verify(m_transport.test(none), "a default-constructed request is complete");
    verify(!m_transport.aborted(), "nobody aborted");
  }

  /// Messages of one lane meet their receives in order, whichever is looked at first.
  void order() {
    const std::vector<Bytes> sizes{0, 1, 2, 3, 5, 7, 0, 11, 13, 127, 0, 1009, 4096, 65537, 1};
    for (const bool receives_first : {false, true}) {
      std::vector<Message> messages;
      for (const bool receives : {receives_first, !receives_first})
        for (std::size_t i = 0; i < sizes.size(); ++i)
          messages.push_back(receives
                                 ? Message::awaited(m_transport, m_previous, Lane{0}, i, sizes[i])
                                 : Message::sent(m_transport, m_next, Lane{0}, i, sizes[i]));
      for (auto message = messages.rbegin(); message != messages.rend(); ++message)
        message->finish(m_transport);
    }
  }

  /// A message that nobody receives yet does not hold up those on other lanes.
  void lanes() {
    constexpr std::size_t count = 5;
    const auto bytes = [](std::size_t lane) { return Bytes{lane == 2 ? 300'007u : 10u + lane}; };
    std::vector<Message> sends;
    for (std::size_t lane = 0; lane < count; ++lane)
      sends.push_back(Message::sent(m_transport, m_next, Lane{lane}, lane, bytes(lane)));
    for (std::size_t lane = count; lane-- > 0;)
      Message::awaited(m_transport, m_previous, Lane{lane}, lane, bytes(lane)).finish(m_transport);
    for (Message& send : sends) send.finish(m_transport);
  }

  /// Many messages of all pairs at once, a rank's own among them; more than a ring buffer may hold.
  void all_to_all() {
    constexpr std::size_t count = 301;
    std::vector<Message> messages;
    for (std::size_t i = 0; i < count; ++i) {
      for (int peer = 0; peer < m_transport.size(); ++peer) {
        const Lane lane{i % 3};
        messages.push_back(Message::sent(m_transport, Rank{peer}, lane, i, i % 41));
        messages.push_back(Message::awaited(m_transport, Rank{peer}, lane, i, i % 41));
      }
    }
    for (Message& message : messages) message.finish(m_transport);
  }

  /// Too large to be buffered, both ways at once, sends first: a send that waits never ends.
  void large() {
    std::vector<Message> messages;
    for (const Rank peer : {m_next, m_previous})
      messages.push_back(Message::sent(m_transport, peer, Lane{1}, +peer, m_large));
    for (const Rank peer : {m_previous, m_next})
      messages.push_back(
          Message::awaited(m_transport, peer, Lane{1}, +m_transport.rank(), m_large));
    for (Message& message : messages) message.finish(m_transport);
  }

  /// More steps than a ring buffer may hold messages.
  void ring() {
    const std::uint64_t steps = cases(300, 1000);
    for (std::uint64_t i = 0; i < steps; ++i) {
      auto send = Message::sent(m_transport, m_next, Lane{0}, i, 8);
      auto receive = Message::awaited(m_transport, m_previous, Lane{0}, i, 8);
      receive.finish(m_transport);
      send.finish(m_transport);
    }
  }

  /// One message that goes round: nobody may need a call of anybody else to make progress.
  void token() {
    const std::uint64_t rounds = cases(30, 100);
    for (std::uint64_t i = 0; i < rounds; ++i) {
      if (+m_transport.rank() == 0) {
        auto send = Message::sent(m_transport, m_next, Lane{2}, i, 3);
        Message::awaited(m_transport, m_previous, Lane{2}, i, 3).finish(m_transport);
        send.finish(m_transport);
      } else {
        Message::awaited(m_transport, m_previous, Lane{2}, i, 3).finish(m_transport);
        Message::sent(m_transport, m_next, Lane{2}, i, 3).finish(m_transport);
      }
    }
  }

  T& m_transport;
  Bytes m_large;
  Rank m_next;
  Rank m_previous;
};

/// Everything but aborts. `large` is a size that the transport shall not buffer. It can be used
/// afterwards. Where it fails on one rank, the others are told, so that all of them come back.
template <Transport T>
void transport_battery(T& transport, Bytes large = (Bytes{4} << 20) + 13) {
  try {
    TransportBattery<T>(transport, large).run();
  } catch (const std::exception& error) {
    transport.abort({transport.rank(), "transport battery", error.what()});
    throw;
  }
}

/// Rank `failing` aborts while the others wait for messages that never come, and everyone has sends
/// under way that nobody receives. The transport is spent afterwards.
template <Transport T>
void transport_abort_battery(T& transport, Rank failing) {
  using Message = BatteryMessage<T>;
  const Rank me = transport.rank();
  std::vector<Message> messages;
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (Rank{peer} == me) continue;
    messages.push_back(Message::sent(transport, Rank{peer}, Lane{3}, 0, 11));
    messages.push_back(Message::sent(transport, Rank{peer}, Lane{3}, 1, 1'000'003));
    messages.push_back(Message::awaited(transport, Rank{peer}, Lane{4}, 0, 2'000'003));
  }
  if (me == failing) {
    transport.abort({me, "2F5", "the sum is not a number"});
    transport.abort({me, "2F6", "the second call tells nothing"});
    verify(!transport.aborted(), "aborted() tells of other ranks only");
  } else {
    Waiting waiting(Idle::nap);
    const Seconds since = steady_seconds();
    std::optional<Abort> abort;
    while (!(abort = transport.aborted())) {
      verify(!transport.test(messages.back().request()), "a message came that nobody sent");
      verify(steady_seconds() - since < battery_patience, "the abort did not arrive");
      waiting();
    }
    for (int again = 0; again < 2; ++again) {
      verify(abort.has_value(), "an abort stays once it was seen");
      verify(abort->rank == failing, text("rank ", abort->rank, " did not abort"));
      verify(abort->action == "2F5", "another action: " + abort->action);
      verify(abort->reason == "the sum is not a number", "another reason: " + abort->reason);
      abort = transport.aborted();
    }
  }
  for (Message& message : messages) transport.cancel(message.request());
  for (Message& message : messages) transport.cancel(message.request());  // nothing left to cancel
}

}  // namespace heddle::test
