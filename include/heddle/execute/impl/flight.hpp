// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Flight: the messages and moves that an Executor has begun.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/internal/program_steps.hpp>
#include <heddle/execute/mover.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0::impl {

/// The messages and moves of a Program that an Executor has begun: by port, in the order of the
/// list, those that are complete before those that are not. It also holds the stamps of a recorded
/// pass, because the end of a message is seen here.
///
/// `record` says whether the pass is recorded, and `at` at which step it stands, for errors.
class Flight {
 public:
  /// Prepares for the ports of `program`, of which the transport carries the messages and `mover`
  /// performs the moves. It refers to the program, the transport and the mover.
  Flight(const Program& program, const TransportRef& transport, const MoverRef& mover)
      : m_program(&program), m_ports(program.ports.size()) {
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      const Program::Port& port = program.ports[p];
      if (port.progress != nullptr) continue;
      m_ports[p].slots = 2 * std::size_t{port.messages};
      if (port.mover)
        m_ports[p].moves = mover.open(m_ports[p].slots);
      else
        m_ports[p].messages = transport.open(m_ports[p].slots);
      m_moves = m_moves || port.mover;
      m_posts = true;
    }
  }

  /// Returns true if any port has messages or moves; the others show the progress of a rank that
  /// shares memory.
  [[nodiscard]] bool posts() const noexcept { return m_posts; }

  /// Returns the stamps, one per step of a recorded pass.
  [[nodiscard]] std::span<Stamp> stamps() noexcept { return m_stamps; }
  [[nodiscard]] std::span<const Stamp> stamps() const noexcept { return m_stamps; }
  /// Makes room for the stamps of recorded passes, or drops them.
  void record(bool on) { m_stamps.resize(on ? m_program->size() : 0); }

  /// Notes that a pass begins.
  void begin() noexcept {
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      Pending& port = m_ports[p];
      port.before = std::exchange(port.base, port.posted);
      // The progress of another rank counts as posted from the begin.
      if (m_program->ports[p].progress != nullptr) port.posted += m_program->ports[p].messages;
    }
  }

  /// Returns how many messages of its port, since the first pass, must be complete before `wait`
  /// ends. The first pass has no previous one: nothing is posted there, so nothing is awaited.
  [[nodiscard]] std::uint64_t needed(const Program::Wait& wait) const noexcept {
    const Pending& port = m_ports[wait.port];
    return wait.carried ? std::min(port.before + wait.messages, port.base)
                        : port.base + wait.messages;
  }

  /// Returns how many messages of the port must be complete before another can begin. The messages
  /// of two passes fit: if the next pass does not wait for them, the oldest must complete first.
  [[nodiscard]] std::uint64_t needed_to_start(std::size_t number) const noexcept {
    const Pending& port = m_ports[number];
    return port.posted < port.slots ? 0 : port.posted - port.slots + 1;
  }

  /// Returns how many messages of the port have begun.
  [[nodiscard]] std::uint64_t posted(std::size_t number) const noexcept {
    return m_ports[number].posted;
  }
  /// Returns how many of them were seen complete.
  [[nodiscard]] std::uint64_t done(std::size_t number) const noexcept {
    return m_ports[number].done;
  }

  /// Begins the message or move of step `i`, for which its port has room.
  template <bool record>
  void start(std::size_t i) {
    const Program::Step& step = m_program->steps[i];
    const Program::Port& port = m_program->ports[step.port];
    Pending& pending = m_ports[step.port];
    const BoundUse& use = m_program->uses[step.first_use];
    const std::size_t slot = pending.posted % pending.slots;
    if (port.mover) [[unlikely]]
      start_move(i, slot);
    else if (port.sends)
      pending.messages->send(slot, port.peer, port.lane, use.data, use.bytes);
    else
      pending.messages->receive(slot, port.peer, port.lane, use.data, use.bytes);
    if constexpr (record) {
      pending.step_of.resize(pending.slots);
      pending.step_of[slot] = static_cast<std::uint32_t>(i);
    }
    ++pending.posted;
  }

  /// Tests the next message of a port once. Returns true if it is complete, or if the first
  /// `messages` of the port are. Otherwise it polls other ports, because other ranks may wait for
  /// their messages.
  template <bool record>
  bool poll(std::size_t number, std::uint64_t messages, std::size_t at) {
    Pending& port = m_ports[number];
    if (const ProgressCounter* const progress = m_program->ports[number].progress) {
      port.done = progress->load(std::memory_order_acquire);
      if (port.done >= messages) return true;
      if (m_posts) poll_others<record>(at);
      return false;
    }
    if (port.moves) [[unlikely]]
      return poll_port_of_moves<record>(number, messages, at);
    const std::size_t slot = port.done % port.slots;
    if (!port.messages->test(slot)) {
      if (m_moves) poll_all_moves<record>(at);
      if constexpr (record) poll_all_except<true>(number);
      return false;
    }
    mark_complete<record>(port, slot);
    return true;
  }

  /// Tests messages port by port, until it finds one that is not complete. A transport may need
  /// calls about an incomplete message to carry it (an MPI without a thread of its own does), and a
  /// rank that computes for a long time must not hold up the ranks that send to it. An incomplete
  /// move of a Mover says nothing about messages, so it does not end the search.
  template <bool record>
  void poll_others(std::size_t at) {
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      Pending& port = m_ports[m_next_port];
      if (port.moves) [[unlikely]]
        poll_moves<record>(m_next_port, at);
      else
        while (port.done < port.posted && port.slots != 0) {
          const std::size_t slot = port.done % port.slots;
          if (!port.messages->test(slot)) return;
          mark_complete<record>(port, slot);
        }
      m_next_port = m_next_port + 1 < m_ports.size() ? m_next_port + 1 : 0;
    }
  }

  /// Tests the messages of all ports except `number`, which the rank awaits. So the recorded end
  /// of a message does not depend on a later message of another port.
  template <bool record>
  [[gnu::noinline]] void poll_all_except(std::size_t number) {
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      Pending& port = m_ports[p];
      if (p == number || port.moves || port.slots == 0) continue;
      while (port.done < port.posted) {
        const std::size_t slot = port.done % port.slots;
        if (!port.messages->test(slot)) break;
        mark_complete<record>(port, slot);
      }
    }
  }

  /// Tests the messages of all ports.
  template <bool record>
  void poll_all() {
    poll_all_except<record>(m_ports.size());
  }

  /// Cancels all that is not complete.
  void cancel() {
    for (Pending& port : m_ports)
      for (; port.slots != 0 && port.done < port.posted; ++port.done) {
        const std::size_t slot = port.done % port.slots;
        port.moves ? port.moves->cancel(slot) : port.messages->cancel(slot);
      }
  }

  /// Returns true if anything is not complete.
  [[nodiscard]] bool pending() const noexcept {
    return std::ranges::any_of(m_ports,
                               [](const Pending& port) { return port.done < port.posted; });
  }

  /// Returns how many messages of the port come before the first incomplete one, in its pass: this
  /// pass or the one before.
  [[nodiscard]] std::uint64_t ordinal(std::size_t number) const noexcept {
    const Pending& port = m_ports[number];
    return port.done - (port.done >= port.base ? port.base : port.before);
  }

  /// A step of the program, and the pass in which it began.
  struct Oldest {
    std::size_t step;       ///< the size of the program if there is none
    bool previous = false;  ///< true if it began in the pass before this one
  };
  /// Returns the first step whose message or move is not complete.
  [[nodiscard]] Oldest oldest() const {
    Oldest found{m_program->size()};
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      const Pending& port = m_ports[p];
      if (port.slots == 0 || port.done >= port.posted) continue;
      const bool previous = port.done < port.base;
      if (found.previous && !previous) continue;
      const std::size_t step = step_of_port(*m_program, p, ordinal(p));
      found = {previous == found.previous ? std::min(found.step, step) : step, previous};
    }
    return found;
  }

 private:
  /// The messages or moves of one port. The counters only grow, and only this thread writes them.
  struct Pending {
    std::size_t slots = 0;  ///< the size of the ring: message k is in slot k mod slots
    std::unique_ptr<MessageRing> messages;  ///< the ring of a port of messages
    std::unique_ptr<MoveRing> moves;        ///< the ring of a port of a Mover
    std::vector<std::uint32_t> step_of;     ///< the Program's step that posted it; recording only
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    std::uint64_t base = 0;    ///< `posted` at the begin of this pass
    std::uint64_t before = 0;  ///< `posted` at the begin of the previous pass
  };

  [[gnu::noinline]] void start_move(std::size_t i, std::size_t slot) {
    const Program::Step& step = m_program->steps[i];
    const auto [from, to] = move_ends(*m_program, i);
    m_ports[step.port].moves->start(slot, m_program->ports[step.port].lane, from, to,
                                    m_program->uses[step.first_use].bytes);
  }

  /// Does what poll() does, for a port of moves.
  template <bool record>
  [[gnu::noinline]] bool poll_port_of_moves(std::size_t number, std::uint64_t moves,
                                            std::size_t at) {
    const Pending& port = m_ports[number];
    poll_moves<record>(number, at);
    if (port.done < moves) poll_others<record>(at);  // of messages, for which others may wait
    return port.done >= moves;
  }

  /// Tests the moves of all ports.
  template <bool record>
  [[gnu::noinline]] void poll_all_moves(std::size_t at) {
    for (std::size_t p = 0; p < m_ports.size(); ++p)
      if (m_ports[p].moves) poll_moves<record>(p, at);
  }

  /// Tests the moves of a port, until it finds one that is not complete.
  template <bool record>
  [[gnu::noinline]] void poll_moves(std::size_t number, std::size_t at) {
    Pending& port = m_ports[number];
    while (port.done < port.posted) {
      const std::size_t slot = port.done % port.slots;
      if (!test_move(number, slot, at)) return;
      mark_complete<record>(port, slot);
    }
  }

  /// Returns true if the move in `slot` of a port is complete. Throws the error of the Mover, with
  /// the place of the move.
  [[nodiscard]] bool test_move(std::size_t number, std::size_t slot, std::size_t at) {
    try {
      return m_ports[number].moves->test(slot);
    } catch (const format_error& error) {
      throw format_error(move_failed(*m_program, at, number, ordinal(number), error.complaint()));
    } catch (const communication_error& error) {
      throw communication_error(
          move_failed(*m_program, at, number, ordinal(number), error.complaint()));
    }
  }

  /// Counts the message or the move in `slot` as complete.
  template <bool record>
  void mark_complete(Pending& port, std::size_t slot) {
    ++port.done;
    if constexpr (record) m_stamps[port.step_of[slot]].end = Clock::now();
  }

  const Program* m_program;
  std::vector<Pending> m_ports;
  std::vector<Stamp> m_stamps;
  bool m_posts = false;
  bool m_moves = false;         ///< true if any port has moves
  std::size_t m_next_port = 0;  ///< the port at which poll_others() goes on
};

}  // namespace heddle::inline v0::impl
