// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of farm_decider.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <heddle/core/contract.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/farm_decider.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE void impl::check_farm(const pattern::FarmOptions& options) {
  const auto positive = [](const char* name, int value, int most) {
    expects(value >= 1 && value <= most, [&] {
      return ErrorInfo{
          "heddle::pattern::farm",
          value < 1 ? text(name, " must be at least 1") : text("there are too many ", name),
          text(name, " = ", value), value < 1 ? std::string() : text("use at most ", most)};
    });
  };
  positive("workers", options.workers, most_workers);
  positive("attempts", options.attempts, std::numeric_limits<int>::max());
  const auto not_negative = [](const char* name, double value) {
    expects(std::isfinite(value) && value >= 0, [&] {
      return ErrorInfo{"heddle::pattern::farm", text(name, " must be finite and not negative"),
                       text(name, " = ", value)};
    });
  };
  not_negative("in_flight", options.in_flight);
  not_negative("lag", options.lag);
  not_negative("backoff", options.backoff);
  not_negative("longest_backoff", options.longest_backoff);
  not_negative("lease", options.lease);
  expects(options.lag == 0 || options.ordered, [&] {
    return ErrorInfo{"heddle::pattern::farm", "a source that sees results needs them in order",
                     text("lag = ", options.lag, ", ordered = false"), "set ordered, or lag = 0"};
  });
}

namespace pattern {

HEDDLE_INLINE Seconds impl::farm_backoff(const FarmOptions& options, const FarmTask& task) {
  heddle::impl::check_farm(options);
  expects(task.item >= 0 && task.attempt >= 2, [&] {
    return ErrorInfo{"heddle::pattern::farm_backoff",
                     "a wait comes before a second or later attempt",
                     text("item = ", task.item, ", attempt = ", task.attempt),
                     "count items from 0 and attempts from 1"};
  });
  const Seconds doubled = std::ldexp(options.backoff, std::min(task.attempt - 2, 1'000));
  const Random random(options.seed ^ static_cast<std::uint64_t>(task.item), "farm backoff");
  const double jitter = 0.5 + 0.5 * random.uniform(static_cast<std::uint64_t>(task.attempt));
  return std::min(doubled, options.longest_backoff) * jitter;
}

HEDDLE_INLINE FarmDecider::FarmDecider(const FarmOptions& options) : m_options(options) {
  heddle::impl::check_farm(options);
  if (m_options.in_flight == 0) m_options.in_flight = 4 * options.workers;
  m_held.resize(static_cast<std::size_t>(options.workers));
}

HEDDLE_INLINE bool FarmDecider::may_propose() const {
  if (m_ended || m_proposing) return false;
  return room() > 0;
}

HEDDLE_INLINE std::int64_t FarmDecider::room() const {
  if (m_options.lag > 0) return m_base - (m_items - m_options.lag);
  const std::int64_t taken = m_options.ordered ? m_items - m_base : m_unfinished;
  return std::int64_t{m_options.in_flight} * m_chunk - taken;
}

HEDDLE_INLINE void FarmDecider::end_leases(Seconds now) {
  if (m_options.lease == 0) return;
  for (std::optional<Held>& held : m_held) {
    if (!held || held->expired || now < held->until) continue;
    held->expired = true;
    const std::int64_t number = held->task.item;
    if (number >= m_base && !item(number).finished) m_ready.push_back(number);
  }
}

HEDDLE_INLINE FarmDecider::Next FarmDecider::give(Worker worker, std::int64_t number, Seconds now) {
  ++m_attempts;
  const FarmTask task{number, item(number).attempt};
  m_held[+worker] = Held{task, now + m_options.lease, false};
  return {Answer::work, task, {}};
}

HEDDLE_INLINE FarmDecider::Next FarmDecider::next(Worker worker, Seconds now) {
  expects(+worker < m_held.size() && !m_held[+worker], [&] {
    return ErrorInfo{"heddle::pattern::FarmDecider::next",
                     "a worker asks again before it has reported",
                     text("worker ", worker, " of ", m_held.size())};
  });
  end_leases(now);
  if (!m_waiting.empty() && m_waiting.begin()->time <= now) {
    const std::int64_t number = m_waiting.begin()->item;
    m_waiting.erase(m_waiting.begin());
    return give(worker, number, now);
  }
  while (!m_ready.empty()) {
    const std::int64_t number = m_ready.front();
    m_ready.pop_front();
    // A silent worker may have finished it after all.
    if (number >= m_base && !item(number).finished) return give(worker, number, now);
  }
  if (may_propose()) {
    m_proposing = true;
    return {Answer::propose, {}, {}};
  }
  if (m_ended && m_unfinished == 0) return {Answer::end, {}, {}};
  Next wait{Answer::wait, {}, {}};
  const auto not_after = [&](Seconds time) {
    wait.until = wait.until ? std::min(*wait.until, time) : time;
  };
  if (!m_waiting.empty()) not_after(m_waiting.begin()->time);
  if (m_options.lease > 0)
    for (const std::optional<Held>& held : m_held)
      if (held && !held->expired) not_after(held->until);
  return wait;
}

HEDDLE_INLINE void FarmDecider::proposed(bool given) {
  m_proposing = false;
  if (!given) {
    m_ended = true;
    return;
  }
  m_open.push_back({});
  m_ready.push_back(m_items++);
  ++m_unfinished;
}

HEDDLE_INLINE void FarmDecider::known() {
  m_proposing = false;
  m_open.push_back({});
  ++m_unfinished;
  finish(m_items++);
}

HEDDLE_INLINE void FarmDecider::expect_chunks(int items) {
  expects(items >= 1, [&] {
    return ErrorInfo{"heddle::pattern::FarmDecider::expect_chunks", "a chunk has at least one item",
                     text("items = ", items)};
  });
  m_chunk = items;
}

HEDDLE_INLINE void FarmDecider::renew(Worker worker, Seconds now) {
  expects(+worker < m_held.size(), [&] {
    return ErrorInfo{"heddle::pattern::FarmDecider::renew", "there is no such worker",
                     text("worker ", worker, " of ", m_held.size())};
  });
  std::optional<Held>& held = m_held[+worker];
  if (held && !held->expired) held->until = now + m_options.lease;
}

HEDDLE_INLINE void FarmDecider::finish(std::int64_t number) {
  item(number).finished = true;
  --m_unfinished;
  while (!m_open.empty() && m_open.front().finished) {
    m_open.pop_front();
    ++m_base;
  }
}

HEDDLE_INLINE FarmDecider::Fate FarmDecider::report(Worker worker, bool succeeded, Seconds now) {
  expects(+worker < m_held.size() && m_held[+worker], [&] {
    return ErrorInfo{"heddle::pattern::FarmDecider::report", "the worker has no task",
                     text("worker ", worker, " of ", m_held.size()),
                     "report each task that next() returned once"};
  });
  const Held held = *m_held[+worker];
  m_held[+worker].reset();
  const std::int64_t number = held.task.item;
  // A failure after the lease is no news: the item has been given to another worker.
  if (number < m_base || item(number).finished || (held.expired && !succeeded)) {
    ++m_late;
    return Fate::late;
  }
  if (!succeeded && held.task.attempt < m_options.attempts) {
    const int attempt = item(number).attempt = held.task.attempt + 1;
    m_waiting.insert({now + impl::farm_backoff(m_options, {number, attempt}), number});
    return Fate::again;
  }
  finish(number);
  return Fate::finished;
}

}  // namespace pattern

}  // namespace heddle::inline v0
