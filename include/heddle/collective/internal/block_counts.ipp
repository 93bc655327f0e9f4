// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of block_counts.hpp.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <heddle/collective/internal/block_counts.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0::impl {

// Returns the sum of CallOptions::counts, which 63 bits hold.
inline std::size_t sum_of_counts(const char* where, const std::vector<std::size_t>& counts) {
  constexpr std::size_t most = std::numeric_limits<std::int64_t>::max();
  std::size_t sum = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    expects(counts[r] <= most - sum, [&] {
      return ErrorInfo{where, "CallOptions::counts do not fit the View",
                       text("counts[", r, "] = ", counts[r], " elements")};
    });
    sum += counts[r];
  }
  return sum;
}

HEDDLE_FULL_INLINE BlockCounts::BlockCounts(const char* where, std::size_t total, std::size_t ranks,
                                            const std::vector<std::size_t>& counts)
    : BlockCounts(total, ranks) {
  if (counts.empty()) return;
  m_counts = counts;
  const std::size_t sum = sum_of_counts(where, counts);
  expects(counts.size() == ranks && sum == total, [&] {
    return ErrorInfo{where, "CallOptions::counts do not fit the ranks or the View",
                     text(counts.size(), " counts, ", sum, " elements in all; ", ranks,
                          " ranks, the view has ", total, " elements")};
  });
}

HEDDLE_FULL_INLINE BlockCounts BlockCounts::of_each(const char* where, std::size_t each,
                                                    std::size_t ranks,
                                                    const std::vector<std::size_t>& counts) {
  return {where, counts.empty() ? each * ranks : sum_of_counts(where, counts), ranks, counts};
}

HEDDLE_FULL_INLINE std::size_t BlockCounts::first(std::size_t rank) const {
  if (m_counts.empty()) return rank * m_each + (rank < m_extra ? rank : m_extra);
  return std::accumulate(m_counts.begin(), m_counts.begin() + static_cast<std::ptrdiff_t>(rank),
                         std::size_t{0});
}

HEDDLE_FULL_INLINE std::vector<Bytes> BlockCounts::bytes(Bytes element) const {
  std::vector<Bytes> all(m_ranks);
  for (std::size_t r = 0; r < m_ranks; ++r) all[r] = count(r) * element;
  return all;
}

HEDDLE_FULL_INLINE void BlockCounts::to_mpi(Bytes unit) {
  m_mpi_counts.clear();
  m_mpi_firsts.clear();
  std::size_t begin = 0;
  for (std::size_t r = 0; r < m_ranks; begin += count(r++)) {
    m_mpi_counts.push_back(static_cast<int>(count(r) * unit));
    m_mpi_firsts.push_back(static_cast<int>(begin * unit));
  }
}

}  // namespace heddle::inline v0::impl
