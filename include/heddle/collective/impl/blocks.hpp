// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Blocks: how the elements of a View are dealt out to ranks.

#include <cstddef>
#include <limits>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {
namespace impl {

/// n elements in one block for each rank: as many as it is told, or evenly, the first blocks having
/// one more where the division has a remainder.
class Blocks {
 public:
  Blocks() = default;
  /// `total` elements, dealt out evenly.
  Blocks(std::size_t total, std::size_t ranks) : m_total(total), m_ranks(ranks) {}
  /// As `counts` says, or evenly where it is empty. @throws contract_error where they do not fit.
  Blocks(const char* where, std::size_t total, std::size_t ranks,
         const std::vector<std::size_t>& counts)
      : m_total(total), m_ranks(ranks), m_counts(counts) {
    if (counts.empty()) return;
    std::size_t sum = 0;
    for (const std::size_t count : counts) sum += count;
    expects(counts.size() == ranks && sum == total, [&] {
      return Complaint{where, "the counts do not fit",
                       text(counts.size(), " counts, ", sum, " elements in all; ", ranks,
                            " ranks, the view has ", total, " elements")};
    });
  }

  [[nodiscard]] std::size_t total() const noexcept { return m_total; }
  [[nodiscard]] std::size_t ranks() const noexcept { return m_ranks; }
  [[nodiscard]] std::size_t count(std::size_t rank) const {
    if (!m_counts.empty()) return m_counts[rank];
    return m_total / m_ranks + (rank < m_total % m_ranks ? 1 : 0);
  }
  [[nodiscard]] std::size_t first(std::size_t rank) const {
    if (m_counts.empty()) {
      const std::size_t extra = m_total % m_ranks;
      return rank * (m_total / m_ranks) + (rank < extra ? rank : extra);
    }
    std::size_t sum = 0;
    for (std::size_t r = 0; r < rank; ++r) sum += m_counts[r];
    return sum;
  }
  [[nodiscard]] bool even() const noexcept { return m_counts.empty() && m_total % m_ranks == 0; }

  /// The bytes of every block.
  [[nodiscard]] std::vector<Bytes> bytes(Bytes element) const {
    std::vector<Bytes> all(m_ranks);
    for (std::size_t r = 0; r < m_ranks; ++r) all[r] = count(r) * element;
    return all;
  }
  /// Counts and first elements as MPI takes them, in units of `unit`.
  void to_mpi(Bytes unit, std::vector<int>& counts, std::vector<int>& firsts) const {
    counts.resize(m_ranks);
    firsts.resize(m_ranks);
    for (std::size_t r = 0; r < m_ranks; ++r) {
      counts[r] = static_cast<int>(count(r) * unit);
      firsts[r] = static_cast<int>(first(r) * unit);
    }
  }

 private:
  std::size_t m_total = 0;
  std::size_t m_ranks = 1;
  std::vector<std::size_t> m_counts;
};

/// Whether MPI, whose counts are int, can be told so many.
[[nodiscard]] constexpr bool fits_int(Bytes count) noexcept {
  return count <= static_cast<Bytes>(std::numeric_limits<int>::max());
}

}  // namespace impl
}  // namespace heddle::inline v0
