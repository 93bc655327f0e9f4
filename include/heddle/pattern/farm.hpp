// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// farm(): many independent items on threads, with retries. Results come in the order of the items
/// or as they finish, and a source may choose the next item by the results so far.

#include <cstdint>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include <heddle/pattern/farm_options.hpp>
#include <heddle/pattern/farm_outcome.hpp>
#include <heddle/pattern/impl/farm_part.hpp>
#include <heddle/pattern/impl/farm_types.hpp>
#include <heddle/pattern/impl/thread_farm.hpp>

namespace heddle::inline v0::pattern {

/// Runs `work(item)` for every item of `source` on threads, and gives each outcome to `sink`.
///
/// - `source()` returns a std::optional of an item, or nothing at the end. If options.lag is set,
///   it is called as `source(outcomes)`, with a std::span of the outcomes of the items up to
///   i - lag. One thread at a time calls it.
/// - `work(item)`, or `work(item, task)` with the FarmTask of the attempt, returns the result. If
///   it throws, the item is tried again after a wait, up to options.attempts times. Several threads
///   call it at once.
/// - `sink(number, outcome)` gets every outcome once, in the order of the items if options.ordered
///   is set. An item that failed has the text of its last error. One thread at a time calls it, and
///   the others do not get new items while it runs, so it should be short.
///
/// A worker takes light items in chunks of up to 64, as many as last about 50 us, if neither `lag`
/// nor `lease` is set. Other workers take items from its chunk when they have nothing else to do.
/// With options.journal, finished items are written to a file before `sink` gets them. A later call
/// with the same source continues from it: `sink` gets all outcomes, and `work` is called for the
/// items that were not finished.
///
/// At most options.in_flight items are in memory at a time. A worker that is silent for longer than
/// options.lease loses its item to another one; its result is dropped if it comes late. The call
/// still waits for its thread at the end.
///
/// @throws contract_error if an option is out of range, or if a journal is set and the results
///         are not Sendable; format_error as FarmJournal does; the exception of `source` or `sink`,
///         after all threads have ended: once one has thrown, `sink` gets nothing more;
///         std::system_error, before any work, if the system does not start the threads.
template <class Source, class Work, class Sink>
FarmReport farm(const FarmOptions& options, Source&& source, Work&& work, Sink&& sink) {
  heddle::impl::FarmPartOf<Source, Work, Sink> part(source, work, sink);
  return heddle::impl::thread_farm(options, part);
}

/// Runs `work` for every item of a range, and returns the outcomes in the order of the items. The
/// range must outlive the call. For the rest see the farm above; options.lag has no meaning here.
/// Throws as the farm above.
template <std::ranges::forward_range Items, class Work>
[[nodiscard]] auto farm(const FarmOptions& options, Items&& items, Work&& work) {
  using Given = std::ranges::range_value_t<Items>;
  using Result = heddle::impl::FarmResult<Work, Given>;
  FarmOptions used = options;
  used.lag = 0;
  std::vector<FarmOutcome<Result>> outcomes(static_cast<std::size_t>(std::ranges::distance(items)));
  auto next = std::ranges::begin(items);
  const auto end = std::ranges::end(items);
  farm(
      used,
      [&]() -> std::optional<const Given*> {
        if (next == end) return std::nullopt;
        return &*next++;
      },
      [&](const Given* item, const FarmTask& task) {
        return heddle::impl::farm_work(work, *item, task);
      },
      [&](std::int64_t number, FarmOutcome<Result>&& outcome) {
        outcomes[static_cast<std::size_t>(number)] = std::move(outcome);
      });
  return outcomes;
}

}  // namespace heddle::inline v0::pattern
