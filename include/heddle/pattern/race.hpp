// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// race(): independent searches side by side, of which the first result ends all. The walkers are
/// threads of one process; pattern/rank_race.hpp has the race of ranks. How much faster a race is
/// than one search predicts systems/race_prediction/race_prediction.hpp.

#include <concepts>
#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/pattern/impl/search_result.hpp>
#include <heddle/pattern/impl/thread_race.hpp>
#include <heddle/pattern/race_options.hpp>
#include <heddle/pattern/walker.hpp>

namespace heddle::inline v0::pattern {

/// Runs `search(walker)` for each walker on threads, and returns the winner with its result, or no
/// result if all walkers gave up. `search` returns a std::optional; it should ask
/// walker.stop_requested() every few steps, and return nothing if that is true. The other walkers
/// then end, and the call waits for all. In a race by_work the winner does not depend on the number
/// of threads or on the speed of the machine, if `search` depends only on the walker's number and
/// calls walker.work(). If there are fewer threads than walkers, a walker begins when another one
/// ends.
///
/// @throws contract_error if `walkers` is not from 1 to 2^22, if `threads` is negative, or if
///         `order` is no enumerator; the exception of a search, after all have ended: of several
///         the one of the lowest walker; std::system_error, before any search, if the system does
///         not start the threads.
template <class Search>
requires std::invocable<Search&, Walker&>
[[nodiscard]] RaceResult<heddle::impl::Found<Search>> race(const RaceOptions& options,
                                                           Search&& search) {
  RaceResult<heddle::impl::Found<Search>> best;
  best.winner = heddle::impl::thread_race(
      options, best.work, [&](Walker& walker, heddle::impl::ThreadRace& race) {
        auto found = search(walker);
        if (found) heddle::impl::keep_best(race, walker, [&] { best.value = std::move(found); });
      });
  return best;
}

}  // namespace heddle::inline v0::pattern

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/impl/thread_race.ipp>
#endif
