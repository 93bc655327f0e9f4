// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of thread_farm.hpp: the threads ask the decider, and take turns to call the source
/// and the sink.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/pattern/farm_decider.hpp>
#include <heddle/pattern/impl/farm_call.hpp>
#include <heddle/pattern/impl/farm_slots.hpp>
#include <heddle/pattern/impl/thread_farm.hpp>
#include <heddle/pattern/impl/unlocked.hpp>

namespace heddle::inline v0::impl {

/// The time that a chunk should take: many times that of the lock, and short for a person.
inline constexpr Seconds chunk_time = 50e-6;

/// An attempt at an item.
struct FarmAttempt {
  pattern::FarmTask task;
  Worker holder;  ///< the worker of the decider
  FarmSlot* slot = nullptr;
  std::unique_ptr<AnyFarmOutcome> outcome;
  Seconds start = 0;   ///< if a trail is wanted
  Seconds end = 0;     ///< if a trail is wanted
  bool taken = false;  ///< by the thread of the chunk
};

/// The attempts of a thread. Other threads may take some of them.
struct FarmChunk {
  std::vector<FarmAttempt> tasks;
  std::uint32_t count = 0;
  std::atomic<std::uint32_t> next{0};  ///< the next one that nobody has taken
  bool waited = false;                 ///< the thread had nothing to do before
  /// For a task that the thread takes from another chunk.
  std::unique_ptr<AnyFarmOutcome> spare;
};

/// Checks the options, and returns the most items of a chunk. A lease begins when an item is taken,
/// and a source that sees outcomes needs each as soon as it is there.
[[nodiscard]] inline int most_of_chunk(const pattern::FarmOptions& options) {
  check_farm(options);
  const int most = std::min(64, most_workers / options.workers);
  if (options.lease > 0 || options.lag > 0) return 1;
  if (options.in_flight == 0) return most;
  return std::clamp(options.in_flight / options.workers / 2, 1, most);
}

/// Returns the options of a decider whose workers are the items of the chunks.
[[nodiscard]] inline pattern::FarmOptions in_chunks(pattern::FarmOptions options, int most) {
  if (options.in_flight == 0) options.in_flight = 4 * options.workers;
  options.workers *= most;
  return options;
}

/// Returns how many items take chunk_time, if `count` took `time`: at most twice as many as `now`.
[[nodiscard]] inline std::int64_t chunk_size(std::int64_t now, std::int64_t count, Seconds time,
                                             std::int64_t most) {
  const double fit = time > 0 ? chunk_time * static_cast<double>(count) / time : 1e9;
  return std::max<std::int64_t>(
      1, std::min({2 * now, most, static_cast<std::int64_t>(std::min(fit, 1e9))}));
}

/// One farm. All members but the constants are guarded by m_mutex, except that a worker reads the
/// item of a slot that it uses, and takes the next task of its chunk by an atomic number.
///
/// A thread takes a chunk of items at a time, as many as take about `chunk_time`. So light items
/// share the cost of the lock, and heavy ones go one by one. Each item of a chunk is a worker of
/// the decider. A thread that finds nothing else to do takes items from the chunks of others, so
/// none waits behind a heavy one.
class ThreadFarm {
 public:
  ThreadFarm(const pattern::FarmOptions& options, FarmPart& part)
      : m_options(options),
        m_most(most_of_chunk(options)),
        m_decider(in_chunks(options, m_most)),
        m_slots(options, m_decider, part),
        m_part(part),
        m_chunks(static_cast<std::size_t>(options.workers)) {
    m_slots.open();
    if (options.trail != nullptr) options.trail->expect_workers(options.workers);
    for (FarmChunk& chunk : m_chunks) {
      chunk.spare = part.new_outcome();
      chunk.tasks.resize(static_cast<std::size_t>(m_most));
      for (FarmAttempt& task : chunk.tasks) task.outcome = part.new_outcome();
    }
    for (int holder = options.workers * m_most; holder-- > 0;) m_free.push_back(Worker{holder});
  }

