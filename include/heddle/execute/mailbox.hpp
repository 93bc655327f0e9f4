// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Mailbox: messages of any size from whichever rank sends first, over any Transport. It serves
/// loops that decide while they run who works on what.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/sendable.hpp>
#include <heddle/execute/transport.hpp>

namespace heddle::inline v0 {

/// How a mailbox sends and waits.
struct MailboxOptions {
  const char* doing = "its mailbox";          ///< what this rank does, for errors of other ranks
  ExecuteOptions wait = {.idle = Idle::nap};  ///< how this rank waits for a letter
  Lane lane = control_lane;                   ///< the lane of all messages
};

/// A message that a mailbox has received.
struct Letter {
  Rank from;           ///< the sender
  bool last = false;   ///< the sender sends nothing more
  MessageBytes bytes;  ///< the content
};

/// A mailbox exchanges letters with other ranks, its peers, each of which has a mailbox with this
/// rank among its peers. Letters from one peer arrive in their order. Letters from several peers
/// arrive as they come, and no peer that has sent waits for more than one letter of each other.
///
/// A transport receives messages of known size from a known rank, and cannot cancel a receive. So
/// a letter is a header of 64 bytes, which holds up to `short_bytes` of its content, and behind it
/// the content if it is longer. One receive is open per peer. Each side sends each peer a last
/// letter, so that no receive is left open: call close() at the end. A mailbox that is destroyed
/// before close() was called tells all ranks that this one failed.
///
/// One thread uses it. Its errors are those of the transport, and communication_error if another
/// rank has aborted or if a wait is longer than the watchdog's time.
template <Transport T>
class Mailbox {
 public:
  /// The most bytes of a letter that is sent as one message.
  static constexpr std::size_t short_bytes = 48;

  /// Opens a mailbox. The transport must outlive it.
  /// @throws contract_error if a peer is this rank, is no rank of the transport or appears twice,
  ///         or if an option is invalid. The other ranks throw communication_error then, and the
  ///         transport cannot be used again.
  Mailbox(T& transport, std::span<const Rank> peers, const MailboxOptions& options = {})
      : m_transport(transport), m_options(options), m_peers(peers.size()), m_open(peers.size()) {
    abort_on_error(transport, "opening a mailbox", [&] { expect_peers(peers); });
    for (std::size_t i = 0; i < peers.size(); ++i) m_peers[i].rank = peers[i];
    for (Peer& peer : m_peers) expect_header(peer);
  }
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Closes the mailbox. If close() was not called, this rank has failed, and the others are told.
  ~Mailbox() {
    if (!m_closed) give_up("it ended before its last letter");
  }

  /// Returns an empty message for send(). It may have the memory of an earlier one, so that many
  /// short letters are sent without an allocation each.
  [[nodiscard]] MessageBytes blank() {
    if (m_blank.empty()) return {};
    MessageBytes message = std::move(m_blank.back());
    m_blank.pop_back();
    return message;
  }

  /// Takes a message that is not needed any more, such as the content of a letter, for blank(). Of
  /// those it keeps about as many as were in flight at a time.
  void give_back(MessageBytes&& message) {
    constexpr std::size_t least = 8;
    impl::make_empty(message);
    if (message.capacity() > 0 &&
        m_blank.size() < least + m_peers.size() + m_sending.size() + m_spare.size())
      m_blank.push_back(std::move(message));
  }

  /// Starts a letter to `peer` and returns at once. The letter is sent while this rank calls other
  /// functions of the mailbox.
  /// @throws contract_error if `peer` is no peer, or if its last letter was sent.
  void send(Rank peer, MessageBytes bytes) { send(peer, std::move(bytes), false); }

  /// Starts the last letter to `peer`.
  /// @throws contract_error as send() does.
  void send_last(Rank peer, MessageBytes bytes) { send(peer, std::move(bytes), true); }

