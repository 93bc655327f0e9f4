// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The state that the threads of a race share.

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include <heddle/pattern/walker.hpp>

namespace heddle::inline v0::impl {

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

}  // namespace heddle::inline v0::impl