  /// Works as `worker` until nothing is left.
  void serve(Worker worker) {
    std::unique_lock lock(m_mutex);
    try {
      while (!m_error && act(worker, lock)) {
      }
    } catch (...) {
      if (!m_error) m_error = std::current_exception();
      m_stop = true;
      m_slots.stop();
    }
    m_changed.notify_all();
  }

  /// Returns the counts after all threads have ended, or throws what ended them.
  pattern::FarmReport end() {
    if (m_error) std::rethrow_exception(m_error);
    return m_slots.end();
  }

 private:
  /// Does what the decider answers; false at the end.
  bool act(Worker worker, std::unique_lock<std::mutex>& lock) {
    FarmChunk& chunk = m_chunks[+worker];
    const Seconds now = steady_seconds();
    const pattern::FarmDecider::Next next = m_decider.next(m_free.back(), now);
    switch (next.answer) {
      case pattern::FarmDecider::Answer::work:
        fill(chunk, next.task, now);
        perform(worker, chunk, now, lock);
        return true;
      case pattern::FarmDecider::Answer::propose: propose(lock); return true;
      case pattern::FarmDecider::Answer::wait:
        if (help(worker, lock)) return true;
        chunk.waited = true;
        wait(next.until, lock);
        return true;
      case pattern::FarmDecider::Answer::end: break;
    }
    return false;
  }

  void wait(std::optional<Seconds> until, std::unique_lock<std::mutex>& lock) {
    ++m_waiting;
    if (until)
      m_changed.wait_for(lock, std::chrono::duration<double>(time_left(*until)));
    else
      m_changed.wait(lock);
    --m_waiting;
  }

  void wake() {
    if (m_waiting > 0) m_changed.notify_all();
  }

  /// Takes items from the source: as many as it gives in a short time, but not more than all
  /// threads take next. A source that sees outcomes is called with the lock, because they must not
  /// change meanwhile.
  void propose(std::unique_lock<std::mutex>& lock) {
    bool ended = false;
    if (m_part.facts().sees_outcomes) {
      std::unique_ptr<FarmSlot> slot = m_slots.blank();
      if (m_slots.take(*slot))
        m_slots.add(std::move(slot));
      else
        ended = true;
    } else {
      const auto wanted = static_cast<std::int64_t>(m_chunk) * m_options.workers;
      const std::int64_t count =
          m_chunk == 1 ? 1 : std::min({wanted, m_decider.room(), m_source_chunk});
      for (std::int64_t i = 0; i < count; ++i) m_given.push_back(m_slots.blank());
      const Seconds start = steady_seconds();
      std::size_t given = 0;
      {
        const Unlocked unlocked(lock);
        while (given < m_given.size() && m_part.take(*m_given[given]->item, 0)) ++given;
      }
      m_source_chunk = chunk_size(m_source_chunk, count, steady_seconds() - start, wanted);
      ended = given < m_given.size();
      for (std::size_t i = 0; i < given; ++i) m_slots.add(std::move(m_given[i]));
      for (std::size_t i = given; i < m_given.size(); ++i) m_slots.keep(std::move(m_given[i]));
      m_given.clear();
    }
    if (ended) m_decider.proposed(false);
    wake();
  }

  /// Gives a thread `first` and the next items that are ready.
  void fill(FarmChunk& chunk, const pattern::FarmTask& first, Seconds now) {
    chunk.count = 0;
    const auto take = [&](const pattern::FarmTask& task) {
      FarmAttempt& taken = chunk.tasks[chunk.count++];
      taken.task = task;
      taken.holder = m_free.back();
      m_free.pop_back();
      taken.slot = &m_slots[task.item];
      ++taken.slot->users;
      taken.taken = false;
    };
    take(first);
    while (chunk.count < static_cast<std::uint32_t>(m_chunk) && m_decider.ready() > 0)
      take(m_decider.next(m_free.back(), now).task);
    chunk.next = 0;
  }

