// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Executor: walks a Program, calling a handler for what is computed and a transport for what is
/// moved. One thread, the caller's.

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/program.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/schedule/action_text.hpp>

namespace heddle::inline v0 {

/// How an Executor waits, and what it notes.
struct ExecuteOptions {
  Idle idle = Idle::yield;  ///< how far a waiting rank gives up its core
  bool record = false;      ///< stamp every action; costs about 10 ns each
  Seconds watchdog = 120;   ///< longest wait for one message; 0: for ever
  /// Receives a line for each abort, and what a model tells when its Runner is made, such as the
  /// path of messages and the BLAS library (see Stages); may be empty.
  std::function<void(std::string_view)> log = {};
};

/// When a step of the Program took place. For a send or receive, `end` is when its completion was
/// seen, which is no later than the first action that needed it.
struct Stamp {
  Ticks start = 0;  ///< before the action
  Ticks end = 0;    ///< after it
};

/// Runs a Program again and again over one transport.
///
/// Actions run in list order in the calling thread. Moves are waited for just before the first
/// action that conflicts, possibly in the next step() (see Program), and furthered after every
/// other action; `drain` completes them all. Where the handler throws, the other ranks are told and
/// throw communication_error naming the rank and its action; a message that does not come within
/// the watchdog's time does the same, and so does a rank that shares memory and does not come on.
/// After an error the executor and its transport are spent.
template <Transport T>
class Executor {
 public:
  /// Runs `program` over `transport`, to which it refers.
  Executor(Program program, T& transport, ExecuteOptions options = {})
      : m_program(std::move(program)), m_transport(&transport), m_options(std::move(options)) {
    m_ports.resize(m_program.ports.size());
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      if (m_program.ports[p].progress != nullptr) continue;
      m_ports[p].requests.resize(2 * std::size_t{m_program.ports[p].messages});
      m_messages = true;
    }
    if (m_options.record) m_stamps.resize(m_program.size());
  }

  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  /// Completes what is in flight, as drain() does. Where an exception destroys the executor, the
  /// other ranks are told instead; errors of this last wait are not reported.
  ~Executor() {
    if (m_failed || (!pending() && !unfinished())) return;
    if (std::uncaught_exceptions() > m_exceptions) {
      fail("an exception left its scope");
      return;
    }
    if (unfinished()) {
      fail("a pass that had begun was left");
      return;
    }
    try {
      drain();
    } catch (const std::exception&) {  // the others are told
    }
  }

  /// One pass over the list. With recording it ends with drain(), so that every stamp is there.
  void step(Handler handler) {
    begin();
    reported([&] {
      m_options.record ? walk<true, true>(handler) : walk<false, true>(handler);
      if (m_options.record) complete_all<true>();
    });
  }

