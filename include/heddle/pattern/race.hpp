// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// race(): independent searches side by side, of which the first result ends all. The walkers are
/// threads of one process, or the ranks of a Transport. plan/race_prediction.hpp predicts how much
/// faster a race is than one search.

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/impl/threads.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/gather_trail.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/pattern/impl/rank_race.hpp>
#include <heddle/pattern/impl/thread_race.hpp>
#include <heddle/pattern/walker.hpp>

namespace heddle::inline v0 {

/// The options of a race of threads.
struct RaceOptions {
  int walkers = 1;                       ///< number of searches, at least 1
  int threads = 0;                       ///< threads that run them, or 0 for one per walker
  RaceOrder order = RaceOrder::by_time;  ///< who wins
  RaceReport* report = nullptr;          ///< if set, gets the work of the walkers
  Trail* trail = nullptr;                ///< if set, gets an event for each walker that began
};

/// The options of a race of ranks.
struct RankRaceOptions {
  RaceOrder order = RaceOrder::by_time;  ///< who wins
  RaceReport* report = nullptr;          ///< if set, gets the work of the walkers, on every rank
  ExecuteOptions wait = {};              ///< how a rank waits for the others at the end
  /// If set, gets an event for each walker, in rank 0's steady_seconds(). Each rank is a worker.
  /// All ranks set it or none.
  Trail* trail = nullptr;
};

namespace impl {

/// The type of a search: it returns an optional result, nothing if it gives up.
template <class Search>
using Found = std::invoke_result_t<Search&, Walker&>;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

}  // namespace impl

/// Runs `search(walker)` for each walker on threads, and returns the winner's result, or nothing if
/// all walkers gave up. `search` returns a std::optional; it should ask walker.stop_requested()
/// every few steps, and return nothing if that is true. The other walkers then end, and the call
/// waits for all. In a race by_work the winner does not depend on the number of threads or on the
/// speed of the machine, if `search` depends only on the walker's number and calls walker.work().
/// If there are fewer threads than walkers, a walker begins when another one ends.
///
/// @throws contract_error if there is no walker, or if `threads` is negative; the exception of a
///         search, after all have ended: of several the one of the lowest walker;
///         std::system_error, before any search, if the system does not start the threads.
template <class Search>
requires std::invocable<Search&, Walker&>
[[nodiscard]] impl::Found<Search> race(const RaceOptions& options, Search&& search) {
  using Result = impl::Found<Search>;
  static_assert(impl::is_optional<Result>, "a search of heddle::race() returns a std::optional");
  expects(options.walkers >= 1 && options.threads >= 0, [&] {
    return ErrorInfo{"heddle::race", "a race needs at least one walker and one thread",
                     text("walkers = ", options.walkers, ", threads = ", options.threads)};
  });
  const auto walkers = static_cast<std::uint32_t>(options.walkers);
  const std::uint32_t threads =
      options.threads == 0 ? walkers
                           : std::min(walkers, static_cast<std::uint32_t>(options.threads));
  impl::ThreadRace<Result> shared(options.order);
  std::vector<std::uint64_t> work(walkers, 0);
  std::vector<std::exception_ptr> errors(walkers);
  std::vector<TrailEvent> events(options.trail != nullptr ? walkers : 0);
  std::vector<char> began(walkers, 0);
  std::atomic<std::uint32_t> next{0};
  const auto run = [&](std::uint32_t thread) {
    for (std::uint32_t w = next++; w < walkers; w = next++) {
      Walker walker(shared, w);
      if (walker.stop_requested()) continue;
      const Seconds start = steady_seconds();
      try {
        Result result = search(walker);
        if (result) shared.finish({walker.work_done(), w}, std::move(result));
      } catch (...) {
        errors[w] = std::current_exception();
        shared.fail();
      }
      work[w] = walker.work_done();
      if (options.trail == nullptr) continue;
      events[w] = {Worker{thread}, w, start, steady_seconds(), false};
      began[w] = 1;
    }
  };
  {
    impl::Threads others(static_cast<int>(threads) - 1,
                         [&run](int t) { run(static_cast<std::uint32_t>(t)); });
    others.begin_all("heddle::race");
    run(0);
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  if (options.report != nullptr) *options.report = {std::move(work), shared.winner()};
  if (options.trail != nullptr) {
    options.trail->expect_workers(static_cast<int>(threads));
    for (std::uint32_t w = 0; w < walkers; ++w)
      if (began[w] != 0) options.trail->add(events[w]);
  }
  return shared.take();
}

/// Runs the search of one walker on each rank, in the calling thread. All ranks call it. The
/// winner's rank gets its result, and all others get nothing; options.report tells every rank who
/// won. Each rank sends one message of 24 bytes to each other rank. For the rest see the race of
/// threads.
///
/// @throws the exception of this rank's search; communication_error if another rank's search threw,
///         or if a rank does not end within options.wait.watchdog seconds. The transport is aborted
///         then.
template <Transport T, class Search>
requires std::invocable<Search&, Walker&>
[[nodiscard]] impl::Found<Search> race(T& transport, const RankRaceOptions& options,
                                       Search&& search) {
  using Result = impl::Found<Search>;
  static_assert(impl::is_optional<Result>, "a search of heddle::race() returns a std::optional");
  const bool recorded = options.trail != nullptr;
  const Seconds offset = recorded ? clock_offset(transport, options.wait) : 0;
  impl::RankRace<T> shared(transport, options.order, options.wait);
  Walker walker(shared, transport.rank().value);
  Result result;
  const Seconds start = steady_seconds();
  try {
    result = search(walker);
  } catch (const std::exception& error) {
    shared.give_up(error.what());
    throw;
  } catch (...) {
    shared.give_up("an exception that is no std::exception");
    throw;
  }
  const Seconds stop = steady_seconds();
  shared.finish({{walker.work_done(), transport.rank().value}, result ? 1u : 0u});
  if (options.report != nullptr) {
    options.report->work.clear();
    for (const auto& end : shared.ends()) options.report->work.push_back(end.work.work);
    options.report->winner = shared.winner();
  }
  if (recorded) {
    Trail mine;
    mine.add({Worker{0}, walker.number(), start, stop, false});
    options.trail->append(gather_trail(transport, mine, offset, options.wait));
  }
  if (shared.winner() != walker.number()) result.reset();
  return result;
}

}  // namespace heddle::inline v0
