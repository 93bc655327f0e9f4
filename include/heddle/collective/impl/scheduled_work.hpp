// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ScheduledWork: a collective call by a Schedule, under way.

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include <heddle/collective/impl/performer.hpp>
#include <heddle/collective/internal/call.hpp>
#include <heddle/collective/internal/instance.hpp>
#include <heddle/collective/request.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/task.hpp>

namespace heddle::inline v0 {
namespace impl {

/// Returns the orders of all Views of a call.
[[nodiscard]] std::string orders_of_views(Call& call);

/// Returns the performer of a call that blocks, in memory that ranks share; null where it goes by
/// messages. All ranks ask.
[[nodiscard]] Performer* in_shared_memory(const Call& call, const PerformerKey& key);

/// The key of the same call where memory cannot be shared.
[[nodiscard]] PerformerKey by_messages(PerformerKey key, int ranks);

/// A call by a Schedule, under way.
class ScheduledWork final : public Work {
 public:
  /// Begins `call`, which `owner` keeps alive. Without an owner the call blocks: nothing else is
  /// begun before it is over.
  ScheduledWork(Call& call, const PerformerKey& key, std::shared_ptr<Call> owner = nullptr);
  ~ScheduledWork() override;

  bool test() override;
  void wait() override;
  [[nodiscard]] Seconds watchdog() const noexcept override;
  void abandon() noexcept override;

 private:
  [[nodiscard]] CallLine& line() const;
  void begin_thread();
  /// Tells the other ranks, and takes the memory back.
  void give_up(const char* reason) noexcept;
  /// Furthers those without a thread, for which other ranks may wait before they come to this one.
  void wait_for_thread();
  /// Waits while others are under way, which are furthered meanwhile. False where they are over
  /// before this one, or time is up: what is waited for then, finish() finds out and says.
  bool wait_with_others();
  void run() noexcept;
  void end();
  /// True; its error is that of whoever waits for it, also where another call has met it before.
  bool over() const;

  /// The handler of the call's Schedule.
  struct Perform {
    const Instance* by;
    bool loops_only;
    void operator()(const Task& task) const { by->perform(task, loops_only); }
  };

  Call& m_call;
  std::shared_ptr<Call> m_owner;
  /// The instance of a progress thread, which does not wait for the kernels of the caller.
  std::unique_ptr<const Instance> m_beside;
  Perform m_perform;
  CallLine* m_line;
  Performer* m_performer = nullptr;
  std::optional<Threads> m_thread;
  std::atomic<bool> m_over{false};
  std::exception_ptr m_error;
};

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/impl/scheduled_work.ipp>
#endif
