// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The sweeps of fixed_point().

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/pattern/impl/run_sweeps.hpp>
#include <heddle/pattern/sweep.hpp>

namespace heddle::inline v0::impl {

/// Returns true if two values are the same; numbers must have the same bits, so that NaN equals
/// itself and 0 differs from -0.
template <class Value>
bool is_same(const Value& a, const Value& b) {
  if constexpr (std::is_floating_point_v<Value>)
    return std::memcmp(&a, &b, sizeof(Value)) == 0;
  else
    return a == b;
}

/// Returns how far apart two values are; values without a distance are infinitely far apart unless
/// they are equal.
template <class Value>
double distance_of(const Value& a, const Value& b) {
  constexpr double far = std::numeric_limits<double>::infinity();
  if (is_same(a, b)) return 0;
  if constexpr (requires {
                  { distance(a, b) } -> std::convertible_to<double>;
                }) {
    return distance(a, b);
  } else if constexpr (std::is_arithmetic_v<Value>) {
    const double apart = std::abs(static_cast<double>(a) - static_cast<double>(b));
    return apart >= 0 ? apart : far;
  } else {
    return far;
  }
}

/// One call of fixed_point(). A sweep computes a window of the equations. Its tasks are blocks: a
/// task reads the last sweep's values before its block, and its own inside. Values below m_exact
/// are final.
template <class System>
class FixedPointSolver {
 public:
  using Value = typename System::value_type;

  FixedPointSolver(const System& system, const pattern::FixedPointOptions& options)
      : m_system(system),
        m_options(options),
        m_next(static_cast<std::size_t>(system.size()), system.start()),
        m_workers(static_cast<std::size_t>(options.threads)) {
    m_result.values = m_next;
    const int all = std::max(1, system.size());
    const int blocks = options.block > 0 ? std::min(options.block, all)
                                         : std::max(1, ceil_of(system.size(), options.threads));
    const bool in_blocks = options.sweep == pattern::Sweep::jacobi_gauss_seidel;
    m_task = options.sweep == pattern::Sweep::gauss_seidel ? all : in_blocks ? blocks : 1;
    m_window = options.sweep == pattern::Sweep::gauss_seidel_jacobi ? blocks : all;
    m_end = std::min(m_window, system.size());
  }

  pattern::FixedPoint<Value> run() {
    if (m_system.size() == 0) {
      m_result.converged = true;
      return std::move(m_result);
    }
    run_sweeps(
        m_options.threads, m_done, [this](std::size_t w) { compute(w); }, [this] { judge(); },
        [this](std::size_t w) { take_over(w); });
    for (const Share& share : m_workers)
      if (share.error) std::rethrow_exception(share.error);
    if (m_options.trail != nullptr) {
      m_options.trail->expect_workers(m_options.threads);
      for (std::size_t w = 0; w < m_workers.size(); ++w) record(*m_options.trail, w, Worker{w});
    }
    return std::move(m_result);
  }

 protected:
  /// The equations of a worker in a sweep, and what changed.
  struct Share {
    int first = 0;    ///< its first equation
    int last = 0;     ///< one past its last one
    int changed = 0;  ///< the end of its first task with a change, or m_end
    double largest = 0;
    std::exception_ptr error;
    std::vector<Trail::Event> events;  ///< if a trail is wanted
  };

  /// Adds the parts of worker `w` to a trail, in which it is `as`.
  void record(Trail& trail, std::size_t w, Worker as) const {
    for (Trail::Event event : m_workers[w].events) {
      event.worker = as;
      trail.add(event);
    }
  }

  static int ceil_of(int a, int b) { return a / b + (a % b != 0 ? 1 : 0); }

