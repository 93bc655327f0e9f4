// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// IndexSet: the indices of a dimension that lie on a rank.

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0 {

/// The indices [begin, end).
struct Interval {
  std::int64_t begin = 0;  ///< the first index
  std::int64_t end = 0;    ///< one past the last index
  /// Number of indices.
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// A set of indices in ascending order, stored as the fewest intervals that hold them. If the set
/// is a rank's share of a dimension, the index at position l has the local index l on that rank.
class IndexSet {
 public:
  /// Constructs the empty set.
  IndexSet() = default;
  /// Constructs the indices 0 to n - 1.
  explicit IndexSet(std::int64_t n) { add({0, n}); }

  /// Appends an interval of indices. An empty interval adds none.
  /// @throws contract_error if it begins before the end of the last interval.
  void add(Interval next);

  /// The intervals in ascending order. No two of them touch.
  [[nodiscard]] std::span<const Interval> intervals() const noexcept;
  /// Number of indices.
  [[nodiscard]] std::int64_t size() const noexcept { return m_size; }
  /// Returns true if the indices are consecutive. True for the empty set.
  [[nodiscard]] bool contiguous() const noexcept { return m_intervals.size() <= 1; }

  /// The number of indices of the set that are below `index`.
  [[nodiscard]] std::int64_t below(std::int64_t index) const;
  /// The position of `index` in the set, or nullopt if it is not in the set.
  [[nodiscard]] std::optional<std::int64_t> position(std::int64_t index) const;
  /// The index at `position`. @throws contract_error unless 0 <= position < size().
  [[nodiscard]] std::int64_t operator[](std::int64_t position) const;

  /// The subset at `positions`, which must be below size(). Used to distribute a rank's share again
  /// over another mesh axis.
  [[nodiscard]] IndexSet at(const IndexSet& positions) const;

  friend bool operator==(const IndexSet&, const IndexSet&) = default;

  /// Prints "0-3, 8-11", or "none".
  friend std::ostream& operator<<(std::ostream& out, const IndexSet& set);

 private:
  std::vector<Interval> m_intervals;
  std::int64_t m_size = 0;
};

namespace impl {

/// Returns the indices that are in both sets.
[[nodiscard]] IndexSet intersection(const IndexSet& a, const IndexSet& b);

}  // namespace impl
/// Returns the indices of `a` that are not in `b`.
[[nodiscard]] IndexSet difference(const IndexSet& a, const IndexSet& b);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/index_set.ipp>
#endif
