// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of executor.hpp.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/await.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/impl/flight.hpp>
#include <heddle/execute/impl/locate_hang.hpp>
#include <heddle/execute/internal/program_steps.hpp>
#include <heddle/execute/transport_ref.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE AnyExecutor::AnyExecutor(Program program, const TransportRef& transport,
                                       ExecuteOptions options)
    : m_program(std::move(program)),
      m_transport(transport),
      m_options(std::move(options)),
      m_exceptions(std::uncaught_exceptions()) {
  impl::expect_valid(m_options, "heddle::Executor");
  impl::expect_program(m_program, transport.size());
  if (m_options.mover)
    impl::expect_mover_lanes(m_program, m_options.mover);
  else
    impl::leave_moves_to_handler(m_program);
  m_flight = std::make_unique<impl::Flight>(m_program, transport, m_options.mover);
  m_flight->record(m_options.record);
}

HEDDLE_INLINE AnyExecutor::~AnyExecutor() {
  if (m_failed || (!m_flight->pending() && !unfinished())) return;
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

HEDDLE_INLINE void AnyExecutor::step(Handler handler) {
  begin();
  reported([&] {
    walk<true>(handler);
    if (m_options.record) complete_all<true>();
  });
}

HEDDLE_INLINE void AnyExecutor::begin() noexcept {
  m_flight->begin();
  m_come = m_program.progress_per_step * m_passes++;
  m_at = 0;
}

HEDDLE_INLINE bool AnyExecutor::advance(Handler handler) {
  bool done = false;
  reported([&] {
    done = walk<false>(handler) && complete_all<false>();
    if (!done && ++m_polls % 64 == 0) {
      if (const auto abort = m_transport.aborted()) throw impl::lost(place(), *abort);
    }
  });
  return done;
}

HEDDLE_INLINE void AnyExecutor::finish(Handler handler) {
  reported([&] {
    walk<true>(handler);
    complete_all<true>();
  });
}

HEDDLE_INLINE void AnyExecutor::drain() {
  expects(!unfinished(), [&] {
    return ErrorInfo{
        place(), "the pass that begin() started is not complete", {}, "call finish() first"};
  });
  m_at = m_program.size();
  reported([&] { complete_all<true>(); });
}

HEDDLE_INLINE void AnyExecutor::abort(const std::string& doing, const char* reason) noexcept {
  m_failed = true;
  // The log comes first, because the calls below may not return: an MPI can end a process that
  // sends to one that has ended, and a cancel can wait for a rank that no longer answers.
  try {
    if (m_options.log) m_options.log(reason);
  } catch (...) {  // the first error is the one to report
  }
  try {
    const std::optional<Abort> heard = m_transport.aborted();
    const bool hangs = heard ? heard->place.has_value() : m_stuck;
    if (hangs) note_arrived();
    if (!heard)
      m_transport.abort(
          {m_program.rank, doing, reason, hangs ? std::optional(list_place()) : std::nullopt});
    if (hangs) locate();
  } catch (...) {  // likewise
  }
  try {
    m_flight->cancel();
  } catch (...) {  // likewise
  }
}

HEDDLE_INLINE void AnyExecutor::sizes(const UsedBytes& used) {
  expects(!unfinished(), [&] {
    return ErrorInfo{place(), "sizes change between steps only", {}, "call finish() first"};
  });
  impl::use_bytes(m_program, used);
}

HEDDLE_INLINE void AnyExecutor::rebind(BufferId buffer, const std::byte* from,
                                       std::byte* to) noexcept {
  for (BoundUse& use : m_program.uses)
    if (use.buffer == buffer && use.data != nullptr) use.data = to + (use.data - from);
}

HEDDLE_INLINE void AnyExecutor::options(ExecuteOptions options) {
  impl::expect_valid(options, "heddle::Executor::options");
  options.record = m_options.record;
  options.mover = m_options.mover;
  m_options = std::move(options);
}

HEDDLE_INLINE std::vector<Rank> AnyExecutor::open_peers() const {
  std::vector<Rank> peers;
  for (std::size_t p = 0; p < m_program.ports.size(); ++p)
    if (!m_program.ports[p].mover && m_flight->done(p) < m_flight->posted(p))
      peers.push_back(m_program.ports[p].peer);
  std::ranges::sort(peers);
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

HEDDLE_INLINE std::span<const Finding> AnyExecutor::hang() const noexcept { return m_hang; }

HEDDLE_INLINE std::span<const Stamp> AnyExecutor::stamps() const noexcept {
  return std::as_const(*m_flight).stamps();
}

HEDDLE_INLINE void AnyExecutor::record(bool on) {
  drain();
  m_options.record = on;
  m_flight->record(on);
}

HEDDLE_INLINE void AnyExecutor::reported(impl::FunctionRef<void()> call) {
  try {
    report_on_error(call, [this](const char* reason) { fail(reason); });
  } catch (const communication_error& error) {
    if (m_hang.empty()) throw;
    throw communication_error(impl::with_findings(error.complaint(), m_hang));
  }
}

template <bool waits>
bool AnyExecutor::walk(const Handler& handler) {
  return m_options.record ? walk<true, waits>(handler) : walk<false, waits>(handler);
}

template <bool record, bool waits>
bool AnyExecutor::walk(const Handler& handler) {
  impl::Flight& flight = *m_flight;
  const std::size_t length = m_program.size();
  Clock::Ticks last = record ? Clock::now() : 0;
  for (std::size_t i = m_at; i < length; ++i) {
    m_at = i;
    const Program::Step& step = m_program.steps[i];
    const auto messages = m_program.waits_of(i);
    if (!messages.empty()) {
      for (const Program::Wait& wait : messages)
        if (!complete<record, waits>(wait.port, flight.needed(wait))) return false;
      if constexpr (record) last = Clock::now();
    }
    if (step.does == Program::Step::Does::run) {
      handler(Task(m_program.schedule, step.action, m_program.uses_of(i)));
      if (step.progress != 0) come(step.progress);
      if (flight.posts()) flight.poll_others<record>(i);
    } else if (step.does == Program::Step::Does::settle) {
      come(step.progress);
    } else {
      if (!complete<record, waits>(step.port, flight.needed_to_start(step.port))) return false;
      flight.start<record>(i);
    }
    if constexpr (record) {
      const Clock::Ticks now = Clock::now();
      Stamp& stamp = flight.stamps()[i];
      stamp.start = last;
      if (!step.posts()) stamp.end = now;
      last = now;
    }
  }
  m_at = length;
  if (m_program.progress != nullptr) come(m_program.progress_per_step);
  return true;
}

HEDDLE_INLINE void AnyExecutor::come(std::uint32_t progress) noexcept {
  m_program.progress->store(m_come + progress, std::memory_order_release);
}

template <bool record, bool waits>
bool AnyExecutor::complete(std::size_t number, std::uint64_t messages) {
  while (m_flight->done(number) < messages) {
    const auto seen = [&] { return m_flight->poll<record>(number, messages, m_at); };
    if constexpr (waits)
      impl::await(
          m_transport, seen, m_options.idle, m_options.watchdog, [&] { return place(); },
          [&] {
            m_stuck = true;
            return impl::stuck(m_program, m_at, number, m_flight->ordinal(number),
                               m_options.watchdog);
          });
    else if (!seen())
      return false;
  }
  return true;
}

template <bool waits>
bool AnyExecutor::complete_all() {
  for (std::size_t p = 0; p < m_program.ports.size(); ++p)
    if (!(m_options.record ? complete<true, waits>(p, m_flight->posted(p))
                           : complete<false, waits>(p, m_flight->posted(p))))
      return false;
  return true;
}

HEDDLE_INLINE std::string AnyExecutor::place() const { return impl::step_place(m_program, m_at); }

HEDDLE_INLINE ListPlace AnyExecutor::list_place() const {
  if (m_passes == 0) return {.list = ListPlace::outside};
  const auto [open, previous] = m_flight->oldest();
  return impl::list_place(m_program, m_at, m_passes - 1, open, previous);
}

HEDDLE_INLINE void AnyExecutor::note_arrived() noexcept {
  try {
    m_options.record ? m_flight->poll_all<true>() : m_flight->poll_all<false>();
  } catch (...) {  // the hang is the error to report
  }
}

HEDDLE_INLINE void AnyExecutor::locate() {
  if (!m_transport.reports_places()) return;
  m_hang = impl::locate_hang(m_transport, m_program.schedule, list_place(), m_options.grace);
  if (!m_options.log) return;
  for (const Finding& finding : m_hang) m_options.log(to_string(finding));
}

HEDDLE_INLINE void AnyExecutor::fail(const char* reason) noexcept {
  try {
    abort(impl::step_text(m_program, m_at), reason);
  } catch (...) {  // no memory for the text
    m_failed = true;
  }
}

HEDDLE_INLINE void execute(Program program, Handler handler, const TransportRef& transport,
                           ExecuteOptions options) {
  AnyExecutor executor(std::move(program), transport, std::move(options));
  executor.step(handler);
  executor.drain();
}

}  // namespace heddle::inline v0
