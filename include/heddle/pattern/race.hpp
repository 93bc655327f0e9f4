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
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/pattern/walker.hpp>

namespace heddle::inline v0 {

/// The options of a race of threads.
struct RaceOptions {
  int walkers = 1;                       ///< number of searches, at least 1
  int threads = 0;                       ///< threads that run them, or 0 for one per walker
  RaceOrder order = RaceOrder::by_time;  ///< who wins
  RaceReport* report = nullptr;          ///< if set, gets the work of the walkers
};

/// The options of a race of ranks.
struct RankRaceOptions {
  RaceOrder order = RaceOrder::by_time;  ///< who wins
  RaceReport* report = nullptr;          ///< if set, gets the work of the walkers, on every rank
  ExecuteOptions wait = {};              ///< how a rank waits for the others at the end
};

namespace impl {

/// The type of a search: it returns an optional result, nothing if it gives up.
template <class Search>
using Found = std::invoke_result_t<Search&, Walker&>;

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// The state that the threads of a race share.
template <class Result>
class ThreadRace final : public Race {
 public:
  explicit ThreadRace(RaceOrder order) noexcept : m_by_work(order == RaceOrder::by_work) {}

  bool is_beaten(WalkerWork so_far) override {
    const std::uint64_t best = m_best_work.load(std::memory_order_acquire);
    if (best == none) return m_failed.load(std::memory_order_relaxed);
    if (!m_by_work || so_far.work > best) return true;
    if (so_far.work < best) return m_failed.load(std::memory_order_relaxed);
    const std::lock_guard lock(m_mutex);
    return m_failed || m_best < so_far;
  }

  void finish(WalkerWork work, Result result) {
    const std::lock_guard lock(m_mutex);
    if (m_result && (!m_by_work || m_best < work)) return;
    m_best = work;
    m_result = std::move(result);
    m_best_work.store(work.work, std::memory_order_release);
  }

  void fail() noexcept { m_failed = true; }

  [[nodiscard]] int winner() const { return m_result ? static_cast<int>(m_best.walker) : -1; }
  [[nodiscard]] Result take() { return std::move(m_result); }

 private:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  const bool m_by_work;
  std::atomic<std::uint64_t> m_best_work{none};
  std::atomic<bool> m_failed{false};
  std::mutex m_mutex;
  WalkerWork m_best;
  Result m_result;
};

/// The state of a race as one rank knows it. Every rank sends one message to each other rank, when
/// its own search ends.
template <Transport T>
class RankRace final : public Race {
 public:
  struct End {
    WalkerWork work;
    std::uint32_t found = 0;
  };

  RankRace(T& transport, const RankRaceOptions& options)
      : m_transport(transport), m_options(options) {
    const auto ranks = static_cast<std::uint32_t>(transport.size());
    m_ends.resize(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r)
      if (r != transport.rank().value)
        m_open.push_back(
            {r, transport.receive(Rank{r}, control_lane, bytes_of(m_ends[r]), sizeof(End))});
  }

  bool is_beaten(WalkerWork so_far) override {
    for (std::size_t i = 0; i < m_open.size();) {
      if (!m_transport.test(m_open[i].request)) {
        ++i;
        continue;
      }
      note(m_ends[m_open[i].rank]);
      m_open.erase(m_open.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (m_transport.aborted()) return true;
    if (!m_best) return false;
    return m_options.order == RaceOrder::by_time || *m_best < so_far;
  }

  /// Tells all ranks how this one ended, and waits until all have ended.
  void finish(End own) {
    const std::uint32_t self = m_transport.rank().value;
    m_ends[self] = own;
    std::vector<typename T::Request> sends;
    try {
      for (std::uint32_t r = 0; r < m_ends.size(); ++r)
        if (r != self)
          sends.push_back(
              m_transport.send(Rank{r}, control_lane, bytes_of(m_ends[self]), sizeof(End)));
      for (auto& request : sends) heddle::finish(m_transport, request, "race", m_options.wait);
      for (auto& [rank, request] : m_open)
        heddle::finish(m_transport, request, "race", m_options.wait);
      m_open.clear();
    } catch (const std::exception& error) {
      give_up(error.what());
      for (auto& request : sends) m_transport.cancel(request);
      throw;
    }
    m_best.reset();
    for (const End& end : m_ends) note(end);
  }

  /// Tells all ranks that this one failed.
  void give_up(const char* reason) {
    if (!m_transport.aborted()) m_transport.abort({m_transport.rank(), "race", reason});
    for (auto& [rank, request] : m_open) m_transport.cancel(request);
    m_open.clear();
  }

  [[nodiscard]] const std::vector<End>& ends() const noexcept { return m_ends; }
  [[nodiscard]] int winner() const { return m_best ? static_cast<int>(m_best->walker) : -1; }

 private:
  struct Open {
    std::uint32_t rank;
    typename T::Request request;
  };

  static std::byte* bytes_of(End& end) { return reinterpret_cast<std::byte*>(&end); }

  void note(const End& end) {
    if (end.found != 0 && (!m_best || end.work < *m_best)) m_best = end.work;
  }

  T& m_transport;
  const RankRaceOptions& m_options;
  std::vector<End> m_ends;  ///< by rank
  std::vector<Open> m_open;
  std::optional<WalkerWork> m_best;
};

}  // namespace impl

/// Runs `search(walker)` for each walker on threads, and returns the winner's result, or nothing if
/// all walkers gave up. `search` returns a std::optional; it should ask walker.stop_requested()
/// every few steps, and return nothing if that is true. The other walkers then end, and the call
/// waits for all. In a race by_work the winner does not depend on the number of threads or on the
/// speed of the machine, if `search` depends only on the walker's number and calls walker.work().
/// If there are fewer threads than walkers, a walker begins when another one ends.
///
/// @throws contract_error if there is no walker, or if `threads` is negative; the exception of a
///         search, after all have ended: of several the one of the lowest walker.
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
  std::atomic<std::uint32_t> next{0};
  const auto run = [&] {
    for (std::uint32_t w = next++; w < walkers; w = next++) {
      Walker walker(shared, w);
      if (walker.stop_requested()) continue;
      try {
        Result result = search(walker);
        if (result) shared.finish({walker.work_done(), w}, std::move(result));
      } catch (...) {
        errors[w] = std::current_exception();
        shared.fail();
      }
      work[w] = walker.work_done();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::uint32_t t = 1; t < threads; ++t) others.emplace_back(run);
    run();
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  if (options.report != nullptr) *options.report = {std::move(work), shared.winner()};
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
  impl::RankRace<T> shared(transport, options);
  Walker walker(shared, transport.rank().value);
  Result result;
  try {
    result = search(walker);
  } catch (const std::exception& error) {
    shared.give_up(error.what());
    throw;
  } catch (...) {
    shared.give_up("an exception that is no std::exception");
    throw;
  }
  shared.finish({{walker.work_done(), transport.rank().value}, result ? 1u : 0u});
  if (options.report != nullptr) {
    options.report->work.clear();
    for (const auto& end : shared.ends()) options.report->work.push_back(end.work.work);
    options.report->winner = shared.winner();
  }
  if (shared.winner() != walker.number()) result.reset();
  return result;
}

}  // namespace heddle::inline v0