  /// Returns the first equation of worker `w` in the next sweep. From sweep to sweep it does not
  /// fall. If shares are fixed, only what is final leaves them.
  [[nodiscard]] int cut(std::size_t w) const {
    const int first_task = m_fixed ? 0 : m_exact / m_task;
    const auto tasks = static_cast<std::int64_t>(ceil_of(m_end, m_task) - first_task);
    const auto before = static_cast<std::int64_t>(w) * tasks / m_options.threads;
    const std::int64_t first = (first_task + before) * m_task;
    return static_cast<int>(std::min<std::int64_t>(m_end, std::max<std::int64_t>(m_exact, first)));
  }

  /// Computes and compares the tasks of worker `w`.
  void compute(std::size_t w) {
    Share& share = m_workers[w];
    share.first = cut(w);
    share.last = cut(w + 1);
    share.changed = m_end;
    share.largest = 0;
    const std::vector<Value>& last = m_result.values;
    try {
      Trail::Event event;
      if (m_options.trail != nullptr) event.start = steady_seconds();
      for (int begin = share.first; begin < share.last;) {
        const int end = begin + std::min(share.last - begin, m_task - begin % m_task);
        bool changed = false;
        for (int i = begin; i < end; ++i) {
          const auto at = static_cast<std::size_t>(i);
          m_next[at] = m_system(i, {last.data(), m_next.data(), begin, i,
                                    m_reach > 0 ? std::max(0, i - m_reach) : 0});
          changed = changed || !is_same(m_next[at], last[at]);
          if (m_options.tolerance > 0)
            share.largest = std::max(share.largest, distance_of(m_next[at], last[at]));
        }
        if (changed) share.changed = std::min(share.changed, end);
        begin = end;
      }
      if (m_options.trail != nullptr && share.first < share.last) {
        event.item = m_result.sweeps;
        event.end = steady_seconds();
        event.waited = m_result.sweeps > 0;  // for the others, at the end of the sweep before
        share.events.push_back(event);
      }
    } catch (...) {
      share.error = std::current_exception();
    }
  }

  /// Decides after a sweep what is final, and what comes next. What the first task with a change
  /// read was final, so all up to its end is.
  void judge() noexcept {
    int exact = m_end;
    double largest = 0;
    std::int64_t longest = 0;
    for (const Share& share : m_workers) {
      exact = std::min(exact, share.changed);
      largest = std::max(largest, share.largest);
      longest = std::max<std::int64_t>(longest, share.last - share.first);
      m_result.evaluations += share.last - share.first;
      if (share.error) m_done = true;
    }
    m_result.longest_share += longest;
    ++m_result.sweeps;
    if (m_all_exact) m_result.exact = exact;
    const bool near = m_options.tolerance > 0 && largest <= m_options.tolerance;
    if (near && exact < m_end) {
      m_all_exact = false;
      exact = m_end;
    }
    m_exact = exact;
    if (m_exact == m_system.size()) {
      m_result.converged = true;
      m_done = true;
    } else if (m_exact == m_end) {
      m_end += std::min(m_window, m_system.size() - m_end);
    }
    if (m_result.sweeps == m_options.most_sweeps) m_done = true;
  }

  /// Makes the values that worker `w` computed those of the last sweep.
  void take_over(std::size_t w) {
    const Share& share = m_workers[w];
    if (share.error) return;
    for (int i = share.first; i < share.last; ++i)
      m_result.values[static_cast<std::size_t>(i)] = m_next[static_cast<std::size_t>(i)];
  }

  const System& m_system;
  const pattern::FixedPointOptions m_options;
  pattern::FixedPoint<Value> m_result;
  std::vector<Value> m_next;
  std::vector<Share> m_workers;
  int m_task = 1;        ///< equations of a task
  int m_window = 1;      ///< equations of a window
  int m_end = 0;         ///< the end of the present window
  int m_exact = 0;       ///< the first equation that must be computed again
  int m_reach = 0;       ///< values before its own that an equation may read, or 0 for all
  bool m_fixed = false;  ///< each worker keeps its share of all equations
  bool m_all_exact = true;
  bool m_done = false;
};

}  // namespace heddle::inline v0::impl