  /// Begins a pass over the list, for advance() and finish() to perform in pieces.
  void begin() noexcept {
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      Pending& port = m_ports[p];
      port.before = std::exchange(port.base, port.posted);
      // What another rank will have done is under way from the begin.
      if (m_program.ports[p].progress != nullptr) port.posted += m_program.ports[p].messages;
    }
    m_come = m_program.progress_per_step * m_passes++;
    m_at = 0;
  }

  /// Performs what can be done of the pass that begin() began without waiting for another rank.
  /// True once all of it is done and no message is in flight. Call it again and again; the watchdog
  /// is finish()'s.
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

  /// Performs the rest of that pass and completes every message.
  void finish(Handler handler) {
    reported([&] {
      m_options.record ? walk<true, true>(handler) : walk<false, true>(handler);
      complete_all<true>();
    });
  }

  /// Completes every message that is still in flight. @throws contract_error between begin() and
  /// the end of its pass.
  void drain() {
    expects(!unfinished(), [&] {
      return Complaint{place(), "the pass that begin() began is not over", {}, "finish() it first"};
    });
    m_at = m_program.size();
    reported([&] { complete_all<true>(); });
  }

  /// Tells the other ranks that this one failed while `doing`, for `reason`, unless it was one of
  /// them that failed first, and takes all memory back. The executor is spent. For failures outside
  /// of step(), which does this itself.
  void abort(const std::string& doing, const char* reason) noexcept {
    m_failed = true;
    // First, for what follows may not come back: an MPI can end a process that sends to one that is
    // gone, and to take memory back can mean to wait for a rank that does not answer any more.
    try {
      if (m_options.log) m_options.log(reason);
    } catch (...) {  // the first error is the one to report
    }
    try {
      if (!m_transport->aborted()) m_transport->abort({m_program.rank, doing, reason});
    } catch (...) {  // likewise
    }
    try {
      for (Pending& port : m_ports)
        for (; !port.requests.empty() && port.done < port.posted; ++port.done)
          m_transport->cancel(port.requests[port.done % port.requests.size()]);
    } catch (...) {  // likewise
    }
  }

  /// Binds `buffer`, which began at `from`, to memory that begins at `to`, for the steps to come.
  /// No message may be in flight.
  void rebind(BufferId buffer, const std::byte* from, std::byte* to) noexcept {
    for (BoundUse& use : m_program.uses)
      if (use.buffer == buffer && use.data != nullptr) use.data = to + (use.data - from);
  }

  /// How it waits from now on, and whom it tells. Whether it records stays: see record().
  void options(ExecuteOptions options) noexcept {
    options.record = m_options.record;
    m_options = std::move(options);
  }

  /// What it runs.
  [[nodiscard]] const Program& program() const noexcept { return m_program; }
  /// The stamps of the last step, one per step of the Program. Empty without recording.
  [[nodiscard]] std::span<const Stamp> stamps() const noexcept { return m_stamps; }
  /// Switches recording; completes what is in flight first.
  void record(bool on) {
    drain();
    m_options.record = on;
    m_stamps.resize(on ? m_program.size() : 0);
  }

 private:
  /// The messages of one port. Counters only grow: no reset, one writer.
  struct Pending {
    std::vector<typename T::Request> requests;  ///< a ring: message k is in slot k mod size
    std::vector<std::uint32_t> step_of;  ///< the Program's step that posted it; recording only
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    std::uint64_t base = 0;    ///< `posted` at the begin of this step
    std::uint64_t before = 0;  ///< and of the previous one
  };

  /// What `call` returns; where it throws, the other ranks are told.
  template <class Call>
  auto reported(Call&& call) {
    try {
      return call();
    } catch (const std::exception& error) {
      fail(error.what());
      throw;
    } catch (...) {
      fail("unknown exception");
      throw;
    }
  }

  /// From where the pass stands to its end; false where it `waits` not, and would have to.
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
          // The first step has no previous one: nothing of it is posted, nothing is waited for.
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
        if (m_messages) further<record>();
      } else if (step.does == Step::Does::settle) {
        come(step.progress);
      } else if (!post<record, waits>(i)) {
        return false;
      }
      if constexpr (record) {
        const Ticks now = Clock::now();
        m_stamps[i].start = last;
        if (!step.moves()) m_stamps[i].end = now;
        last = now;
      }
    }
    m_at = length;
    if (m_program.progress != nullptr) come(m_program.progress_per_step);
    return true;
  }

  /// Lets the others see how far this rank is in the step.
  void come(std::uint32_t progress) noexcept {
    m_program.progress->store(m_come + progress, std::memory_order_release);
  }

  template <bool record, bool waits>
  bool post(std::size_t i) {
    const Step& step = m_program.steps[i];
    const Port& port = m_program.ports[step.port];
    Pending& pending = m_ports[step.port];
    const std::size_t slots = pending.requests.size();
    // Two steps' messages fit; a schedule whose next step does not wait for them needs the oldest.
    if (pending.posted - pending.done == slots &&
        !complete<record, waits>(step.port, pending.done + 1))
      return false;
    const BoundUse& use = m_program.uses[step.first_use];
    const std::size_t slot = pending.posted % slots;
    pending.requests[slot] = port.sends
                                 ? m_transport->send(port.peer, port.lane, use.data, use.bytes)
                                 : m_transport->receive(port.peer, port.lane, use.data, use.bytes);
    if constexpr (record) {
      pending.step_of.resize(slots);
      pending.step_of[slot] = static_cast<std::uint32_t>(i);
    }
    ++pending.posted;
    return true;
  }

  template <bool record, bool waits>
  bool complete(std::size_t number, std::uint64_t messages) {
    Pending& port = m_ports[number];
    if (const ProgressCounter* const progress = m_program.ports[number].progress) {
      if (port.done >= messages) return true;  // seen before
      const auto reached = [&] {
        port.done = progress->load(std::memory_order_acquire);
        if (port.done >= messages) return true;
        if (m_messages) further<record>();  // others may wait for them meanwhile
        return false;
      };
      if constexpr (waits)
        await(
            *m_transport, reached, m_options.idle, m_options.watchdog, [&] { return place(); },
            [&] { return stuck(number); });
      return waits || reached();
    }
    while (port.done < messages) {
      const std::size_t slot = port.done % port.requests.size();
      if constexpr (waits)
        await(
            *m_transport, port.requests[slot], m_options.idle, m_options.watchdog,
            [&] { return place(); }, [&] { return stuck(number); });
      else if (!m_transport->test(port.requests[slot]))
        return false;
      note<record>(port, slot);
    }
    return true;
  }

  /// Takes note of messages that are complete, until it finds one that is not: a transport may need
  /// calls about such a one to carry it (an MPI without a thread of its own does), and a rank that
  /// computes for long without waiting must not hold up those who send to it.
  template <bool record>
  void further() {
    for (std::size_t p = 0; p < m_ports.size(); ++p) {
      Pending& port = m_ports[m_looked];
      while (!port.requests.empty() && port.done < port.posted) {
        const std::size_t slot = port.done % port.requests.size();
        if (!m_transport->test(port.requests[slot])) return;
        note<record>(port, slot);
      }
      m_looked = m_looked + 1 < m_ports.size() ? m_looked + 1 : 0;
    }
  }

  /// That a message is complete.
  template <bool record>
  void note(Pending& port, std::size_t slot) {
    port.requests[slot] = {};
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

  [[nodiscard]] std::string where() const {
    return m_at < m_program.size() ? action_text(m_program.schedule, m_program.steps[m_at].action)
                                   : std::string("the end of the step");
  }

  /// The same, for an error.
  [[nodiscard]] std::string place() const {
    return text("heddle::Executor, rank ", m_program.rank, " at ", where());
  }

  [[nodiscard]] Complaint stuck(std::size_t number) const {
    const Port& port = m_program.ports[number];
    if (port.progress != nullptr)
      return {place(),
              text("stuck: rank ", port.peer, " has not come so far that this one may go on"),
              text("watchdog after ", m_options.watchdog, " s"),
              "see what that rank is doing, or raise ExecuteOptions::watchdog"};
    const Pending& pending = m_ports[number];
    std::string message;
    // The message that is waited for is the (done - base + 1)-th of this port in this step, or one
    // of the step before.
    const std::uint64_t ordinal = (pending.done >= pending.base ? pending.done - pending.base
                                                                : pending.done - pending.before);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < m_program.size(); ++i) {
      const Step& step = m_program.steps[i];
      if (!step.moves() || step.port != number || seen++ != ordinal) continue;
      message = action_text(m_program.schedule, step.action, port.sends ? 0 : 1);
    }
    return {place(),
            text("stuck: ", message, port.sends ? " to rank " : " from rank ", port.peer,
                 " did not complete"),
            text("watchdog after ", m_options.watchdog, " s"),
            "see what that rank is doing, or raise ExecuteOptions::watchdog"};
  }

  /// Whether a pass has begun and is not at its end.
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
  bool m_messages = false;   ///< whether any port has them
  std::size_t m_looked = 0;  ///< the port at which further() stopped
  bool m_failed = false;
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
