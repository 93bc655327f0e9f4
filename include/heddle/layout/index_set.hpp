// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// IndexSet: which indices of a dimension lie on a rank. For layouts, and for whoever asks one.

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>

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
  void add(Interval next);

  /// The intervals, ascending, no two of which touch.
  [[nodiscard]] std::span<const Interval> intervals() const noexcept { return m_intervals; }
  /// Number of indices.
  [[nodiscard]] std::int64_t size() const noexcept { return m_size; }
  /// Whether they follow one another; also where there are none.
  [[nodiscard]] bool contiguous() const noexcept { return m_intervals.size() <= 1; }

  /// How many of them come before `index`.
  [[nodiscard]] std::int64_t below(std::int64_t index) const;
  /// Where `index` stands among them; none: it is not one of them.
  [[nodiscard]] std::optional<std::int64_t> position(std::int64_t index) const;
  /// The one at `position`. @throws contract_error where there are not so many.
  [[nodiscard]] std::int64_t operator[](std::int64_t position) const;

  /// Those at `positions`, which lie below size(): what is left of a share that is dealt out again.
  [[nodiscard]] IndexSet at(const IndexSet& positions) const;

  friend bool operator==(const IndexSet&, const IndexSet&) = default;

  /// As in "0-3, 8-11"; "none".
  friend std::ostream& operator<<(std::ostream& out, const IndexSet& set);

 private:
  std::vector<Interval> m_intervals;
  std::int64_t m_size = 0;
};

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/layout/index_set.ipp>
#endif
