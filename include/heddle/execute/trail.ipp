// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of trail.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/execute/trail.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE void Trail::add(const Trail::Event& event) {
  expects(std::isfinite(event.start) && std::isfinite(event.end) && event.start <= event.end, [&] {
    return ErrorInfo{"heddle::Trail::add", "an event must end after its start, at finite times",
                     text("item ", event.item, ": ", event.start, " to ", event.end)};
  });
  m_events.push_back(event);
}

HEDDLE_INLINE void Trail::expect_workers(int workers) noexcept {
  m_workers = std::max(m_workers, workers);
}

HEDDLE_INLINE void Trail::append(const Trail& other) {
  m_events.insert(m_events.end(), other.m_events.begin(), other.m_events.end());
  expect_workers(other.workers());
}

HEDDLE_INLINE void Trail::clear() noexcept {
  m_events.clear();
  m_workers = 1;
}

HEDDLE_INLINE int Trail::workers() const noexcept {
  int workers = m_workers;
  for (const Trail::Event& event : m_events)
    workers = std::max(workers, static_cast<int>(event.worker.value) + 1);
  return workers;
}

HEDDLE_INLINE Timeline Trail::timeline(const std::string& name) const {
  std::vector<std::uint32_t> by_start(m_events.size());
  std::iota(by_start.begin(), by_start.end(), 0u);
  std::vector<std::uint32_t> by_end = by_start;
  std::stable_sort(by_start.begin(), by_start.end(), [&](std::uint32_t a, std::uint32_t b) {
    return m_events[a].start < m_events[b].start;
  });
  std::stable_sort(by_end.begin(), by_end.end(), [&](std::uint32_t a, std::uint32_t b) {
    return m_events[a].end < m_events[b].end;
  });
  for (const Trail::Event& event : m_events)
    expects(+event.worker < std::size_t{1} << 20 && event.item >= 0 &&
                event.item <= std::numeric_limits<std::uint32_t>::max(),
            [&] {
              return ErrorInfo{"heddle::Trail::timeline",
                               "a timeline needs workers below 2^20 and items from 0 to 2^32 - 1",
                               text("worker ", event.worker, ", item ", event.item)};
            });
  const auto workers = static_cast<std::size_t>(this->workers());
  const Seconds begin = m_events.empty() ? 0 : m_events[by_start.front()].start;

  Builder builder(name, static_cast<int>(workers));
  builder.share_memory(std::vector<std::uint32_t>(workers, 0));
  const LabelId label = builder.label("ended");
  // Part p of a worker's buffer: its event p has ended.
  std::vector<std::uint32_t> counts(workers, 0);
  std::vector<std::uint32_t> part(m_events.size());
  for (const std::uint32_t e : by_start) part[e] = counts[+m_events[e].worker]++;
  std::vector<BufferId> ended;
  std::vector<QueueId> queues;
  for (std::size_t w = 0; w < workers; ++w) {
    Buffer buffer;
    buffer.rank = Rank{w};
    buffer.parts = std::max(counts[w], 1u);
    buffer.label = label;
    ended.push_back(builder.add_buffer(buffer));
    queues.push_back(builder.local(Rank{w}));
  }
  std::vector<Seconds> free(workers, 0);
  std::vector<Span> spans;
  std::size_t over = 0;  // events by_end[.. over) have ended before the present start
  for (const std::uint32_t e : by_start) {
    const Trail::Event& event = m_events[e];
    const std::size_t w = +event.worker;
    const Seconds start = event.start - begin;
    expects(free[w] <= start, [&] {
      return ErrorInfo{
          "heddle::Trail::timeline", "two events of one worker overlap",
          text("worker ", w, ", item ", event.item, " begins ", free[w] - start, " s too early")};
    });
    while (over < by_end.size() && m_events[by_end[over]].end <= event.start) ++over;
    Seconds ready = free[w];
    std::vector<Use> follows;
    if (event.waited && over > 0) {
      const Trail::Event& last = m_events[by_end[over - 1]];
      // An event without length at this very time may stand behind in the list.
      if (last.start < event.start) {
        follows.push_back(schedule::read(ended[+last.worker], part[by_end[over - 1]]));
        ready = std::max(ready, last.end - begin);
      }
    }
    const Item item{static_cast<std::uint32_t>(event.item)};
    if (ready < start) {
      builder.add({.kind = Kind::group, .queue = queues[w], .item = item}, follows);
      spans.push_back({ready, start, start});
      follows.clear();
    }
    follows.push_back(schedule::write(ended[w], part[e]));
    builder.add({.kind = Kind::user, .queue = queues[w], .stage = event.stage, .item = item},
                follows);
    free[w] = event.end - begin;
    spans.push_back({start, free[w], free[w]});
  }
  return Timeline(std::move(builder).build(), std::move(spans));
}

}  // namespace heddle::inline v0
