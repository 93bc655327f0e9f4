// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// race() over the ranks of a transport: each rank runs one search, and a result ends the searches
/// that can no longer win.

#include <concepts>
#include <exception>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/abort_on_error.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/gather_trail.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/pattern/impl/rank_race.hpp>
#include <heddle/pattern/impl/search_result.hpp>
#include <heddle/pattern/race_options.hpp>
#include <heddle/pattern/walker.hpp>

namespace heddle::inline v0::pattern {

/// Runs the search of one walker on each rank, in the calling thread. All ranks call it. The
/// winner's rank gets its result, and all ranks know who won. When its search ends, each rank sends
/// one message of 24 bytes to each other rank. A trail needs more messages. For the rest see the
/// race of threads.
///
/// With RaceOptions::Order::by_time, a rank's search is beaten when the rank hears of a result. If
/// several ranks find one before they hear of each other, the least work wins, because the ranks
/// have no common clock.
///
/// @throws contract_error, before any search, if `order` is no enumerator, if `wait` is invalid, or
///         if `walkers` or `threads` is set. The other ranks throw communication_error then.
/// Throws the exception of this rank's search; communication_error if another rank's search threw,
///         or if a rank does not end within options.wait.watchdog seconds. The transport is aborted
///         then.
template <Transport T, class Search>
requires std::invocable<Search&, Walker&>
[[nodiscard]] RaceResult<heddle::impl::Found<Search>> race(T& transport, const RaceOptions& options,
                                                           Search&& search) {
  constexpr const char* where = "heddle::pattern::race";
  abort_on_error(transport, where, [&] {
    heddle::impl::expect_enumerator(where, "order", options.order, RaceOptions::Order::by_work);
    expects(options.walkers == 1 && options.threads == 0, [&] {
      return ErrorInfo{where, "each rank runs one walker, in the thread that calls",
                       text("walkers = ", options.walkers, ", threads = ", options.threads),
                       "leave walkers at 1 and threads at 0"};
    });
    heddle::impl::expect_valid(options.wait, where);
  });
  const bool recorded = options.trail != nullptr;
  const Seconds offset = recorded ? heddle::impl::clock_offset(transport, options.wait) : 0;
  heddle::impl::RankRace<T> shared(transport, options.order, options.wait);
  Walker walker(shared, transport.rank().value);
  RaceResult<heddle::impl::Found<Search>> result;
  const Seconds start = steady_seconds();
  try {
    result.value = search(walker);
  } catch (const std::exception& error) {
    shared.give_up(error.what());
    throw;
  } catch (...) {
    shared.give_up("an exception that is no std::exception");
    throw;
  }
  const Seconds stop = steady_seconds();
  shared.finish({{walker.work_done(), transport.rank().value}, result.value ? 1u : 0u});
  for (const auto& end : shared.ends()) result.work.push_back(end.work.work);
  result.winner = shared.winner();
  if (recorded) {
    Trail mine;
    mine.add({Worker{0}, walker.number(), start, stop, false});
    options.trail->append(heddle::impl::gather_trail(transport, mine, offset, options.wait));
  }
  if (result.winner != walker.number()) result.value.reset();
  return result;
}

}  // namespace heddle::inline v0::pattern
