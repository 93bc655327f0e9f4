// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ScheduledWork: a collective call by a Schedule, under way.

#include <atomic>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include <Kokkos_Core.hpp>
#include <mpi.h>

#include <heddle/collective/impl/call_view.hpp>
#include <heddle/collective/impl/decide.hpp>
#include <heddle/collective/impl/joiner.hpp>
#include <heddle/collective/impl/meet.hpp>
#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/comm/check.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/impl/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/device/done_at_once.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Returns true if a call that blocks is made by ranks that read each other's memory.
template <class Call>
[[nodiscard]] bool shares(const Call& call, const PerformerKey& key) {
  if (!may_share(call, key.bytes)) return false;
  if (key.choice.shared) return true;
  return key.costs == nullptr &&
         call.comm->template attached<SharedPlace>().line([&] { meet(call); }).shares();
}

/// The performer of a call that blocks, in memory that ranks share; null where it goes by messages.
/// All ranks ask.
template <class Call>
[[nodiscard]] Performer* in_shared_memory(const Call& call, const PerformerKey& key) {
  if (!shares(call, key)) return nullptr;
  const auto together = [&] { meet(call); };
  return call.comm->template attached<SharedPlace>().line(together).find(
      key, call.memory(), call.options.execute.watchdog, call.options.shared_bytes, together);
}

/// The key of the same call where memory cannot be shared.
[[nodiscard]] PerformerKey by_messages(PerformerKey key, int ranks);

/// A call by a Schedule, under way. Of `Call&`, which it only refers to, it is one that blocks:
/// nothing else is begun before it is over.
template <class MadeCall>
class ScheduledWork final : public Work {
  using Call = std::remove_reference_t<MadeCall>;
  static constexpr bool blocks = std::is_reference_v<MadeCall>;

 public:
  /// Begins it.
  ScheduledWork(MadeCall&& call, const PerformerKey& key)
      : m_call(std::forward<MadeCall>(call)),
        m_exec(instance(m_call)),
        m_joiner(m_exec, m_call.reduction, m_call.options.progress_thread),
        m_line(&line()) {
    pack_views(m_call);
    wait_for_work(m_call.exec, Call::where);
    const ExecuteOptions& execute = m_call.options.execute;
    if constexpr (blocks) m_performer = in_shared_memory(m_call, key);
    const bool apart = m_performer == nullptr && key.apart;
    if (!apart) m_call.before();
    CallMemory memory = apart ? m_call.apart() : m_call.memory();
    memory[2] = m_call.kept.data();
    const auto begin = [&](const PerformerKey& messages) {
      m_performer =
          &m_line->template begin<typename Call::MemorySpace>(messages, memory, execute, this);
    };
    if (m_performer != nullptr)
      m_line->begin(*m_performer, memory, execute, this);
    else if (key.choice.shared)
      begin(by_messages(key, m_call.comm->size()));
    else
      begin(key);
    if (!m_call.options.progress_thread) return;
    try {
      m_thread.emplace(1, [this](int) { run(); });
      m_thread->begin_all(Call::where);
    } catch (...) {
      give_up("its progress thread cannot start");
      throw;
    }
  }
  ~ScheduledWork() override {
    m_thread.reset();
    if (m_performer != nullptr) m_line->end(*m_performer);
  }

  bool test() override {
    if (m_performer == nullptr) return over();
    if (m_thread ? !m_over.load(std::memory_order_acquire) : !m_performer->advance(m_joiner))
      return false;
    end();
    return true;
  }
  void wait() override {
    if (m_performer == nullptr) return static_cast<void>(over());
    if (m_thread)
      wait_for_thread();
    else if (!wait_with_others())
      m_performer->finish(m_joiner);
    end();
  }
  [[nodiscard]] Seconds watchdog() const noexcept override {
    return m_call.options.execute.watchdog;
  }
  void abandon() noexcept override {
    if (m_performer == nullptr || m_thread) return;  // a thread waits, or finds out
    give_up("an exception left the scope of its request");
  }

 private:
  CallLine& line() const {
    const bool thread = m_call.options.progress_thread;
    int level = MPI_THREAD_SINGLE;
    if (thread) check(MPI_Query_thread(&level), Call::where);
    expects(!thread || level == MPI_THREAD_MULTIPLE, [&] {
      return ErrorInfo{Call::where, "a progress thread needs MPI at MPI_THREAD_MULTIPLE",
                       "other threads call MPI at the same time",
                       "construct the Environment with ThreadLevel::multiple, or call test()"};
    });
    return m_call.comm->template attached<CallLines>().line(thread, m_call.options.execute.watchdog,
                                                            [&] { meet(m_call); });
  }

  /// Tells the other ranks, and takes the memory back.
  void give_up(const char* reason) noexcept {
    m_performer->abort(Call::where, reason);
    m_line->end(*std::exchange(m_performer, nullptr));
  }

  /// Furthers those without a thread, for which other ranks may wait before they come to this one.
  void wait_for_thread() {
    Waiting waiting(m_call.options.execute.idle);
    while (!m_over.load(std::memory_order_acquire)) {
      m_call.comm->template attached<CallLines>().further();
      waiting();
    }
  }

  /// Waits while others are under way, which are furthered meanwhile. False where they are over
  /// before this one, or time is up: what is waited for then, finish() finds out and says.
  bool wait_with_others() {
    if (m_line->under_way() <= 1) return false;
    const ExecuteOptions& options = m_call.options.execute;
    Waiting waiting(options.idle);
    const Seconds since = steady_seconds();
    while (m_line->under_way() > 1) {
      if (m_performer->advance(m_joiner)) return true;
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

  void run() noexcept {
    try {
      m_performer->finish(m_joiner);
    } catch (...) {
      m_error = std::current_exception();
    }
    m_over.store(true, std::memory_order_release);
  }

  void end() {
    m_thread.reset();
    m_line->end(*std::exchange(m_performer, nullptr));
    static_cast<void>(over());
    m_call.after();
    unpack_views(m_call);
  }

  /// True; its error is that of whoever waits for it, also where another call has met it before.
  bool over() const {
    if (m_error) std::rethrow_exception(m_error);
    return true;
  }

  using Exec = typename Call::Space;
  static constexpr bool on_host = std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace>;
  using Instance = std::conditional_t<on_host, const Exec&, Exec>;

  /// The instance in which the call's kernels run. On a device, a progress thread has one of its
  /// own, so that it does not wait for kernels that the caller queues meanwhile.
  [[nodiscard]] static Instance instance(const Call& call) {
    if constexpr (!on_host)
      if (call.options.progress_thread)
        return Kokkos::Experimental::partition_space(call.exec, 1)[0];
    return call.exec;
  }

  MadeCall m_call;
  Instance m_exec;
  Joiner<typename Call::Space, typename Call::MemorySpace, typename Call::Element,
         decltype(Call::reduction)>
      m_joiner;
  CallLine* m_line;
  Performer* m_performer = nullptr;
  std::optional<Threads> m_thread;
  std::atomic<bool> m_over{false};
  std::exception_ptr m_error;
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_FULL_HEADER_ONLY
#include <heddle/collective/impl/scheduled_work.ipp>
#endif
