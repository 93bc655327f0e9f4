// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Executor: walks a Program in the thread of the caller. It calls a handler for computations and a
/// transport for moves.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/impl/flight.hpp>
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
  /// @throws contract_error if an option is invalid, if the program names a port, use or rank that
  ///         does not exist, or if an action of the handler uses a buffer that the mover holds,
  ///         such as a move between tiers that shares its queue with other work.
  Executor(Program program, T& transport, ExecuteOptions options = {})
      : m_program(std::move(program)),
        m_transport(&transport),
        m_options(std::move(options)),
        m_flight(divided(m_program, m_options, transport), transport, m_options.mover) {
    m_flight.record(m_options.record);
  }

  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  /// Completes the messages in flight, as drain() does. If an exception destroys the executor, the
  /// other ranks are told instead. Errors of this last wait are not reported.
  ~Executor() {
    if (m_failed || (!m_flight.pending() && !unfinished())) return;
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
    m_flight.begin();
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
      m_flight.cancel();
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
  /// @throws contract_error if a time is out of range; then the options do not change.
  void options(ExecuteOptions options) {
    expect_valid(options, "heddle::Executor::options");
    options.record = m_options.record;
    options.mover = m_options.mover;
    m_options = std::move(options);
  }

  /// Returns the program that it runs.
  [[nodiscard]] const Program& program() const noexcept { return m_program; }
  /// Returns where the step hung, after an error by a watchdog; see find_hang().
  [[nodiscard]] std::span<const Finding> hang() const noexcept { return m_hang; }
  /// Returns the stamps of the last pass, one per step of the Program. Empty without recording.
  [[nodiscard]] std::span<const Stamp> stamps() const noexcept { return m_flight.stamps(); }
  /// Switches recording on or off. It first completes the messages in flight.
  void record(bool on) {
    drain();
    m_options.record = on;
    m_flight.record(on);
  }

 private:
  /// Checks the arguments of the constructor. Lets the mover perform the moves between tiers of
  /// `program`, or the handler if there is none.
  static const Program& divided(Program& program, const ExecuteOptions& options,
                                const T& transport) {
    expect_valid(options, "heddle::Executor");
    impl::expect_program(program, transport.size());
    if (options.mover)
      impl::expect_mover_lanes(program, options.mover);
    else
      impl::leave_moves_to_handler(program);
    return program;
  }

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
        for (const Wait& wait : messages)
          if (!complete<record, waits>(wait.port, m_flight.needed(wait))) return false;
        if constexpr (record) last = Clock::now();
      }
      if (step.does == Step::Does::run) {
        handler(Task(m_program.schedule, step.action, m_program.uses_of(i)));
        if (step.progress != 0) come(step.progress);
        if (m_flight.posts()) m_flight.template further<record>(i);
      } else if (step.does == Step::Does::settle) {
        come(step.progress);
      } else {
        if (!complete<record, waits>(step.port, m_flight.needed_to_start(step.port))) return false;
        m_flight.template start<record>(i);
      }
      if constexpr (record) {
        const Ticks now = Clock::now();
        Stamp& stamp = m_flight.stamps()[i];
        stamp.start = last;
        if (!step.posts()) stamp.end = now;
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

  /// Returns true once the first `messages` of a port are complete, in all passes. Returns false if
  /// it would have to wait for that and `waits` is false.
  template <bool record, bool waits>
  bool complete(std::size_t number, std::uint64_t messages) {
    while (m_flight.done(number) < messages) {
      const auto seen = [&] { return m_flight.template look<record>(number, messages, m_at); };
      if constexpr (waits)
        await(
            *m_transport, seen, m_options.idle, m_options.watchdog, [&] { return place(); },
            [&] {
              m_stuck = true;
              return impl::stuck(m_program, m_at, number, m_flight.ordinal(number),
                                 m_options.watchdog);
            });
      else if (!seen())
        return false;
    }
    return true;
  }

  template <bool waits>
  bool complete_all() {
    for (std::size_t p = 0; p < m_program.ports.size(); ++p)
      if (!(m_options.record ? complete<true, waits>(p, m_flight.posted(p))
                             : complete<false, waits>(p, m_flight.posted(p))))
        return false;
    return true;
  }

  /// Returns the text of the action at which the pass stands.
  [[nodiscard]] std::string where() const { return impl::step_text(m_program, m_at); }

  /// Returns the text of that place for an error.
  [[nodiscard]] std::string place() const { return impl::step_place(m_program, m_at); }

  /// Returns how far this rank has come in the list, while it waits.
  [[nodiscard]] ListPlace list_place() const {
    if (m_passes == 0) return {.list = ListPlace::outside};
    const auto [open, previous] = m_flight.oldest();
    return impl::list_place(m_program, m_at, m_passes - 1, open, previous);
  }

  /// Notes all messages that have arrived, before the rank tells its place.
  void note_arrived() noexcept {
    try {
      m_options.record ? m_flight.template note_all<true>() : m_flight.template note_all<false>();
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
  impl::Flight<T> m_flight;  // refers to m_program
  std::size_t m_at = 0;
  std::uint64_t m_polls = 0;  ///< calls of advance() that found something to wait for
  std::uint64_t m_come = 0;   ///< how far this rank had come at the begin of the pass
  std::uint64_t m_passes = 0;
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
