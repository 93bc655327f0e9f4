// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Timeline: when every action of a Schedule took place, predicted or measured, and what follows
/// from it: makespan, busy time, bubble ratio, memory over time.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// When one action took place. `arrival` is the end at the destination of a move, and of a fused
/// action that of the pair; for every other action it equals `end`.
template <class Time>
struct BasicSpan {
  Time start = {};    ///< when it begins
  Time end = {};      ///< when its queue is free again
  Time arrival = {};  ///< when others see what it did
};

/// Spans of all actions of a Schedule, indexed as its actions are. Time is Seconds, or a rational
/// where closed forms are to hold exactly.
template <class Time>
class BasicTimeline {
 public:
  using Span = BasicSpan<Time>;  ///< of one action

  /// Of no Schedule.
  BasicTimeline() = default;
  /// One span for each action of `schedule`, in its order.
  BasicTimeline(Schedule schedule, std::vector<Span> spans)
      : m_schedule(std::move(schedule)), m_spans(std::move(spans)) {}

  /// Takes over another Schedule and keeps the memory of the spans, whose values are then stale.
  void reset(Schedule schedule) {
    m_schedule = std::move(schedule);
    m_spans.resize(m_schedule.size());
  }

  /// Whose actions these are.
  [[nodiscard]] const Schedule& schedule() const noexcept { return m_schedule; }
  /// The spans, in the order of the actions.
  [[nodiscard]] const std::vector<Span>& spans() const noexcept { return m_spans; }
  /// The same, to be filled in.
  [[nodiscard]] std::vector<Span>& spans() noexcept { return m_spans; }
  /// The span of one action.
  [[nodiscard]] const Span& operator[](ActionId id) const { return m_spans[+id]; }

  /// First start. Zero for an empty timeline.
  [[nodiscard]] Time begin() const {
    Time first{};
    for (std::size_t i = 0; i < m_spans.size(); ++i)
      if (i == 0 || m_spans[i].start < first) first = m_spans[i].start;
    return first;
  }
  /// Last arrival. Zero for an empty timeline.
  [[nodiscard]] Time end() const {
    Time last{};
    for (std::size_t i = 0; i < m_spans.size(); ++i)
      if (i == 0 || last < m_spans[i].arrival) last = m_spans[i].arrival;
    return last;
  }
  /// From the first start to the last arrival.
  [[nodiscard]] Time makespan() const { return end() - begin(); }

  /// Time in which `rank` does the model's work (is_work), one entry per rank.
  [[nodiscard]] std::vector<Time> busy() const {
    std::vector<Time> total(static_cast<std::size_t>(m_schedule.ranks()), Time{});
    for (std::size_t i = 0; i < m_spans.size(); ++i) {
      const Action& action = m_schedule[ActionId{i}];
      if (!is_work(action.kind)) continue;
      Time& rank = total[+m_schedule[action.queue].from];
      rank = rank + (m_spans[i].end - m_spans[i].start);
    }
    return total;
  }

  /// Share of the ranks' time in which they do none of the model's work:
  /// 1 - (sum of busy times) / (ranks * makespan). Zero for an empty timeline.
  [[nodiscard]] Time bubble_ratio() const {
    const Time whole = makespan() * Time(m_schedule.ranks());
    if (!(Time{} < whole)) return Time{};
    Time work{};
    for (const Time& rank : busy()) work = work + rank;
    return Time(1) - work / whole;
  }

 private:
  Schedule m_schedule;
  std::vector<Span> m_spans;
};

using Span = BasicSpan<Seconds>;          ///< in seconds
using Timeline = BasicTimeline<Seconds>;  ///< in seconds

}  // namespace heddle::inline v0
