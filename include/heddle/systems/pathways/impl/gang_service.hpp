// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GangLinks and GangScheduler: the control messages of an island, and the rank that orders its
/// programs.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/systems/pathways/gang_order.hpp>
#include <heddle/systems/pathways/impl/gang_frame.hpp>
#include <heddle/systems/pathways/impl/gang_walker.hpp>

namespace heddle::inline v0::systems::impl {

/// The frames between every rank and rank 0. Messages of a rank to itself stay here.
class GangLinks {
 public:
  static constexpr Rank scheduler = 0;

  explicit GangLinks(MpiTransport& transport) : m_transport(&transport) {
    if (transport.rank() == scheduler) {
      for (int r = 1; r < transport.size(); ++r) listen(Rank{r}, up);
    } else {
      listen(scheduler, down);
    }
  }

  /// Sends a frame to the scheduler, or from it to `peer`.
  void send(Rank peer, const GangFrame& frame) {
    m_dispatches += frame.kind == GangFrame::Kind::run && frame.nodes > 0;
    if (peer == m_transport->rank()) {
      m_own.push_back(frame);
      return;
    }
    Message& message = m_sends.emplace_back();
    message.frame = std::make_unique<GangFrame>(frame);
    message.request =
        m_transport->send(peer, Lane{m_transport->rank() == scheduler ? down : up},
                          reinterpret_cast<const std::byte*>(message.frame.get()), sizeof frame);
  }

  /// Calls `visit(rank, frame)` for every frame that has arrived. Returns true if there was one.
  template <class Visit>
  bool poll(Visit&& visit) {
    std::erase_if(m_sends, [&](Message& send) { return m_transport->test(send.request); });
    bool any = false;
    for (; !m_own.empty(); any = true) {
      const GangFrame frame = m_own.front();
      m_own.pop_front();
      visit(m_transport->rank(), frame);
    }
    for (Message& receive : m_receives) {
      while (receive.listens && m_transport->test(receive.request)) {
        const GangFrame frame = *receive.frame;
        receive.listens = frame.kind != GangFrame::Kind::end && frame.kind != GangFrame::Kind::bye;
        if (receive.listens) post(receive);
        any = true;
        visit(receive.peer, frame);
      }
    }
    return any;
  }

  /// Returns the number of frames that told a rank to run calls.
  [[nodiscard]] std::uint64_t dispatches() const noexcept { return m_dispatches; }
  /// Returns true if no frame is in flight and none can come.
  [[nodiscard]] bool closed() const {
    for (const Message& receive : m_receives)
      if (receive.listens) return false;
    return m_sends.empty() && m_own.empty();
  }
  /// Ends all messages after an error.
  void abort() noexcept {
    try {
      for (Message& message : m_receives)
        if (message.listens) m_transport->cancel(message.request);
      for (Message& message : m_sends) m_transport->cancel(message.request);
    } catch (...) {  // the first error is the one to report
    }
  }

 private:
  static constexpr std::uint32_t up = 0, down = 1;
  struct Message {
    Rank peer = {};
    std::uint32_t lane = 0;
    bool listens = false;
    std::unique_ptr<GangFrame> frame = {};
    MpiTransport::Request request = {};
  };

  void listen(Rank peer, std::uint32_t lane) {
    Message& message = m_receives.emplace_back();
    message.peer = peer;
    message.lane = lane;
    message.listens = true;
    message.frame = std::make_unique<GangFrame>();
    post(message);
  }
  void post(Message& message) {
    message.request =
        m_transport->receive(message.peer, Lane{message.lane},
                             reinterpret_cast<std::byte*>(message.frame.get()), sizeof(GangFrame));
  }

  MpiTransport* m_transport;
  std::deque<Message> m_sends;
  std::deque<Message> m_receives;
  std::deque<GangFrame> m_own;
  std::uint64_t m_dispatches = 0;
};

/// Orders the programs of all clients, and sends each of them to all ranks. At most `ahead`
/// programs are dispatched and not yet run by all ranks.
class GangScheduler {
 public:
  GangScheduler(GangLinks& links, int ranks, GangPolicy policy,
                const std::vector<GangClientInfo>& clients, std::size_t ahead)
      : m_links(&links),
        m_ranks(ranks),
        m_ahead(ahead),
        m_order(policy, weights_of(clients)),
        m_waiting(clients.size()),
        m_open(clients.size()) {}

  /// Takes a frame that has come to the scheduler.
  void take(const GangFrame& frame) {
    if (frame.kind == GangFrame::Kind::bye) ++m_left;
    if (frame.kind == GangFrame::Kind::submit) {
      m_order.submit(frame.client);
      m_waiting[frame.client].push_back(frame);
    }
    if (frame.kind == GangFrame::Kind::done) {
      const auto found = m_flying.find(frame.number);
      if (--found->second == 0) m_flying.erase(found);
    }
  }

  /// Dispatches what may run. Ends the service when all clients have ended.
  void dispatch() {
    while (m_flying.size() < m_ahead) {
      const auto client = m_order.next();
      if (!client) break;
      GangFrame frame = m_waiting[*client].front();
      m_waiting[*client].pop_front();
      frame.kind = GangFrame::Kind::run;
      frame.number = m_number++;
      m_flying[frame.number] = m_ranks;
      m_open -= frame.forget;
      to_all(frame);
      m_programs += frame.nodes > 0;
    }
    if (m_open == 0 && m_flying.empty() && m_order.waiting() == 0 && !std::exchange(m_ended, true))
      to_all({.kind = GangFrame::Kind::end});
  }

  /// Returns true once every rank has left.
  [[nodiscard]] bool over() const noexcept { return m_left == m_ranks; }
  /// Returns the number of dispatched programs that have calls.
  [[nodiscard]] std::uint64_t programs() const noexcept { return m_programs; }

 private:
  [[nodiscard]] static std::vector<std::uint32_t> weights_of(
      const std::vector<GangClientInfo>& clients) {
    std::vector<std::uint32_t> weights;
    for (const GangClientInfo& client : clients) weights.push_back(client.weight);
    return weights;
  }
  void to_all(const GangFrame& frame) {
    for (int r = 0; r < m_ranks; ++r) m_links->send(Rank{r}, frame);
  }

  GangLinks* m_links;
  int m_ranks;
  std::size_t m_ahead;
  GangOrder m_order;
  std::vector<std::deque<GangFrame>> m_waiting;  ///< by client
  std::map<std::uint64_t, int> m_flying;         ///< the ranks that have not run a program yet
  std::size_t m_open;                            ///< clients that have not ended
  std::uint64_t m_number = 0;
  std::uint64_t m_programs = 0;
  int m_left = 0;
  bool m_ended = false;
};

}  // namespace heddle::inline v0::systems::impl
