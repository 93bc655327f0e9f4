// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Timeline: the times of all actions of a Schedule, predicted or measured, and the makespan, busy
/// time and bubble ratio that follow from them.

#include <cstddef>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// The times of one action. The arrival of a move is its end at the destination. The arrival of a
/// fused action is the end of the pair. For every other action the arrival equals `end`.
template <class Time>
struct BasicSpan {
  Time start = {};    ///< the time at which the action begins
  Time end = {};      ///< the time at which its queue is free again
  Time arrival = {};  ///< the time at which other actions can use its results
};

/// The spans of all actions of a Schedule, indexed by ActionId. Time is Seconds, or a rational type
/// if closed forms must hold exactly.
template <class Time>
class BasicTimeline {
 public:
  using Span = BasicSpan<Time>;  ///< the span of one action

  /// Constructs the timeline of an empty Schedule.
  BasicTimeline() = default;
  /// Constructs a timeline from one span for each action of `schedule`, in its order.
  BasicTimeline(Schedule schedule, std::vector<Span> spans)
      : m_schedule(std::move(schedule)), m_spans(std::move(spans)) {}

  /// Replaces the Schedule and reuses the memory of the spans. The caller must fill in all spans,
  /// because their values are stale.
  void reset(Schedule schedule) {
    m_schedule = std::move(schedule);
    m_spans.resize(m_schedule.size());
  }

  /// Returns the Schedule of these actions.
  [[nodiscard]] const Schedule& schedule() const noexcept { return m_schedule; }
  /// Returns the spans, in the order of the actions.
  [[nodiscard]] const std::vector<Span>& spans() const noexcept { return m_spans; }
  /// Returns the spans for writing.
  [[nodiscard]] std::vector<Span>& spans() noexcept { return m_spans; }
  /// Returns the span of one action.
  [[nodiscard]] const Span& operator[](ActionId id) const { return m_spans[+id]; }

  /// Returns the earliest start, or zero for an empty timeline.
  [[nodiscard]] Time begin() const {
    Time first{};
    for (std::size_t i = 0; i < m_spans.size(); ++i)
      if (i == 0 || m_spans[i].start < first) first = m_spans[i].start;
    return first;
  }
  /// Returns the latest arrival, or zero for an empty timeline.
  [[nodiscard]] Time end() const {
    Time last{};
    for (std::size_t i = 0; i < m_spans.size(); ++i)
      if (i == 0 || last < m_spans[i].arrival) last = m_spans[i].arrival;
    return last;
  }
  /// Returns the time from the earliest start to the latest arrival.
  [[nodiscard]] Time makespan() const { return end() - begin(); }

  /// Returns the time that each rank spends on the model's work (see is_work()).
  [[nodiscard]] std::vector<Time> busy() const {
    std::vector<Time> total(static_cast<std::size_t>(m_schedule.ranks()), Time{});
    for (std::size_t i = 0; i < m_spans.size(); ++i) {
      const Action& action = m_schedule[ActionId{i}];
      if (!schedule::is_work(action.kind)) continue;
      Time& rank = total[+m_schedule[action.queue].from];
      rank = rank + (m_spans[i].end - m_spans[i].start);
    }
    return total;
  }

  /// Returns the share of the ranks' time in which they do none of the model's work:
  /// 1 - (sum of busy times) / (ranks * makespan). It is zero for an empty timeline.
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

using Span = BasicSpan<Seconds>;          ///< a span in seconds
using Timeline = BasicTimeline<Seconds>;  ///< a timeline in seconds

}  // namespace heddle::inline v0