  /// Returns a letter that has arrived, if there is one.
  [[nodiscard]] std::optional<Letter> poll() {
    settle();
    for (std::size_t i = 0; i < m_peers.size(); ++i) {
      const std::size_t at = (m_next + i) % m_peers.size();
      Peer& peer = m_peers[at];
      if (peer.ended || !arrived(peer)) continue;
      m_next = at + 1;  // the next peer has precedence in the next call
      Letter letter{peer.rank, peer.header.last != 0, std::exchange(peer.content, {})};
      peer.ended = letter.last;
      if (peer.ended) {
        --m_open;
      } else {
        expect_header(peer);
      }
      return letter;
    }
    return std::nullopt;
  }

  /// Waits for a letter, and returns it.
  /// @throws contract_error if every peer has sent its last letter.
  [[nodiscard]] Letter receive() {
    expects(!all_ended(), [&] {
      return ErrorInfo{"heddle::Mailbox::receive", "every peer has sent its last letter",
                       text(m_peers.size(), " peers"), "ask all_ended() before"};
    });
    return *wait(std::nullopt);
  }

  /// Waits for a letter until the time `until` in steady_seconds().
  [[nodiscard]] std::optional<Letter> receive_until(Seconds until) { return wait(until); }

  /// Returns true if every peer has sent its last letter.
  [[nodiscard]] bool all_ended() const noexcept { return m_open == 0; }

  /// Waits until all letters that this rank has started are sent.
  void flush() {
    const auto ready = [&] {
      settle();
      return m_sending.empty();
    };
    const auto where = [&] { return place(); };
    const auto stuck = [&] { return complaint("a letter is not taken"); };
    impl::await(m_transport, ready, m_options.wait.idle, m_options.wait.watchdog, where, stuck);
  }

  /// Sends an empty last letter to each peer that has had none, drops all letters until the last
  /// one of every peer, and waits until all letters are sent. The transport then has no messages of
  /// this mailbox.
  void close() {
    for (Peer& peer : m_peers)
      if (!peer.told) send_last(peer.rank, {});
    while (!all_ended()) static_cast<void>(receive());
    flush();
    m_closed = true;
  }

  /// Tells all ranks that this one failed for `reason`, and ends all messages. The mailbox and the
  /// transport cannot be used again.
  void give_up(const char* reason) noexcept {
    if (std::exchange(m_closed, true)) return;
    impl::tell_failure(m_transport, m_options.doing, reason);
    try {
      for (Peer& peer : m_peers)
        if (!peer.ended) m_transport.cancel(peer.request);
      for (Sending& sending : m_sending) {
        m_transport.cancel(sending.header_request);
        m_transport.cancel(sending.content_request);
      }
    } catch (...) {  // the error of the caller is the one to report
    }
  }

 private:
  struct Header {
    std::uint64_t bytes = 0;
    std::uint64_t last = 0;
    std::array<std::byte, short_bytes> content{};
  };
  static_assert(sizeof(Header) == 64);

  struct Peer {
    Rank rank;
    Header header;
    MessageBytes content;
    typename T::Request request;
    bool content_comes = false;  ///< the request is that of the content
    bool ended = false;          ///< it has sent its last letter
    bool told = false;           ///< its last letter from here was started
  };

  struct Sending {
    Header header;
    MessageBytes content;
    typename T::Request header_request;
    typename T::Request content_request;
  };

  /// Checks the arguments of the constructor.
  void expect_peers(std::span<const Rank> peers) const {
    constexpr const char* where = "heddle::Mailbox";
    expects(m_options.doing != nullptr, [] {
      return ErrorInfo{where, "MailboxOptions::doing is a null pointer"};
    });
    impl::expect_valid(m_options.wait, where);
    for (const Rank rank : peers)
      expects(rank != m_transport.rank() && +rank < static_cast<std::size_t>(m_transport.size()) &&
                  std::count(peers.begin(), peers.end(), rank) == 1,
              [&] {
                return ErrorInfo{where, "each peer must be another rank, and named once",
                                 text("peer ", rank, " of rank ", m_transport.rank(),
                                      ", there are ", m_transport.size(), " ranks")};
              });
  }

