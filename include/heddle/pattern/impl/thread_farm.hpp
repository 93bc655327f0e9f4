// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The threads of a farm: they ask the decider, and take turns to call the source and the sink.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/pattern/farm_decider.hpp>
#include <heddle/pattern/farm_outcome.hpp>

namespace heddle::inline v0::impl {

/// Calls `work` with or without the task.
template <class Work, class Given>
auto farm_work(Work& work, const Given& item, const FarmTask& task) {
  if constexpr (std::is_invocable_v<Work&, const Given&, const FarmTask&>)
    return work(item, task);
  else
    return work(item);
}

/// The type of the results of a farm's work.
template <class Work, class Given>
using FarmResult = decltype(farm_work(std::declval<std::remove_reference_t<Work>&>(),
                                      std::declval<const Given&>(), FarmTask{}));

/// The items and results of a farm's types; both kinds of source fit.
template <class Source, class Work>
struct FarmTypes {
  using Given = typename std::invoke_result_t<Source&>::value_type;
  using Result = FarmResult<Work, Given>;
};
template <class Source, class Work>
requires(!std::is_invocable_v<Source&>) struct FarmTypes<Source, Work> {
  /// Converts to a span of any outcomes, so that the item's type can be asked for first.
  struct AnyOutcomes {
    template <class Outcome>
    operator std::span<const Outcome>() const;
  };
  using Given = typename std::invoke_result_t<Source&, AnyOutcomes>::value_type;
  using Result = FarmResult<Work, Given>;
};

/// One farm. All members but the constants are guarded by m_mutex, except that a worker reads the
/// item of its slot, which stays in place while `users` is not 0.
template <class Source, class Work, class Sink>
class ThreadFarm {
  using Given = typename FarmTypes<Source, Work>::Given;
  using Result = typename FarmTypes<Source, Work>::Result;
  static_assert(!std::is_void_v<Result>, "the work of heddle::farm() returns a result");

 public:
  ThreadFarm(const FarmOptions& options, Source& source, Work& work, Sink& sink)
      : m_options(options), m_decider(options), m_source(source), m_work(work), m_sink(sink) {
    if (options.trail != nullptr) options.trail->expect_workers(options.workers);
    m_waited.resize(static_cast<std::size_t>(options.workers), false);
  }

  /// Works as `worker` until nothing is left.
  void serve(Worker worker) {
    std::unique_lock lock(m_mutex);
    try {
      while (!m_error && act(worker, lock)) {
      }
    } catch (...) {
      if (!m_error) m_error = std::current_exception();
    }
    m_changed.notify_all();
  }

  /// Returns the counts after all threads have ended, or throws what ended them.
  FarmReport end() {
    if (m_error) std::rethrow_exception(m_error);
    return {m_decider.items(), m_failed, m_decider.attempts(), m_decider.late(), 0};
  }

 private:
  /// Gives the lock away while it lives.
  class Unlocked {
   public:
    explicit Unlocked(std::unique_lock<std::mutex>& lock) : m_lock(lock) { m_lock.unlock(); }
    ~Unlocked() { m_lock.lock(); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

   private:
    std::unique_lock<std::mutex>& m_lock;
  };

  struct Slot {
    std::optional<Given> item;  // until it is delivered and no worker uses it
    FarmOutcome<Result> outcome;
    int users = 0;
    bool finished = false;
    bool delivered = false;
  };

  /// Does what the decider answers; false at the end.
  bool act(Worker worker, std::unique_lock<std::mutex>& lock) {
    const FarmDecider::Next next = m_decider.next(worker, steady_seconds());
    switch (next.answer) {
      case FarmDecider::Answer::work: perform(worker, next.task, lock); return true;
      case FarmDecider::Answer::propose: propose(lock); return true;
      case FarmDecider::Answer::wait:
        m_waited[+worker] = true;
        wait(next.until, lock);
        return true;
      case FarmDecider::Answer::end: break;
    }
    return false;
  }

