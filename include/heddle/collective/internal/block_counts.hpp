// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BlockCounts: the division of the elements of a View among ranks.

#include <cstddef>
#include <limits>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>

namespace heddle::inline v0 {
namespace impl {

/// n elements in one block for each rank: as many as it is told, or evenly, the first blocks having
/// one more where the division has a remainder.
class BlockCounts {
 public:
  BlockCounts() = default;
  /// Divides `total` elements evenly.
  BlockCounts(std::size_t total, std::size_t ranks)
      : m_total(total), m_ranks(ranks), m_each(total / ranks), m_extra(total % ranks) {}
  /// Divides by `counts`, or evenly if it is empty. @throws contract_error if they do not fit.
  BlockCounts(const char* where, std::size_t total, std::size_t ranks,
              const std::vector<std::size_t>& counts);

  /// Divides by `counts`, or into blocks of `each` if it is empty; for a rank that has one block.
  [[nodiscard]] static BlockCounts of_each(const char* where, std::size_t each, std::size_t ranks,
                                           const std::vector<std::size_t>& counts);

  [[nodiscard]] std::size_t total() const noexcept { return m_total; }
  [[nodiscard]] std::size_t ranks() const noexcept { return m_ranks; }
  [[nodiscard]] std::size_t count(std::size_t rank) const {
    if (!m_counts.empty()) return m_counts[rank];
    return m_each + (rank < m_extra ? 1 : 0);
  }
  [[nodiscard]] std::size_t first(std::size_t rank) const;
  [[nodiscard]] bool even() const noexcept { return m_counts.empty() && m_extra == 0; }

  /// The bytes of every block.
  [[nodiscard]] std::vector<Bytes> bytes(Bytes element) const;
  /// Makes mpi_counts() and mpi_firsts(), as MPI takes blocks that are not even, in units of
  /// `unit`.
  void to_mpi(Bytes unit);
  [[nodiscard]] const int* mpi_counts() const noexcept { return m_mpi_counts.data(); }
  [[nodiscard]] const int* mpi_firsts() const noexcept { return m_mpi_firsts.data(); }

 private:
  std::size_t m_total = 0;
  std::size_t m_ranks = 1;
  std::size_t m_each = 0;   ///< the least block of an even division
  std::size_t m_extra = 0;  ///< and how many have one more
  std::vector<std::size_t> m_counts;
  std::vector<int> m_mpi_counts, m_mpi_firsts;
};

/// Returns true if MPI, whose counts are int, can be told so many.
[[nodiscard]] constexpr bool fits_int(Bytes count) noexcept {
  return count <= static_cast<Bytes>(std::numeric_limits<int>::max());
}

}  // namespace impl
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_COLLECTIVE
#include <heddle/collective/internal/block_counts.ipp>
#endif
