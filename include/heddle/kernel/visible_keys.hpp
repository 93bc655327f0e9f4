// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// VisibleKeys: a table of the keys that each query of a block sees, in memory that kernels can
/// read.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <Kokkos_Core.hpp>

#include <heddle/kernel/view.hpp>
#include <heddle/layout/attention_mask.hpp>
#include <heddle/layout/index_set.hpp>

namespace heddle::inline v0::kernel {

/// The rows [begin, end) of a block of keys.
struct KeyRange {
  std::size_t begin = 0;  ///< the first row
  std::size_t end = 0;    ///< one past the last row

  /// Returns true if the range has no row.
  [[nodiscard]] KOKKOS_INLINE_FUNCTION bool empty() const { return begin >= end; }
};

/// A table of the keys that each query sees. Row r of a block of queries is at position queries[r]
/// of the whole sequence, and row c of a block of keys is at position keys[c]. Positions ascend, so
/// the keys that a query sees are neighbouring rows, and the table has one range for each query.
/// Construction allocates the table and waits for its copy to a device; nothing else does.
template <ExecutionSpace Exec>
class VisibleKeys {
 public:
  /// Computes the table of `mask` for queries and keys at these positions of the whole sequence.
  /// @throws contract_error if the segments of `mask` do not ascend.
  VisibleKeys(const IndexSet& queries, const IndexSet& keys, const AttentionMask& mask)
      : m_keys(static_cast<std::size_t>(keys.size())),
        m_ranges("heddle::kernel::visible_keys", static_cast<std::size_t>(queries.size())),
        m_host(Kokkos::create_mirror_view(m_ranges)) {
    mask.expect_valid("heddle::kernel::VisibleKeys");
    std::size_t row = 0;
    for (const Interval& interval : queries.intervals())
      for (std::int64_t position = interval.begin; position < interval.end; ++position) {
        const Interval seen = mask.visible(position);
        m_host(row++) = {static_cast<std::size_t>(keys.below(seen.begin)),
                         static_cast<std::size_t>(keys.below(seen.end))};
      }
    Kokkos::deep_copy(m_ranges, m_host);
  }

  /// Returns the number of queries.
  [[nodiscard]] std::size_t queries() const { return m_ranges.extent(0); }
  /// Returns the number of keys.
  [[nodiscard]] std::size_t keys() const { return m_keys; }

  /// Returns the number of pairs of a query and a key that it sees.
  [[nodiscard]] std::size_t pairs() const {
    std::size_t count = 0;
    for (std::size_t row = 0; row < queries(); ++row)
      count += m_host(row).empty() ? 0 : m_host(row).end - m_host(row).begin;
    return count;
  }

  /// Returns the smallest range that holds the keys of the queries [first, last).
  [[nodiscard]] KeyRange of_queries(std::size_t first, std::size_t last) const {
    KeyRange all{m_keys, 0};
    for (std::size_t row = first; row < last; ++row) {
      if (m_host(row).empty()) continue;
      all.begin = std::min(all.begin, m_host(row).begin);
      all.end = std::max(all.end, m_host(row).end);
    }
    return all;
  }

  /// Returns the range of keys of each query, in memory of `Exec`.
  [[nodiscard]] Vector<const KeyRange, Exec> ranges() const { return m_ranges; }

 private:
  using Table = Kokkos::View<KeyRange*, Kokkos::LayoutRight, typename Exec::memory_space>;

  std::size_t m_keys;
  Table m_ranges;
  typename Table::host_mirror_type m_host;
};

}  // namespace heddle::inline v0::kernel