  void wait(std::optional<Seconds> until, std::unique_lock<std::mutex>& lock) {
    ++m_waiting;
    if (until)
      m_changed.wait_for(lock, std::chrono::duration<double>(*until - steady_seconds()));
    else
      m_changed.wait(lock);
    --m_waiting;
  }

  void wake() {
    if (m_waiting > 0) m_changed.notify_all();
  }

  void propose(std::unique_lock<std::mutex>& lock) {
    std::optional<Given> item = take(lock);
    if (item) m_slots.push_back({std::move(item), {}, 0, false, false});
    m_decider.proposed(item.has_value());
    wake();
  }

  /// Calls the source. If it sees outcomes, they must not change meanwhile.
  std::optional<Given> take(std::unique_lock<std::mutex>& lock) {
    if constexpr (std::is_invocable_v<Source&>) {
      const Unlocked unlocked(lock);
      return m_source();
    } else {
      const std::int64_t seen = m_decider.items() - m_options.lag + 1;
      return m_source(std::span<const FarmOutcome<Result>>(
          m_history.data(), static_cast<std::size_t>(m_options.lag > 0 && seen > 0 ? seen : 0)));
    }
  }

  void perform(Worker worker, const FarmTask& task, std::unique_lock<std::mutex>& lock) {
    Slot& slot = m_slots[static_cast<std::size_t>(task.item - m_first)];
    ++slot.users;
    FarmOutcome<Result> outcome;
    outcome.attempts = task.attempt;
    const Seconds start = steady_seconds();
    try {
      const Unlocked unlocked(lock);
      outcome.value = farm_work(m_work, std::as_const(*slot.item), task);
    } catch (const std::exception& error) {
      outcome.error = error.what();
    } catch (...) {
      outcome.error = "an exception that is no std::exception";
    }
    --slot.users;
    const bool succeeded = outcome.value.has_value();
    const Seconds end = steady_seconds();
    if (m_options.trail != nullptr)
      m_options.trail->add({worker, task.item, start, end, m_waited[+worker]});
    m_waited[+worker] = false;
    if (m_decider.report(worker, succeeded, end) == FarmDecider::Fate::finished) {
      slot.outcome = std::move(outcome);
      slot.finished = true;
      if (!succeeded) ++m_failed;
      deliver(task.item, slot);
    }
    if (slot.delivered && slot.users == 0) slot.item.reset();
    while (!m_slots.empty() && m_slots.front().delivered && m_slots.front().users == 0) {
      m_slots.pop_front();
      ++m_first;
    }
    wake();
  }

  /// Gives the sink what it may have after `slot` was finished.
  void deliver(std::int64_t item, Slot& slot) {
    if (!m_options.ordered) return give(item, slot);
    for (; m_next - m_first < static_cast<std::int64_t>(m_slots.size()); ++m_next) {
      Slot& next = m_slots[static_cast<std::size_t>(m_next - m_first)];
      if (!next.finished) return;
      give(m_next, next);
    }
  }

  void give(std::int64_t item, Slot& slot) {
    slot.delivered = true;
    if constexpr (!std::is_invocable_v<Source&>) m_history.push_back(slot.outcome);
    if (slot.users == 0) slot.item.reset();
    m_sink(item, std::move(slot.outcome));
  }

  const FarmOptions& m_options;
  FarmDecider m_decider;
  Source& m_source;
  Work& m_work;
  Sink& m_sink;
  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::deque<Slot> m_slots;  ///< the items from m_first on
  std::vector<FarmOutcome<Result>> m_history;
  std::int64_t m_first = 0;
  std::int64_t m_next = 0;  ///< the next item for the sink, if ordered
  std::int64_t m_failed = 0;
  int m_waiting = 0;
  std::vector<bool> m_waited;  ///< by worker: it had nothing to do before its task
  std::exception_ptr m_error;
};

}  // namespace heddle::inline v0::impl
