// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of scheduled_work.hpp.

#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <mpi.h>

#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/decide.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/scheduled_work.hpp>
#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/internal/meet.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0::impl {

HEDDLE_FULL_INLINE std::string orders_of_views(Call& call) {
  std::string found;
  for (const CallView& view : call.views()) found += (found.empty() ? "" : "; ") + view.order();
  return found;
}

// Returns true if a call that blocks is made by ranks that read each other's memory.
inline bool shares(const Call& call, const PerformerKey& key) {
  if (!may_share(call, key.bytes)) return false;
  if (key.choice.shared) return true;
  return key.costs == nullptr &&
         call.comm().attached<SharedPlace>().line([&] { meet(call); }).shares();
}

HEDDLE_FULL_INLINE Performer* in_shared_memory(const Call& call, const PerformerKey& key) {
  if (!shares(call, key)) return nullptr;
  const auto together = [&] { meet(call); };
  const CallOptions& options = call.options();
  return call.comm().attached<SharedPlace>().line(together).find(
      key, call.memory(), options.wait.watchdog, options.shared_bytes, together);
}

HEDDLE_FULL_INLINE PerformerKey by_messages(PerformerKey key, int ranks) {
  if (!key.choice.shared) return key;
  key.costs = nullptr;
  key.usual = true;
  key.choice = {.algorithm = usual(key.collective, key.bytes, ranks, key.root)};
  return key;
}

HEDDLE_FULL_INLINE ScheduledWork::ScheduledWork(Call& call, const PerformerKey& key,
                                                std::shared_ptr<Call> owner)
    : m_call(call),
      m_owner(std::move(owner)),
      m_beside(call.options().progress_thread ? call.by().copy(true) : nullptr),
      m_perform{m_beside != nullptr ? m_beside.get() : &call.by(),
                call.options().progress_thread || call.by().one_thread()},
      m_line(&line()) {
  for (const CallView& view : m_call.views()) view.pack(m_call.by());
  m_call.by().wait(m_call.where());
  const ExecuteOptions& execute = m_call.options().wait;
  if (m_owner == nullptr) m_performer = in_shared_memory(m_call, key);
  const bool apart = m_performer == nullptr && key.apart;
  if (!apart) m_call.before();
  CallMemory memory = apart ? m_call.apart() : m_call.memory();
  memory[2] = m_call.residual.data;
  const auto begin = [&](const PerformerKey& messages) {
    m_performer = &m_line->begin(messages, m_call.by(), memory, execute, this);
  };
  if (m_performer != nullptr)
    m_line->begin(*m_performer, memory, execute, this);
  else if (key.choice.shared)
    begin(by_messages(key, m_call.comm().size()));
  else
    begin(key);
  if (m_call.options().progress_thread) begin_thread();
}

HEDDLE_FULL_INLINE ScheduledWork::~ScheduledWork() {
  m_thread.reset();
  if (m_performer != nullptr) m_line->end(*m_performer);
}

HEDDLE_FULL_INLINE bool ScheduledWork::test() {
  if (m_performer == nullptr) return over();
  if (m_thread ? !m_over.load(std::memory_order_acquire) : !m_performer->advance(m_perform))
    return false;
  end();
  return true;
}

HEDDLE_FULL_INLINE void ScheduledWork::wait() {
  if (m_performer == nullptr) return static_cast<void>(over());
  if (m_thread)
    wait_for_thread();
  else if (!wait_with_others())
    m_performer->finish(m_perform);
  end();
}

HEDDLE_FULL_INLINE Seconds ScheduledWork::watchdog() const noexcept {
  return m_call.options().wait.watchdog;
}

HEDDLE_FULL_INLINE void ScheduledWork::abandon() noexcept {
  if (m_performer == nullptr || m_thread) return;  // a thread waits, or finds out
  give_up("an exception left the scope of its request");
}

HEDDLE_FULL_INLINE CallLine& ScheduledWork::line() const {
  const bool thread = m_call.options().progress_thread;
  int level = MPI_THREAD_SINGLE;
  if (thread) check(MPI_Query_thread(&level), m_call.where());
  expects(!thread || level == MPI_THREAD_MULTIPLE, [&] {
    return ErrorInfo{m_call.where(), "a progress thread needs MPI at MPI_THREAD_MULTIPLE",
                     "other threads call MPI at the same time",
                     "construct the Environment with ThreadLevel::multiple, or call test()"};
  });
  return m_call.comm().attached<CallLines>().line(thread, watchdog(), [&] { meet(m_call); });
}

HEDDLE_FULL_INLINE void ScheduledWork::begin_thread() {
  try {
    m_thread.emplace(1, [this](int) { run(); });
    m_thread->begin_all(m_call.where());
  } catch (...) {
    give_up("its progress thread cannot start");
    throw;
  }
}

HEDDLE_FULL_INLINE void ScheduledWork::give_up(const char* reason) noexcept {
  m_performer->abort(m_call.where(), reason);
  m_line->end(*std::exchange(m_performer, nullptr));
}

HEDDLE_FULL_INLINE void ScheduledWork::wait_for_thread() {
  Waiting waiting(m_call.options().wait.idle);
  while (!m_over.load(std::memory_order_acquire)) {
    m_call.comm().attached<CallLines>().further();
    waiting();
  }
}

HEDDLE_FULL_INLINE bool ScheduledWork::wait_with_others() {
  if (m_line->under_way() <= 1) return false;
  const ExecuteOptions& options = m_call.options().wait;
  Waiting waiting(options.idle);
  const Seconds since = steady_seconds();
  while (m_line->under_way() > 1) {
    if (m_performer->advance(m_perform)) return true;
    try {
      m_line->further(this);
    } catch (...) {
      give_up("another request of the communicator failed");
      throw;
    }
    waiting();
    if (options.watchdog > 0 && steady_seconds() - since > options.watchdog) return false;
  }
  return false;
}

HEDDLE_FULL_INLINE void ScheduledWork::run() noexcept {
  try {
    m_performer->finish(m_perform);
  } catch (...) {
    m_error = std::current_exception();
  }
  m_over.store(true, std::memory_order_release);
}

HEDDLE_FULL_INLINE void ScheduledWork::end() {
  m_thread.reset();
  m_line->end(*std::exchange(m_performer, nullptr));
  static_cast<void>(over());
  m_call.after();
  for (const CallView& view : m_call.views()) view.unpack(m_call.by());
  m_call.ended();
}

HEDDLE_FULL_INLINE bool ScheduledWork::over() const {
  if (m_error) std::rethrow_exception(m_error);
  return true;
}

}  // namespace heddle::inline v0::impl
