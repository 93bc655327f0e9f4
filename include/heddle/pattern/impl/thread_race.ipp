// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of thread_race.hpp.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/internal/threads.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/pattern/impl/thread_race.hpp>
#include <heddle/pattern/race_options.hpp>
#include <heddle/pattern/walker.hpp>

namespace heddle::inline v0::impl {

class ThreadRace final : public Race {
 public:
  explicit ThreadRace(pattern::RaceOptions::Order order) noexcept
      : m_by_work(order == pattern::RaceOptions::Order::by_work) {}

  bool is_beaten(WalkerWork so_far) override {
    const std::uint64_t best = m_best_work.load(std::memory_order_acquire);
    if (best == none) return m_failed.load(std::memory_order_relaxed);
    if (!m_by_work || so_far.work > best) return true;
    if (so_far.work < best) return m_failed.load(std::memory_order_relaxed);
    const std::lock_guard lock(m_mutex);
    return m_failed || m_best < so_far;
  }

  void finish(WalkerWork work, FunctionRef<void()> keep) {
    const std::lock_guard lock(m_mutex);
    if (m_found && (!m_by_work || m_best < work)) return;
    keep();
    m_best = work;
    m_found = true;
    m_best_work.store(work.work, std::memory_order_release);
  }

  void fail() noexcept { m_failed = true; }

  [[nodiscard]] int winner() const { return m_found ? static_cast<int>(m_best.walker) : -1; }

 private:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  const bool m_by_work;
  std::atomic<std::uint64_t> m_best_work{none};
  std::atomic<bool> m_failed{false};
  std::mutex m_mutex;
  WalkerWork m_best;
  bool m_found = false;
};

HEDDLE_INLINE void keep_best(ThreadRace& race, const pattern::Walker& walker,
                             FunctionRef<void()> keep) {
  race.finish({walker.work_done(), static_cast<std::uint32_t>(walker.number())}, keep);
}

HEDDLE_INLINE int thread_race(const pattern::RaceOptions& options, std::vector<std::uint64_t>& work,
                              FunctionRef<void(pattern::Walker&, ThreadRace&)> search) {
  expects(options.walkers >= 1 && options.walkers <= most_threads && options.threads >= 0, [&] {
    return ErrorInfo{"heddle::pattern::race", "a race needs at least one walker and one thread",
                     text("walkers = ", options.walkers, ", threads = ", options.threads),
                     text("use 1 to ", most_threads, " walkers, and 0 threads for one per walker")};
  });
  expect_enumerator("heddle::pattern::race", "order", options.order,
                    pattern::RaceOptions::Order::by_work);
  const auto walkers = static_cast<std::uint32_t>(options.walkers);
  const std::uint32_t threads =
      options.threads == 0 ? walkers
                           : std::min(walkers, static_cast<std::uint32_t>(options.threads));
  ThreadRace shared(options.order);
  work.assign(walkers, 0);
  std::vector<std::exception_ptr> errors(walkers);
  std::vector<Trail::Event> events(options.trail != nullptr ? walkers : 0);
  std::vector<char> began(walkers, 0);
  std::atomic<std::uint32_t> next{0};
  const auto run = [&](std::uint32_t thread) {
    for (std::uint32_t w = next++; w < walkers; w = next++) {
      pattern::Walker walker(shared, w);
      if (walker.stop_requested()) continue;
      const Seconds start = steady_seconds();
      try {
        search(walker, shared);
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
    Threads others(static_cast<int>(threads) - 1,
                   [&run](int t) { run(static_cast<std::uint32_t>(t)); });
    others.begin_all("heddle::pattern::race");
    run(0);
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  if (options.trail != nullptr) {
    options.trail->expect_workers(static_cast<int>(threads));
    for (std::uint32_t w = 0; w < walkers; ++w)
      if (began[w] != 0) options.trail->add(events[w]);
  }
  return shared.winner();
}

}  // namespace heddle::inline v0::impl
