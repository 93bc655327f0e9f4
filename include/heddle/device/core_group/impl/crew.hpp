// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The host threads that run the cores of an emulated core group. Made for launches that last, and
/// follow each other within, microseconds: the caller works too and calls the others only where
/// there is enough to do, who waits spins for a while before it sleeps, and nobody waits for a
/// thread that has not taken any core.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/core/internal/threads.hpp>
#include <heddle/core/relax.hpp>

namespace heddle::inline v0::emulated::impl {

class Crew {
 public:
  /// Called as body(context, item, thread); must not throw.
  using Body = void (*)(void*, int, int) noexcept;

  /// `threads` in all, the caller of run() among them; they share `items` between them. The others
  /// are started when they are first needed. If the system starts fewer, those take all items.
  Crew(int threads, int items) : m_regions(static_cast<std::size_t>(threads)), m_items(items) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew() {
    m_stop.store(true, std::memory_order_relaxed);
    m_generation.fetch_add(1, std::memory_order_release);
    m_generation.notify_all();
    m_threads.reset();
  }

  /// Calls body for every item once. One caller at a time.
  void run(Body body, void* context) {
    m_body = body;
    m_context = context;
    const int first = run_alone();
    if (first < m_items) share(first);
  }

 private:
  /// The items [next, last) that a thread takes first; when they are gone it helps the others. One
  /// word, with the number of the run in its upper half, so that nobody takes an item of another
  /// run.
  struct alignas(64) Region {
    std::atomic<std::uint64_t> items{0};
  };
  static std::uint64_t pack(std::uint32_t generation, int next, int last) noexcept {
    return std::uint64_t{generation} << 32 | static_cast<std::uint64_t>(last) << 16 |
           static_cast<std::uint64_t>(next);
  }
  static int next_of(std::uint64_t items) noexcept { return static_cast<int>(items & 0xffff); }
  static int last_of(std::uint64_t items) noexcept {
    return static_cast<int>(items >> 16 & 0xffff);
  }

  /// The caller begins alone: to share costs about a microsecond, and a run that is shorter ends
  /// before. Returns the first item that is left.
  int run_alone() {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::microseconds(1);
    int look = m_regions.size() == 1 ? m_items : 1;  // at the clock, after so many items
    int item = 0;
    for (; item < m_items; ++item) {
      if (item == look) {
        if (Clock::now() >= end) break;
        look *= 2;
      }
      m_body(m_context, item, 0);
    }
    return item;
  }

  /// Items from `first` on, between all threads.
  void share(int first) {
    const int left = m_items - first;
    const int threads = static_cast<int>(m_regions.size());
    if (!m_threads) {
      m_threads.emplace(threads - 1, [this, seen = m_generation.load()](int t) { serve(t, seen); });
      m_threads->begin();
    }
    const std::uint32_t generation = m_generation.load(std::memory_order_relaxed) + 1;
    m_left.store(left, std::memory_order_relaxed);
    // From here on a thread that is still awake may take items: the body is published with them.
    for (int t = 0; t < threads; ++t)
      m_regions[static_cast<std::size_t>(t)].items.store(
          pack(generation, first + left * t / threads, first + left * (t + 1) / threads),
          std::memory_order_release);
    m_generation.store(generation, std::memory_order_release);
    m_generation.notify_all();
    report(work(0));
    for (int now; (now = m_left.load(std::memory_order_acquire)) != 0;)
      wait_for_change(m_left, now);
  }

  static int take(Region& region) noexcept {
    std::uint64_t items = region.items.load(std::memory_order_acquire);
    while (next_of(items) < last_of(items))
      if (region.items.compare_exchange_weak(items, items + 1, std::memory_order_acquire))
        return next_of(items);
    return -1;
  }

  /// Runs what is left to take; the number of items that this thread ran.
  int work(int thread) noexcept {
    int count = 0;
    const std::size_t regions = m_regions.size();
    for (std::size_t i = 0; i < regions; ++i) {
      Region& region = m_regions[(static_cast<std::size_t>(thread) + i) % regions];
      for (int item; (item = take(region)) >= 0; ++count) m_body(m_context, item, thread);
    }
    return count;
  }

  void report(int count) noexcept {
    if (count > 0 && m_left.fetch_sub(count, std::memory_order_acq_rel) == count)
      m_left.notify_all();
  }

  /// A thread that has seen the run number `seen`.
  void serve(int thread, std::uint32_t seen) noexcept {
    for (;;) {
      wait_for_change(m_generation, seen);
      seen = m_generation.load(std::memory_order_acquire);
      if (m_stop.load(std::memory_order_relaxed)) return;
      report(work(thread));
    }
  }

  /// Spins for tens of microseconds, then sleeps.
  template <class T>
  static void wait_for_change(const std::atomic<T>& word, T old) noexcept {
    for (int poll = 0; poll < 1000; ++poll) {
      if (word.load(std::memory_order_acquire) != old) return;
      heddle::impl::relax();
    }
    word.wait(old, std::memory_order_acquire);
  }

  std::vector<Region> m_regions;
  std::optional<heddle::impl::Threads> m_threads;
  Body m_body = nullptr;
  void* m_context = nullptr;
  int m_items;
  std::atomic<bool> m_stop{false};
  alignas(64) std::atomic<std::uint32_t> m_generation{0};
  alignas(64) std::atomic<int> m_left{0};
};

}  // namespace heddle::inline v0::emulated::impl
