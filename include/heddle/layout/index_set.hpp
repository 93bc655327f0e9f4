// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// IndexSet: which indices of a dimension lie on a rank. For layouts, and for whoever asks one.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

/// The indices from `begin` on, below `end`.
struct Interval {
  std::int64_t begin = 0;  ///< the first one
  std::int64_t end = 0;    ///< the one after the last
  /// Number of indices.
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Indices in ascending order, as the fewest intervals that hold them. Where they are a rank's
/// share of a dimension, the index at position l has the local index l there.
class IndexSet {
 public:
  /// None.
  IndexSet() = default;
  /// 0 to n - 1.
  explicit IndexSet(std::int64_t n) { add({0, n}); }

  /// Adds indices behind those that are there; an empty interval adds none.
  /// @throws contract_error where it begins before the last one's end.
  void add(Interval next) {
    if (next.size() <= 0) return;
    const std::int64_t last = m_intervals.empty() ? next.begin : m_intervals.back().end;
    expects(last <= next.begin, [&] {
      return Complaint{"heddle::IndexSet", "indices are added in ascending order",
                       text(next.begin, " after ", last - 1)};
    });
    if (!m_intervals.empty() && last == next.begin)
      m_intervals.back().end = next.end;
    else
      m_intervals.push_back(next);
    m_size += next.size();
  }

  /// The intervals, ascending, no two of which touch.
  [[nodiscard]] std::span<const Interval> intervals() const noexcept { return m_intervals; }
  /// Number of indices.
  [[nodiscard]] std::int64_t size() const noexcept { return m_size; }
  /// Whether they follow one another; also where there are none.
  [[nodiscard]] bool contiguous() const noexcept { return m_intervals.size() <= 1; }

  /// How many of them come before `index`.
  [[nodiscard]] std::int64_t below(std::int64_t index) const {
    std::int64_t count = 0;
    for (const Interval& interval : m_intervals) {
      if (index <= interval.begin) break;
      count += std::min(index, interval.end) - interval.begin;
    }
    return count;
  }
  /// Where `index` stands among them; none: it is not one of them.
  [[nodiscard]] std::optional<std::int64_t> position(std::int64_t index) const {
    const std::int64_t before = below(index);
    if (below(index + 1) == before) return std::nullopt;
    return before;
  }
  /// The one at `position`. @throws contract_error where there are not so many.
  [[nodiscard]] std::int64_t operator[](std::int64_t position) const {
    expects(position >= 0 && position < m_size, [&] {
      return Complaint{"heddle::IndexSet", "no such position", text(position, " of ", m_size)};
    });
    for (const Interval& interval : m_intervals) {
      if (position < interval.size()) return interval.begin + position;
      position -= interval.size();
    }
    return 0;  // not reached
  }

  /// Those at `positions`, which lie below size(): what is left of a share that is dealt out again.
  [[nodiscard]] IndexSet at(const IndexSet& positions) const {
    IndexSet chosen;
    std::size_t next = 0;
    std::int64_t before = 0;  // positions of the intervals that are past
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

  friend bool operator==(const IndexSet&, const IndexSet&) = default;

  /// As in "0-3, 8-11"; "none".
  friend std::ostream& operator<<(std::ostream& out, const IndexSet& set) {
    if (set.m_intervals.empty()) return out << "none";
    for (std::size_t i = 0; i < set.m_intervals.size(); ++i) {
      const Interval& interval = set.m_intervals[i];
      out << (i == 0 ? "" : ", ") << interval.begin;
      if (interval.size() > 1) out << '-' << interval.end - 1;
    }
    return out;
  }

 private:
  std::vector<Interval> m_intervals;
  std::int64_t m_size = 0;
};

}  // namespace heddle::inline v0
