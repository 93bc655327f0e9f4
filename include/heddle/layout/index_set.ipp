// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of index_set.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/index_set.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE void IndexSet::add(Interval next) {
  std::int64_t size = 0;
  expects(!__builtin_sub_overflow(next.end, next.begin, &size), [&] {
    return ErrorInfo{"heddle::IndexSet", "an interval does not fit in 63 bits",
                     text("[", next.begin, ", ", next.end, ")")};
  });
  if (size <= 0) return;
  const std::int64_t last = m_intervals.empty() ? next.begin : m_intervals.back().end;
  expects(last <= next.begin, [&] {
    return ErrorInfo{"heddle::IndexSet", "indices must be added in ascending order",
                     text(next.begin, " after ", last - 1)};
  });
  if (!m_intervals.empty() && last == next.begin)
    m_intervals.back().end = next.end;
  else
    m_intervals.push_back(next);
  m_size += next.size();
}

HEDDLE_INLINE std::span<const Interval> IndexSet::intervals() const noexcept { return m_intervals; }

HEDDLE_INLINE std::int64_t IndexSet::below(std::int64_t index) const {
  std::int64_t count = 0;
  for (const Interval& interval : m_intervals) {
    if (index <= interval.begin) break;
    count += std::min(index, interval.end) - interval.begin;
  }
  return count;
}

HEDDLE_INLINE std::optional<std::int64_t> IndexSet::position(std::int64_t index) const {
  const std::int64_t before = below(index);
  if (below(index + 1) == before) return std::nullopt;
  return before;
}

HEDDLE_INLINE std::int64_t IndexSet::operator[](std::int64_t position) const {
  expects(position >= 0 && position < m_size, [&] {
    return ErrorInfo{"heddle::IndexSet", "no such position", text(position, " of ", m_size)};
  });
  for (const Interval& interval : m_intervals) {
    if (position < interval.size()) return interval.begin + position;
    position -= interval.size();
  }
  return 0;  // not reached
}

HEDDLE_INLINE IndexSet IndexSet::at(const IndexSet& positions) const {
  if (!positions.m_intervals.empty()) {
    const std::int64_t first = positions.m_intervals.front().begin;
    const std::int64_t last = positions.m_intervals.back().end - 1;
    expects(first >= 0 && last < m_size, [&] {
      return ErrorInfo{"heddle::IndexSet::at", "no such position",
                       text(first < 0 ? first : last, " of ", m_size)};
    });
  }
  IndexSet chosen;
  std::size_t next = 0;
  std::int64_t before = 0;  // positions in the intervals before `next`
  for (Interval wanted : positions.m_intervals) {
    while (wanted.size() > 0) {
      while (before + m_intervals[next].size() <= wanted.begin)
        before += m_intervals[next++].size();
      const Interval& here = m_intervals[next];
      const std::int64_t end = std::min(wanted.end, before + here.size());
      chosen.add({here.begin + wanted.begin - before, here.begin + end - before});
      wanted.begin = end;
    }
  }
  return chosen;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const IndexSet& set) {
  if (set.m_intervals.empty()) return out << "none";
  for (std::size_t i = 0; i < set.m_intervals.size(); ++i) {
    const Interval& interval = set.m_intervals[i];
    out << (i == 0 ? "" : ", ") << interval.begin;
    if (interval.size() > 1) out << '-' << interval.end - 1;
  }
  return out;
}

namespace impl {

// The indices that are in `a` and also in `b` (`common`), or that are in `a` and not in `b`.
[[nodiscard]] inline IndexSet indices_of(const IndexSet& a, const IndexSet& b, bool common) {
  IndexSet result;
  std::size_t next = 0;
  const auto others = b.intervals();
  for (const Interval& mine : a.intervals()) {
    std::int64_t at = mine.begin;
    while (next < others.size() && others[next].end <= at) ++next;
    for (std::size_t o = next; o < others.size() && others[o].begin < mine.end; ++o) {
      const std::int64_t begin = std::max(at, others[o].begin);
      const std::int64_t end = std::min(mine.end, others[o].end);
      if (common)
        result.add({begin, end});
      else
        result.add({at, begin});
      at = end;
    }
    if (!common) result.add({at, mine.end});
  }
  return result;
}

}  // namespace impl

HEDDLE_INLINE IndexSet impl::intersection(const IndexSet& a, const IndexSet& b) {
  return impl::indices_of(a, b, true);
}

HEDDLE_INLINE IndexSet difference(const IndexSet& a, const IndexSet& b) {
  return impl::indices_of(a, b, false);
}

}  // namespace heddle::inline v0