  void expect_header(Peer& peer) {
    peer.content_comes = false;
    peer.request = m_transport.receive(peer.rank, m_options.lane,
                                       reinterpret_cast<std::byte*>(&peer.header), sizeof(Header));
  }

  /// Returns true if the whole letter of a peer is here.
  bool arrived(Peer& peer) {
    if (!m_transport.test(peer.request)) return false;
    if (peer.content_comes) return true;
    peer.content = blank();
    peer.content.resize(static_cast<std::size_t>(peer.header.bytes));
    if (peer.content.size() <= short_bytes) {
      std::copy_n(peer.header.content.begin(), peer.content.size(), peer.content.begin());
      return true;
    }
    peer.content_comes = true;
    peer.request = m_transport.receive(peer.rank, m_options.lane, peer.content.data(),
                                       Bytes{peer.content.size()});
    return m_transport.test(peer.request);
  }

  void send(Rank to, MessageBytes bytes, bool last) {
    const auto peer = std::find_if(m_peers.begin(), m_peers.end(),
                                   [&](const Peer& other) { return other.rank == to; });
    expects(peer != m_peers.end() && !peer->told, [&] {
      return ErrorInfo{"heddle::Mailbox::send", "a letter needs a peer that expects more letters",
                       peer == m_peers.end() ? text("rank ", to, " is no peer")
                                             : text("rank ", to, " was sent its last letter")};
    });
    peer->told = last;
    if (m_spare.empty()) m_spare.emplace_back();
    m_sending.splice(m_sending.end(), m_spare, m_spare.begin());
    Sending& sending = m_sending.back();
    sending.content = std::move(bytes);
    sending.header.bytes = sending.content.size();
    sending.header.last = last ? 1 : 0;
    const bool is_short = sending.content.size() <= short_bytes;
    if (is_short)
      std::copy(sending.content.begin(), sending.content.end(), sending.header.content.begin());
    sending.header_request = m_transport.send(
        to, m_options.lane, reinterpret_cast<const std::byte*>(&sending.header), sizeof(Header));
    sending.content_request = {};
    if (!is_short)
      sending.content_request = m_transport.send(to, m_options.lane, sending.content.data(),
                                                 Bytes{sending.content.size()});
  }

  /// Frees the memory of letters that are sent.
  void settle() {
    for (auto it = m_sending.begin(); it != m_sending.end();) {
      const auto sending = it++;
      if (!m_transport.test(sending->header_request) || !m_transport.test(sending->content_request))
        continue;
      give_back(std::exchange(sending->content, {}));
      m_spare.splice(m_spare.begin(), m_sending, sending);
    }
  }

  std::optional<Letter> wait(std::optional<Seconds> until) {
    std::optional<Letter> letter;
    const auto ready = [&] {
      letter = poll();
      return letter.has_value() || (until && steady_seconds() >= *until);
    };
    const auto where = [&] { return place(); };
    const auto stuck = [&] { return complaint("no letter arrives"); };
    impl::await(m_transport, ready, m_options.wait.idle, m_options.wait.watchdog, where, stuck);
    return letter;
  }

  [[nodiscard]] std::string place() const {
    return text("heddle::Mailbox, rank ", m_transport.rank(), ", ", m_options.doing);
  }

  [[nodiscard]] ErrorInfo complaint(const char* what) const {
    std::string waits = text("watchdog after ", m_options.wait.watchdog, " s; open:");
    for (const Peer& peer : m_peers)
      if (!peer.ended) waits += text(" rank ", peer.rank);
    return {place(), what, std::move(waits), "set a longer watchdog if the others may be silent"};
  }

  T& m_transport;
  MailboxOptions m_options;
  std::vector<Peer> m_peers;
  std::list<Sending> m_sending;       ///< in the order of their start
  std::list<Sending> m_spare;         ///< kept for later letters
  std::vector<MessageBytes> m_blank;  ///< empty, with memory for later messages
  std::size_t m_open;                 ///< peers that have not sent their last letter
  std::size_t m_next = 0;             ///< the peer that is asked first
  bool m_closed = false;
};

}  // namespace heddle::inline v0
