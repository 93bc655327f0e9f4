// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardOrder: how a dimension is divided among the ranks of a mesh axis.

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

/// A rule that divides n indices among P ranks, for any n. It adds no padding, and a rank may get
/// no indices. Each rank keeps its indices in ascending order.
class ShardOrder {
 public:
  /// Constructs the order even().
  ShardOrder() = default;

  /// Returns the order with one block of n / P indices for each rank. The first n % P blocks have
  /// one index more.
  [[nodiscard]] static ShardOrder even() { return {}; }
  /// Returns the order with one block for each rank in proportion to its weight. The block of rank
  /// r ends at n (w[0] + ... + w[r]) / (w[0] + ... + w[P-1]), rounded down. If the weights sum up
  /// to n, they are the sizes of the blocks.
  /// @throws contract_error if a weight is below 0, or if no weight is above 0.
  [[nodiscard]] static ShardOrder weighted(std::vector<std::int64_t> weights);
  /// Returns the block-cyclic order: block k of `block` indices goes to rank k % P. The last block
  /// may be shorter.
  /// @throws contract_error if `block` is below 1.
  [[nodiscard]] static ShardOrder cyclic(std::int64_t block = 1);
  /// Returns the order that divides the indices into `pieces` pieces as even() does, and then each
  /// piece among the ranks as even() does. Rank r gets the r-th block of every piece.
  /// @throws contract_error if `pieces` is below 1.
  [[nodiscard]] static ShardOrder strided(std::int64_t pieces);
  /// Returns the order that divides the indices into 2 P blocks as even() does, and gives rank r
  /// the blocks r and 2 P - 1 - r. It balances work that grows along the dimension, as under a
  /// causal mask.
  [[nodiscard]] static ShardOrder zigzag() { return ShardOrder(Kind::zigzag, 1); }

  /// Returns the share of rank `rank` of `ranks` ranks in the indices 0 to n - 1.
  /// @throws contract_error if n is below 0, if `rank` is not below `ranks`, or if the number of
  ///         weights is not `ranks`.
  [[nodiscard]] IndexSet share(std::int64_t n, std::int64_t ranks, std::int64_t rank) const;

  /// Returns true if the share of every rank is one interval, for any n.
  [[nodiscard]] bool in_blocks() const noexcept {
    return m_kind == Kind::even || m_kind == Kind::weighted;
  }
  /// Returns true if the order can divide among `ranks` ranks.
  [[nodiscard]] bool fits(std::size_t ranks) const noexcept {
    return m_kind != Kind::weighted || m_weights.size() == ranks;
  }

  /// Encodes the order as numbers, for a message. of_numbers() decodes them.
  [[nodiscard]] std::vector<std::int64_t> numbers() const;
  /// Decodes an order from the result of numbers() of the same version of the library.
  [[nodiscard]] static ShardOrder of_numbers(std::span<const std::int64_t> numbers);

  friend bool operator==(const ShardOrder&, const ShardOrder&) = default;

  /// Prints "even", "cyclic(2)" or "weighted(3, 1)".
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
  std::int64_t m_number = 1;  ///< block of cyclic, or pieces of strided
  std::vector<std::int64_t> m_weights;
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_LAYOUT
#include <heddle/layout/shard_order.ipp>
#endif
