// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The threads of a farm: they ask the decider, and take turns to call the source and the sink.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/pattern/farm_decider.hpp>
#include <heddle/pattern/farm_outcome.hpp>
#include <heddle/pattern/impl/farm_chunk.hpp>
#include <heddle/pattern/impl/farm_slots.hpp>
#include <heddle/pattern/impl/farm_types.hpp>
#include <heddle/pattern/impl/unlocked.hpp>

namespace heddle::inline v0::impl {

/// One farm. All members but the constants are guarded by m_mutex, except that a worker reads the
/// item of a slot that it uses, and takes the next task of its chunk by an atomic number.
///
/// A thread takes a chunk of items at a time, as many as take about `chunk_time`. So light items
/// share the cost of the lock, and heavy ones go one by one. Each item of a chunk is a worker of
/// the decider. A thread that finds nothing else to do takes items from the chunks of others, so
/// none waits behind a heavy one.
template <class Source, class Work, class Sink>
class ThreadFarm {
  using Given = typename FarmTypes<Source, Work>::Given;
  using Result = typename FarmTypes<Source, Work>::Result;
  static_assert(!std::is_void_v<Result>, "the work of heddle::farm() returns a result");
  static constexpr bool sees_outcomes = !std::is_invocable_v<Source&>;

 public:
  ThreadFarm(const FarmOptions& options, Source& source, Work& work, Sink& sink)
      : m_options(options),
        m_most(most_of_chunk(options)),
        m_decider(in_chunks(options, m_most)),
        m_slots(options, m_decider, sink),
        m_source(source),
        m_work(work),
        m_chunks(static_cast<std::size_t>(options.workers)) {
    m_slots.open();
    if (options.trail != nullptr) options.trail->expect_workers(options.workers);
    for (Chunk& chunk : m_chunks) chunk.tasks.resize(static_cast<std::size_t>(m_most));
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
    }
    m_changed.notify_all();
  }

  /// Returns the counts after all threads have ended, or throws what ended them.
  FarmReport end() {
    if (m_error) std::rethrow_exception(m_error);
    return m_slots.end();
  }

 private:
  using Slots = FarmSlots<Source, Sink, Given, Result, false>;
  using Task = FarmAttempt<typename Slots::Slot, Result>;
  using Chunk = FarmChunk<Task>;

  /// Does what the decider answers; false at the end.
  bool act(Worker worker, std::unique_lock<std::mutex>& lock) {
    Chunk& chunk = m_chunks[+worker];
    const Seconds now = steady_seconds();
    const FarmDecider::Next next = m_decider.next(m_free.back(), now);
    switch (next.answer) {
      case FarmDecider::Answer::work:
        fill(chunk, next.task, now);
        perform(worker, chunk, now, lock);
        return true;
      case FarmDecider::Answer::propose: propose(lock); return true;
      case FarmDecider::Answer::wait:
        if (help(worker, lock)) return true;
        chunk.waited = true;
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

  /// Takes items from the source: as many as it gives in a short time, but not more than all
  /// threads take next. A source that sees outcomes is called with the lock, because they must not
  /// change meanwhile.
  void propose(std::unique_lock<std::mutex>& lock) {
    bool ended = false;
    if constexpr (sees_outcomes) {
      if (std::optional<Given> item = m_slots.take(m_source))
        m_slots.add(std::move(*item));
      else
        ended = true;
    } else {
      const auto wanted = static_cast<std::int64_t>(m_chunk) * m_options.workers;
      const std::int64_t count =
          m_chunk == 1 ? 1 : std::min({wanted, m_decider.room(), m_source_chunk});
      const Seconds start = steady_seconds();
      {
        const Unlocked unlocked(lock);
        while (!ended && static_cast<std::int64_t>(m_given.size()) < count) {
          if (std::optional<Given> item = m_source())
            m_given.push_back(std::move(*item));
          else
            ended = true;
        }
      }
      m_source_chunk = chunk_size(m_source_chunk, count, steady_seconds() - start, wanted);
      for (Given& item : m_given) m_slots.add(std::move(item));
      m_given.clear();
    }
    if (ended) m_decider.proposed(false);
    wake();
  }

  /// Gives a thread `first` and the next items that are ready.
  void fill(Chunk& chunk, const FarmTask& first, Seconds now) {
    chunk.count = 0;
    const auto take = [&](const FarmTask& task) {
      Task& taken = chunk.tasks[chunk.count++];
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
  void perform(Worker worker, Chunk& chunk, Seconds begin, std::unique_lock<std::mutex>& lock) {
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
    for (Chunk& chunk : m_chunks) {
      if (chunk.next >= chunk.count) continue;
      const std::uint32_t i = chunk.next++;
      if (i >= chunk.count) continue;
      Task task{chunk.tasks[i].task, chunk.tasks[i].holder, chunk.tasks[i].slot};
      {
        const Unlocked unlocked(lock);
        attempt(task);
      }
      report(worker, task, steady_seconds());
      wake();
      return true;
    }
    return false;
  }

  void attempt(Task& task) {
    if (m_options.trail != nullptr) task.start = steady_seconds();
    task.outcome = farm_attempt<Result>(m_work, std::as_const(*task.slot->item), task.task);
    if (m_options.trail != nullptr) task.end = steady_seconds();
  }

  void report(Worker worker, Task& task, Seconds now) {
    bool& waited = m_chunks[+worker].waited;
    if (m_options.trail != nullptr) {
      const TrailEvent event{worker, task.task.item, task.start, task.end, waited};
      m_options.trail->add(event);
    }
    waited = false;
    const bool succeeded = task.outcome.value.has_value();
    const FarmDecider::Fate fate = m_decider.report(task.holder, succeeded, now);
    m_free.push_back(task.holder);
    if (fate == FarmDecider::Fate::finished)
      m_slots.finish(task.task.item, std::move(task.outcome));
    m_slots.release(*task.slot);
  }

  const FarmOptions& m_options;
  const int m_most;  ///< the most items of a chunk
  FarmDecider m_decider;
  Slots m_slots;
  Source& m_source;
  Work& m_work;
  std::mutex m_mutex;
  std::condition_variable m_changed;
  std::vector<Chunk> m_chunks;  ///< by thread
  std::vector<Worker> m_free;   ///< the workers of the decider without a task
  std::vector<Given> m_given;   ///< what the thread that calls the source has got
  std::int64_t m_source_chunk = 1;
  int m_chunk = 1;  ///< items that a thread takes at a time
  int m_waiting = 0;
  std::atomic<bool> m_stop{false};
  std::exception_ptr m_error;
};

}  // namespace heddle::inline v0::impl
