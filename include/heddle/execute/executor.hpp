// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Executor: walks a Program in the thread of the caller. It calls a handler for computations and a
/// transport for moves.

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/impl/locate_hang.hpp>
#include <heddle/execute/impl/program_steps.hpp>
#include <heddle/execute/mover.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/step_sizes.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/list_place.hpp>
#include <heddle/schedule/monitor.hpp>

namespace heddle::inline v0 {

/// Options of an Executor: how it waits, and what it records.
struct ExecuteOptions {
  Idle idle = Idle::yield;  ///< how far a waiting rank gives up its core
  bool record = false;      ///< stamps every action, at about 10 ns each
  Seconds watchdog = 120;   ///< the longest wait for a message, in seconds; 0: no limit
  /// Receives a line for each abort, and the lines that a model reports when its Runner is made,
  /// such as the path of messages and the BLAS library (see Stages). It may be empty.
  std::function<void(std::string_view)> log = {};
  /// Performs moves between tiers while the rank computes, see Mover. These are the moves in local
  /// queues that have nothing but moves within the rank, at least one of them between tiers. If
  /// there is no mover, such a move is a task of the handler, at its place in the list.
  MoverRef mover = {};
  /// After a hang, the longest wait for the other ranks to tell how far they have come, in seconds.
  Seconds grace = 1;
};

/// The time in which a step of the Program took place. The `end` of a send, a receive or a move of
/// a Mover is the time at which its completion was seen, at the latest before the first action that
/// needed it.
struct Stamp {
  Ticks start = 0;  ///< before the action
  Ticks end = 0;    ///< after it
};

/// Runs a Program again and again over one transport.
///
/// Actions run in list order in the calling thread. The executor waits for a move just before the
/// first action that conflicts with it, possibly in the next step() (see Program). It makes
/// progress on moves after every other action, and `drain` completes all of them. With
/// ExecuteOptions::mover this also holds for moves between tiers of the rank.
///
/// If the handler throws, the other ranks are told and throw a communication_error that names the
/// rank and its action. The same happens if a message does not arrive within the watchdog's time,
/// if a rank that shares memory makes no progress for as long, or if a move between tiers fails.
/// The error of such a move is of the type that the Mover throws, format_error or
/// communication_error, and names the move, its parts and the action that waits for it. After an
/// error the executor and its transport cannot be used again.
///
/// If a rank waits for longer than its watchdog, all ranks tell each other how far they have come
/// in the list, if the transport ReportsPlaces. The communication_error of each rank then also says
/// where the step hangs, and names ranks that do not answer within ExecuteOptions::grace.
template <Transport T>
class Executor {
 public:
  /// Prepares to run `program` over `transport`, to which the executor refers.
  /// @throws contract_error if an action of the handler uses a buffer that the mover holds, such as
  ///         a move between tiers that shares its queue with other work.
  Executor(Program program, T& transport, ExecuteOptions options = {})
      : m_program(std::move(program)), m_transport(&transport), m_options(std::move(options)) {
    if (m_options.mover)
      impl::expect_mover_lanes(m_program, m_options.mover);
    else
      impl::leave_moves_to_handler(m_program);
    m_ports.resize(m_program.ports.size());
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      if (m_program.ports[p].progress != nullptr) continue;
      m_ports[p].slots = 2 * std::size_t{m_program.ports[p].messages};
      if (m_program.ports[p].mover)
        m_ports[p].moves = m_options.mover.open(m_ports[p].slots);
      else
        m_ports[p].requests.resize(m_ports[p].slots);
      m_moves = m_moves || m_program.ports[p].mover;
      m_posts = true;
    }
    if (m_options.record) m_stamps.resize(m_program.size());
  }

  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  /// Completes the messages in flight, as drain() does. If an exception destroys the executor, the
  /// other ranks are told instead. Errors of this last wait are not reported.
  ~Executor() {
    if (m_failed || (!pending() && !unfinished())) return;
    if (std::uncaught_exceptions() > m_exceptions) {
      fail("an exception left its scope");
      return;
    }
    if (unfinished()) {
      fail("a pass was left unfinished");
      return;
    }
    try {
      drain();
    } catch (const std::exception&) {  // the others are told
    }
  }

