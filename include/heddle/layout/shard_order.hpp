// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardOrder: how a dimension is dealt out to the ranks of a mesh axis.

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/share.hpp>

namespace heddle::inline v0 {

/// Which of n indices go to which of P ranks, for any n: nothing is padded, and a rank may have
/// none. Each rank keeps its indices in ascending order.
class ShardOrder {
 public:
  /// As even(): blocks of n / P, of which the first n % P have one more.
  ShardOrder() = default;

  /// One block for each rank, of n / P indices; the first n % P blocks have one more.
  [[nodiscard]] static ShardOrder even() { return {}; }
  /// One block for each rank: that of rank r ends at n (w[0] + ... + w[r]) / (w[0] + ... + w[P-1]),
  /// rounded down. Weights that sum up to n are the sizes of the blocks.
  /// @throws contract_error for a weight below 0, or none above.
  [[nodiscard]] static ShardOrder weighted(std::vector<std::int64_t> weights);
  /// Blocks of `block` indices in turn: block k goes to rank k % P. The last one may be shorter.
  /// @throws contract_error for blocks of less than one index.
  [[nodiscard]] static ShardOrder cyclic(std::int64_t block = 1);
  /// In `pieces` pieces as even as even() makes them, each of which is dealt out evenly: rank r has
  /// the r-th block of every piece.
  /// @throws contract_error for less than one piece.
  [[nodiscard]] static ShardOrder strided(std::int64_t pieces);
  /// In 2 P blocks as even as even() makes them: rank r has block r and block 2 P - 1 - r. Where
  /// work grows along the dimension, as it does under a causal mask, every rank has as much of it.
  [[nodiscard]] static ShardOrder zigzag() { return ShardOrder(Kind::zigzag, 1); }

  /// The indices of `rank`, one of `ranks`, out of n. @throws contract_error for an n below 0, a
  /// rank that is none of them, or weights of another number of ranks.
  [[nodiscard]] IndexSet share(std::int64_t n, std::int64_t ranks, std::int64_t rank) const;

  /// Whether every rank has one block of neighbours, whatever n is.
  [[nodiscard]] bool in_blocks() const noexcept {
    return m_kind == Kind::even || m_kind == Kind::weighted;
  }
  /// Whether it can deal out to so many.
  [[nodiscard]] bool fits(std::size_t ranks) const noexcept {
    return m_kind != Kind::weighted || m_weights.size() == ranks;
  }

  /// It as numbers, for a message: of_numbers() makes it of them.
  [[nodiscard]] std::vector<std::int64_t> numbers() const;
  /// What numbers() of the same version of the library returned.
  [[nodiscard]] static ShardOrder of_numbers(std::span<const std::int64_t> numbers);

  friend bool operator==(const ShardOrder&, const ShardOrder&) = default;

  /// As in "even", "cyclic(2)", "weighted(3, 1)".
  friend std::ostream& operator<<(std::ostream& out, const ShardOrder& order);

 private:
  enum class Kind : std::uint8_t { even, weighted, cyclic, strided, zigzag };

  ShardOrder(Kind kind, std::int64_t number) : m_kind(kind), m_number(number) {}

  [[nodiscard]] static std::int64_t at_least_one(const char* order, const char* what,
                                                 std::int64_t number);
  [[nodiscard]] static std::string list(const std::vector<std::int64_t>& numbers);
  [[nodiscard]] static Interval block(std::int64_t n, std::int64_t blocks, std::int64_t which);
  [[nodiscard]] Interval weighted_block(std::int64_t n, std::int64_t ranks,
                                        std::int64_t rank) const;

  Kind m_kind = Kind::even;
  std::int64_t m_number = 1;  ///< the block of cyclic, the pieces of strided
  std::vector<std::int64_t> m_weights;
};

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/layout/shard_order.ipp>
#endif