  /// Works on the tasks of a chunk that no other thread takes.
  void perform(Worker worker, FarmChunk& chunk, Seconds begin, std::unique_lock<std::mutex>& lock) {
    std::int64_t done = 0;
    {
      const Unlocked unlocked(lock);
      for (std::uint32_t i = chunk.next++; i < chunk.count && !m_stop; i = chunk.next++) {
        chunk.tasks[i].taken = true;
        ++done;
        attempt(chunk.tasks[i]);
      }
    }
    const Seconds end = steady_seconds();
    m_chunk =
        static_cast<int>(chunk_size(m_chunk, std::max<std::int64_t>(done, 1), end - begin, m_most));
    if (m_options.in_flight == 0) m_decider.expect_chunks(m_chunk);
    for (std::uint32_t i = 0; i < chunk.count; ++i)
      if (chunk.tasks[i].taken) report(worker, chunk.tasks[i], end);
    wake();
  }

  /// Takes a task from the chunk of another thread, if there is one.
  bool help(Worker worker, std::unique_lock<std::mutex>& lock) {
    for (FarmChunk& chunk : m_chunks) {
      if (chunk.next >= chunk.count) continue;
      const std::uint32_t i = chunk.next++;
      if (i >= chunk.count) continue;
      // The owner of the chunk may fill it again before this attempt ends.
      FarmAttempt& shared = chunk.tasks[i];
      std::unique_ptr<AnyFarmOutcome>& spare = m_chunks[+worker].spare;
      FarmAttempt task{shared.task, shared.holder, shared.slot,
                       std::exchange(shared.outcome, std::move(spare))};
      {
        const Unlocked unlocked(lock);
        attempt(task);
      }
      report(worker, task, steady_seconds());
      spare = std::move(task.outcome);
      wake();
      return true;
    }
    return false;
  }

  void attempt(FarmAttempt& task) {
    if (m_options.trail != nullptr) task.start = steady_seconds();
    farm_attempt(m_part, *task.slot->item, task.task, *task.outcome);
    if (m_options.trail != nullptr) task.end = steady_seconds();
  }

  void report(Worker worker, FarmAttempt& task, Seconds now) {
    bool& waited = m_chunks[+worker].waited;
    if (m_options.trail != nullptr) {
      const Trail::Event event{worker, task.task.item, task.start, task.end, waited};
      m_options.trail->add(event);
    }
    waited = false;
    const pattern::FarmDecider::Fate fate =
        m_decider.report(task.holder, task.outcome->succeeded, now);
    m_free.push_back(task.holder);
    if (fate == pattern::FarmDecider::Fate::finished) m_slots.finish(task.task.item, task.outcome);
    m_slots.release(*task.slot);
  }

  const pattern::FarmOptions& m_options;
  const int m_most;  ///< the most items of a chunk
  pattern::FarmDecider m_decider;
  FarmSlots m_slots;
  FarmPart& m_part;
  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::vector<FarmChunk> m_chunks;  ///< by thread
  std::vector<Worker> m_free;       ///< the workers of the decider without a task
  /// What the thread that calls the source fills.
  std::vector<std::unique_ptr<FarmSlot>> m_given;
  std::int64_t m_source_chunk = 1;
  int m_chunk = 1;  ///< items that a thread takes at a time
  int m_waiting = 0;
  std::atomic<bool> m_stop{false};
  std::exception_ptr m_error;
};

HEDDLE_INLINE pattern::FarmReport thread_farm(const pattern::FarmOptions& options, FarmPart& part) {
  expects(options.prefetch == 1, [&] {
    return ErrorInfo{"heddle::pattern::farm", "only ranks hold several items at a time",
                     text("prefetch = ", options.prefetch), "pass a transport, or leave it at 1"};
  });
  ThreadFarm farm(options, part);
  {
    Threads others(options.workers - 1, [&farm](int w) { farm.serve(Worker{w}); });
    others.begin_all("heddle::pattern::farm");
    farm.serve(Worker{0});
  }
  return farm.end();
}

}  // namespace heddle::inline v0::impl