  /// Makes one pass over the list. If it is recorded, it ends with drain(), so that every stamp is
  /// set.
  void step(Handler handler) {
    begin();
    reported([&] {
      m_options.record ? walk<true, true>(handler) : walk<false, true>(handler);
      if (m_options.record) complete_all<true>();
    });
  }

  /// Begins a pass over the list, which advance() and finish() perform in pieces.
  void begin() noexcept {
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      Pending& port = m_ports[p];
      port.before = std::exchange(port.base, port.posted);
      // The progress of another rank counts as posted from the begin.
      if (m_program.ports[p].progress != nullptr) port.posted += m_program.ports[p].messages;
    }
    m_come = m_program.progress_per_step * m_passes++;
    m_at = 0;
  }

  /// Performs the part of the pass that needs no wait for another rank. Returns true once the pass
  /// is complete and no message is in flight; otherwise call it again. Only finish() has a
  /// watchdog.
  [[nodiscard]] bool advance(Handler handler) {
    return reported([&] {
      const bool done =
          (m_options.record ? walk<true, false>(handler) : walk<false, false>(handler)) &&
          complete_all<false>();
      if (!done && ++m_polls % 64 == 0) {
        if (const auto abort = m_transport->aborted()) throw lost(place(), *abort);
      }
      return done;
    });
  }

  /// Performs the rest of the pass that begin() began and completes every message.
  void finish(Handler handler) {
    reported([&] {
      m_options.record ? walk<true, true>(handler) : walk<false, true>(handler);
      complete_all<true>();
    });
  }

  /// Completes every message that is still in flight.
  /// @throws contract_error between begin() and the end of its pass.
  void drain() {
    expects(!unfinished(), [&] {
      return ErrorInfo{
          place(), "the pass that begin() started is not complete", {}, "call finish() first"};
    });
    m_at = m_program.size();
    reported([&] { complete_all<true>(); });
  }

  /// Tells the other ranks that this one failed while `doing`, for `reason`, unless another rank
  /// failed first, and cancels all messages. The executor cannot be used again. Call it for
  /// failures outside of step(), which aborts itself.
  void abort(const std::string& doing, const char* reason) noexcept {
    m_failed = true;
    // The log comes first, because the calls below may not return: an MPI can end a process that
    // sends to one that has ended, and a cancel can wait for a rank that no longer answers.
    try {
      if (m_options.log) m_options.log(reason);
    } catch (...) {  // the first error is the one to report
    }
    try {
      const std::optional<Abort> heard = m_transport->aborted();
      const bool hangs = heard ? heard->place.has_value() : m_stuck;
      if (hangs) note_arrived();
      if (!heard)
        m_transport->abort(
            {m_program.rank, doing, reason, hangs ? std::optional(list_place()) : std::nullopt});
      if (hangs) locate();
    } catch (...) {  // likewise
    }
    try {
      for (Pending& port : m_ports)
        for (; port.slots != 0 && port.done < port.posted; ++port.done) {
          const std::size_t slot = port.done % port.slots;
          port.moves ? port.moves->cancel(slot) : m_transport->cancel(port.requests[slot]);
        }
    } catch (...) {  // likewise
    }
  }

  /// Sets how much of every part the steps from the next one on use; see use_bytes(). Messages in
  /// flight keep their sizes. All ranks must set the same sizes.
  /// @throws contract_error as use_bytes() does, and between begin() and the end of its pass. The
  ///         other ranks are not told.
  void sizes(const UsedBytes& used) {
    expects(!unfinished(), [&] {
      return ErrorInfo{place(), "sizes change between steps only", {}, "call finish() first"};
    });
    use_bytes(m_program, used);
  }

  /// Binds `buffer`, which began at `from`, to memory that begins at `to`, for all later steps. No
  /// message may be in flight.
  void rebind(BufferId buffer, const std::byte* from, std::byte* to) noexcept {
    for (BoundUse& use : m_program.uses)
      if (use.buffer == buffer && use.data != nullptr) use.data = to + (use.data - from);
  }

  /// Replaces the options, except for `mover`, and for `record`, which record() changes.
  void options(ExecuteOptions options) noexcept {
    options.record = m_options.record;
    options.mover = m_options.mover;
    m_options = std::move(options);
  }

  /// Returns the program that it runs.
  [[nodiscard]] const Program& program() const noexcept { return m_program; }
  /// Returns where the step hung, after an error by a watchdog; see find_hang().
  [[nodiscard]] std::span<const Finding> hang() const noexcept { return m_hang; }
  /// Returns the stamps of the last pass, one per step of the Program. Empty without recording.
  [[nodiscard]] std::span<const Stamp> stamps() const noexcept { return m_stamps; }
  /// Switches recording on or off. It first completes the messages in flight.
  void record(bool on) {
    drain();
    m_options.record = on;
    m_stamps.resize(on ? m_program.size() : 0);
  }

 private:
  /// The messages or moves of one port. The counters only grow, and only this thread writes them.
  struct Pending {
    std::size_t slots = 0;  ///< the size of the ring: message k is in slot k mod slots
    std::vector<typename T::Request> requests;  ///< the ring of a port of messages
    std::unique_ptr<impl::MoveRing> moves;      ///< the ring of a port of a Mover
    std::vector<std::uint32_t> step_of;  ///< the Program's step that posted it; recording only
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    std::uint64_t base = 0;    ///< `posted` at the begin of this step
    std::uint64_t before = 0;  ///< `posted` at the begin of the previous step
  };

  /// Returns what `call` returns. If it throws, the other ranks are told.
  template <class Call>
  auto reported(Call&& call) {
    try {
      return report_on_error(call, [this](const char* reason) { fail(reason); });
    } catch (const communication_error& error) {
      if (m_hang.empty()) throw;
      throw communication_error(impl::with_findings(error.complaint(), m_hang));
    }
  }

  /// Walks from where the pass stands to its end. Returns false if it would have to wait and
  /// `waits` is false.
  template <bool record, bool waits>
  bool walk(const Handler& handler) {
    const std::size_t length = m_program.size();
    Ticks last = record ? Clock::now() : 0;
    for (std::size_t i = m_at; i < length; ++i) {
      m_at = i;
      const Step& step = m_program.steps[i];
      const auto messages = m_program.waits_of(i);
      if (!messages.empty()) {
        for (const Wait& wait : messages) {
          const Pending& port = m_ports[wait.port];
          // The first step has no previous one: nothing is posted there, so nothing is awaited.
          if (!complete<record, waits>(
                  wait.port, wait.carried ? std::min(port.before + wait.messages, port.base)
                                          : port.base + wait.messages))
            return false;
        }
        if constexpr (record) last = Clock::now();
      }
      if (step.does == Step::Does::run) {
        handler(Task(m_program.schedule, step.action, m_program.uses_of(i)));
        if (step.progress != 0) come(step.progress);
        if (m_posts) further<record>();
      } else if (step.does == Step::Does::settle) {
        come(step.progress);
      } else if (!post<record, waits>(i)) {
        return false;
      }
      if constexpr (record) {
        const Ticks now = Clock::now();
        m_stamps[i].start = last;
        if (!step.posts()) m_stamps[i].end = now;
        last = now;
      }
    }
    m_at = length;
    if (m_program.progress != nullptr) come(m_program.progress_per_step);
    return true;
  }

  /// Shows the other ranks how far this one is in the step.
  void come(std::uint32_t progress) noexcept {
    m_program.progress->store(m_come + progress, std::memory_order_release);
  }

  template <bool record, bool waits>
  bool post(std::size_t i) {
    const Step& step = m_program.steps[i];
    const Port& port = m_program.ports[step.port];
    Pending& pending = m_ports[step.port];
    const std::size_t slots = pending.slots;
    // The messages of two steps fit. If the next step does not wait for them, the oldest message
    // must complete first.
    if (pending.posted - pending.done == slots &&
        !complete<record, waits>(step.port, pending.done + 1))
      return false;
    const BoundUse& use = m_program.uses[step.first_use];
    const std::size_t slot = pending.posted % slots;
    if (port.mover) [[unlikely]]
      start_move(i, slot);
    else
      pending.requests[slot] =
          port.sends ? m_transport->send(port.peer, port.lane, use.data, use.bytes)
                     : m_transport->receive(port.peer, port.lane, use.data, use.bytes);
    if constexpr (record) {
      pending.step_of.resize(slots);
      pending.step_of[slot] = static_cast<std::uint32_t>(i);
    }
    ++pending.posted;
    return true;
  }

  [[gnu::noinline]] void start_move(std::size_t i, std::size_t slot) {
    const Step& step = m_program.steps[i];
    const auto [from, to] = impl::move_ends(m_program, i);
    m_ports[step.port].moves->start(slot, m_program.ports[step.port].lane, from, to,
                                    m_program.uses[step.first_use].bytes);
  }

  template <bool record, bool waits>
  bool complete(std::size_t number, std::uint64_t messages) {
    Pending& port = m_ports[number];
    if (const ProgressCounter* const progress = m_program.ports[number].progress) {
      if (port.done >= messages) return true;  // seen before
      const auto reached = [&] {
        port.done = progress->load(std::memory_order_acquire);
        if (port.done >= messages) return true;
        if (m_posts) further<record>();  // others may wait for them meanwhile
        return false;
      };
      return until<waits>(number, reached);
    }
    if (port.moves) [[unlikely]]
      return complete_moves<record, waits>(number, messages);
    while (port.done < messages) {
      const std::size_t slot = port.done % port.slots;
      const auto arrived = [&] {
        if (m_transport->test(port.requests[slot])) return true;
        if (m_moves) further_moves<record>();
        if constexpr (record) note_others<true>(number);
        return false;
      };
      if (!until<waits>(number, arrived)) return false;
      port.requests[slot] = {};
      note<record>(port, slot);
    }
    return true;
  }

  template <bool record, bool waits>
  [[gnu::noinline]] bool complete_moves(std::size_t number, std::uint64_t moves) {
    const Pending& port = m_ports[number];
    return until<waits>(number, [&] {
      note_moves<record>(number);
      if (port.done < moves) further<record>();  // of messages, for which others may wait
      return port.done >= moves;
    });
  }

  /// Returns true once `ready()` does. If `waits` is false, it asks once.
  template <bool waits, class Ready>
  bool until(std::size_t number, Ready&& ready) {
    if constexpr (waits)
      await(
          *m_transport, ready, m_options.idle, m_options.watchdog, [&] { return place(); },
          [&] {
            m_stuck = true;
            return stuck(number);
          });
    return waits || ready();
  }

  /// Notes the messages that are complete, until it finds one that is not. A transport may need
  /// calls about an incomplete message to carry it (an MPI without a thread of its own does), and a
  /// rank that computes for a long time must not hold up the ranks that send to it. An incomplete
  /// move of a Mover says nothing about messages, so the search goes on.
  template <bool record>
  void further() {
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      Pending& port = m_ports[m_looked];
      if (port.moves) [[unlikely]]
        note_moves<record>(m_looked);
      else
        while (port.done < port.posted && port.slots != 0) {
          const std::size_t slot = port.done % port.slots;
          if (!m_transport->test(port.requests[slot])) return;
          port.requests[slot] = {};
          note<record>(port, slot);
        }
      m_looked = m_looked + 1 < m_ports.size() ? m_looked + 1 : 0;
    }
  }

  /// Notes the messages that are complete on all ports except `number`, which the rank awaits. So
  /// the recorded end of a message does not depend on a later message of another port.
  template <bool record>
  [[gnu::noinline]] void note_others(std::size_t number) {
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      Pending& port = m_ports[p];
      if (p == number || port.moves || port.slots == 0) continue;
      for (; port.done < port.posted; note<record>(port, port.done % port.slots)) {
        typename T::Request& request = port.requests[port.done % port.slots];
        if (!m_transport->test(request)) break;
        request = {};
      }
    }
  }

  /// Notes the moves of all Movers that are complete.
  template <bool record>
  [[gnu::noinline]] void further_moves() {
    for (std::size_t p = 0; p < m_ports.size(); ++p)
      if (m_ports[p].moves) note_moves<record>(p);
  }

  /// Notes the moves of a port that are complete.
  template <bool record>
  [[gnu::noinline]] void note_moves(std::size_t number) {
    Pending& port = m_ports[number];
    while (port.done < port.posted) {
      const std::size_t slot = port.done % port.slots;
      if (!test_move(number, slot)) return;
      note<record>(port, slot);
    }
  }

  /// Returns true if the move in `slot` of a port is complete. @throws the error of the Mover, with
  /// the place of the move.
  [[nodiscard]] bool test_move(std::size_t number, std::size_t slot) {
    try {
      return m_ports[number].moves->test(slot);
    } catch (const format_error& error) {
      throw format_error(
          impl::move_failed(m_program, m_at, number, ordinal(number), error.complaint()));
    } catch (const communication_error& error) {
      throw communication_error(
          impl::move_failed(m_program, m_at, number, ordinal(number), error.complaint()));
    }
  }

  /// Notes that a message or a move is complete.
  template <bool record>
  void note(Pending& port, std::size_t slot) {
    ++port.done;
    if constexpr (record) m_stamps[port.step_of[slot]].end = Clock::now();
  }

  template <bool waits>
  bool complete_all() {
    for (std::size_t p = 0; p < m_ports.size(); ++p)
      if (!(m_options.record ? complete<true, waits>(p, m_ports[p].posted)
                             : complete<false, waits>(p, m_ports[p].posted)))
        return false;
    return true;
  }

  /// Returns the text of the action at which the pass stands.
  [[nodiscard]] std::string where() const { return impl::step_text(m_program, m_at); }

  /// Returns the text of that place for an error.
  [[nodiscard]] std::string place() const { return impl::step_place(m_program, m_at); }

  /// Returns how many messages of the port come before the first incomplete one, in its step: this
  /// step or the step before.
  [[nodiscard]] std::uint64_t ordinal(std::size_t number) const {
    const Pending& pending = m_ports[number];
    return pending.done - (pending.done >= pending.base ? pending.base : pending.before);
  }

  [[nodiscard]] ErrorInfo stuck(std::size_t number) const {
    return impl::stuck(m_program, m_at, number, ordinal(number), m_options.watchdog);
  }

  /// Returns how far this rank has come in the list, while it waits.
  [[nodiscard]] ListPlace list_place() const {
    if (m_passes == 0) return {.list = ListPlace::outside};
    std::size_t open = m_program.size();
    bool previous = false;
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      const Pending& port = m_ports[p];
      if (port.slots == 0 || port.done >= port.posted) continue;
      const bool earlier = port.done < port.base;
      if (previous && !earlier) continue;
      const std::size_t step = impl::step_of_port(m_program, p, ordinal(p));
      open = earlier == previous ? std::min(open, step) : step;
      previous = earlier;
    }
    return impl::list_place(m_program, m_at, m_passes - 1, open, previous);
  }

  /// Notes all messages that have arrived, before the rank tells its place.
  void note_arrived() noexcept {
    try {
      m_options.record ? note_others<true>(m_ports.size()) : note_others<false>(m_ports.size());
    } catch (...) {  // the hang is the error to report
    }
  }

  /// Finds where the step hangs, together with the other ranks.
  void locate() {
    if constexpr (ReportsPlaces<T>) {
      m_hang = impl::locate_hang(*m_transport, m_program.schedule, list_place(), m_options.grace);
      if (!m_options.log) return;
      for (const Finding& finding : m_hang) m_options.log(to_string(finding));
    }
  }

  /// Returns true if a pass has begun and is not at its end.
  [[nodiscard]] bool unfinished() const noexcept {
    return m_passes != 0 && m_at < m_program.size();
  }

  [[nodiscard]] bool pending() const {
    for (const Pending& port : m_ports)
      if (port.done < port.posted) return true;
    return false;
  }

  void fail(const char* reason) noexcept {
    try {
      abort(where(), reason);
    } catch (...) {  // no memory for the text
      m_failed = true;
    }
  }

  Program m_program;
  T* m_transport;
  ExecuteOptions m_options;
  std::vector<Pending> m_ports;
  std::vector<Stamp> m_stamps;
  std::size_t m_at = 0;
  std::uint64_t m_polls = 0;  ///< calls of advance() that found something to wait for
  std::uint64_t m_come = 0;   ///< how far this rank had come at the begin of the pass
  std::uint64_t m_passes = 0;
  bool m_posts = false;      ///< true if any port has messages or moves
  bool m_moves = false;      ///< true if any port has moves
  std::size_t m_looked = 0;  ///< the port at which further() stopped
  bool m_failed = false;
  bool m_stuck = false;         ///< true after this rank's watchdog
  std::vector<Finding> m_hang;  ///< where the step hangs, after an error
  int m_exceptions = std::uncaught_exceptions();
};

/// Runs `program` once and completes all its messages.
template <Transport T>
void execute(Program program, Handler handler, T& transport, ExecuteOptions options = {}) {
  Executor<T> executor(std::move(program), transport, std::move(options));
  executor.step(handler);
  executor.drain();
}

}  // namespace heddle::inline v0
