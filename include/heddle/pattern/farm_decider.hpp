// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FarmDecider: decides who works on which item of a farm. It has no clock, no threads and no
/// messages: a driver tells it the time and what happened. The farm of threads, the farm over ranks
/// and the farm in virtual time are three drivers.

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/internal/ring_queue.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/pattern/farm_options.hpp>

namespace heddle::inline v0 {

namespace pattern {

namespace impl {

/// Returns the wait before attempt `task.attempt` > 1: backoff * 2^(attempt - 2), at most
/// longest_backoff, times a number in [0.5, 1) that depends only on (seed, item, attempt).
/// @throws contract_error if an option is out of range, if `task.item` is negative, or if
///         `task.attempt` is below 2.
[[nodiscard]] Seconds farm_backoff(const FarmOptions& options, const FarmTask& task);

}  // namespace impl

}  // namespace pattern

namespace impl {

/// The most workers of a decider.
inline constexpr int most_workers = most_threads;

/// Checks the options of a farm. @throws contract_error if one is out of range.
void check_farm(const pattern::FarmOptions& options);

}  // namespace impl

namespace pattern {

/// Decides who works on which item.
class FarmDecider {
 public:
  /// The answer to a worker that asks for work.
  enum class Answer : std::uint8_t {
    work,     ///< work on Next::task
    propose,  ///< take an item from the source, call proposed(), and ask again
    wait,     ///< ask again at Next::until, or when something has happened
    end,      ///< stop: all items are finished, and the source has no more
  };

  /// An answer with its details.
  struct Next {
    Answer answer = Answer::end;   ///< what the worker does next
    FarmTask task;                 ///< for Answer::work
    std::optional<Seconds> until;  ///< for Answer::wait; nothing: only an event can change it
  };

  /// The consequence of an attempt that has ended.
  enum class Fate : std::uint8_t {
    finished,  ///< the item is finished: its result or its error counts
    again,     ///< the attempt failed, and the item will be tried again
    late,      ///< the item has been finished by another worker: drop what this one brings
  };

  /// @throws contract_error if an option is out of range.
  explicit FarmDecider(const FarmOptions& options);

  /// Returns what `worker` should do at the time `now`. If it is to work, the task is its own until
  /// it reports, or until the lease ends.
  [[nodiscard]] Next next(Worker worker, Seconds now);

  /// Notes that the source gave the item with the number items(), or that it has no more.
  void proposed(bool given);

  /// Notes that the source gave the item with the number items(), and that its outcome is known
  /// already: nobody works on it.
  void known();

  /// Notes that `worker` has begun its task only now, so that its lease begins now. It has no
  /// effect if the worker has no task, or if the lease has ended already.
  /// @throws contract_error if there is no such worker.
  void renew(Worker worker, Seconds now);

  /// Ends the leases that are over at the time `now`. next() does so too.
  void end_leases(Seconds now);

  /// Returns true if the lease of the worker's task has ended.
  [[nodiscard]] bool is_silent(Worker worker) const {
    const std::optional<Held>& held = m_held[+worker];
    return held && held->expired;
  }

  /// Notes that `worker` ended its task, with a result or with a failure.
  /// @throws contract_error if the worker has no task.
  Fate report(Worker worker, bool succeeded, Seconds now);

  /// Notes that FarmOptions::in_flight counts chunks of so many items from now on.
  /// @throws contract_error if `items` is below 1.
  void expect_chunks(int items);

  /// Returns how many items may be taken from the source now.
  [[nodiscard]] std::int64_t room() const;

  /// Returns the number of items that wait for a worker and have had no failed attempt.
  [[nodiscard]] std::size_t ready() const noexcept { return m_ready.size(); }

  /// Returns the number of items that the source has given.
  [[nodiscard]] std::int64_t items() const noexcept { return m_items; }
  /// Returns how many items from the first on are finished without a gap.
  [[nodiscard]] std::int64_t finished_prefix() const noexcept { return m_base; }
  /// Returns the number of attempts that were begun.
  [[nodiscard]] std::int64_t attempts() const noexcept { return m_attempts; }
  /// Returns the number of reports that came too late.
  [[nodiscard]] std::int64_t late() const noexcept { return m_late; }

 private:
  /// An item that is not finished, or that follows one.
  struct Item {
    int attempt = 1;  ///< the present or next one
    bool finished = false;
  };
  /// The task of a worker.
  struct Held {
    FarmTask task;
    Seconds until = 0;     ///< the end of the lease
    bool expired = false;  ///< the item has been given back
  };
  /// An item that waits for its time.
  struct Waiting {
    Seconds time;
    std::int64_t item;
    friend auto operator<=>(const Waiting&, const Waiting&) = default;
  };

  Item& item(std::int64_t number) { return m_open[static_cast<std::size_t>(number - m_base)]; }
  [[nodiscard]] bool may_propose() const;
  Next give(Worker worker, std::int64_t number, Seconds now);
  void finish(std::int64_t number);

  FarmOptions m_options;
  std::vector<std::optional<Held>> m_held;  ///< by worker
  heddle::impl::RingQueue<Item> m_open;     ///< the items from m_base on
  heddle::impl::RingQueue<std::int64_t>
      m_ready;  ///< items that nobody has tried or whose lease ended
  std::set<Waiting> m_waiting;
  std::int64_t m_base = 0;
  std::int64_t m_items = 0;
  std::int64_t m_unfinished = 0;
  std::int64_t m_attempts = 0;
  std::int64_t m_late = 0;
  int m_chunk = 1;           ///< items of a chunk
  bool m_ended = false;      ///< the source has no more
  bool m_proposing = false;  ///< true while a worker takes an item from the source
};

}  // namespace pattern

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/farm_decider.ipp>
#endif
