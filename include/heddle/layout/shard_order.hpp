// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ShardOrder: how a dimension is dealt out to the ranks of a mesh axis.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
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
  [[nodiscard]] static ShardOrder weighted(std::vector<std::int64_t> weights) {
    expects(std::ranges::all_of(weights, [](std::int64_t w) { return w >= 0; }) &&
                std::ranges::any_of(weights, [](std::int64_t w) { return w > 0; }),
            [&] {
              return Complaint{"heddle::ShardOrder::weighted",
                               "weights are at least 0, and one of them is more", list(weights)};
            });
    ShardOrder order(Kind::weighted, 1);
    order.m_weights = std::move(weights);
    return order;
  }
  /// Blocks of `block` indices in turn: block k goes to rank k % P. The last one may be shorter.
  /// @throws contract_error for blocks of less than one index.
  [[nodiscard]] static ShardOrder cyclic(std::int64_t block = 1) {
    return ShardOrder(Kind::cyclic, at_least_one("cyclic", "block", block));
  }
  /// In `pieces` pieces as even as even() makes them, each of which is dealt out evenly: rank r has
  /// the r-th block of every piece.
  /// @throws contract_error for less than one piece.
  [[nodiscard]] static ShardOrder strided(std::int64_t pieces) {
    return ShardOrder(Kind::strided, at_least_one("strided", "pieces", pieces));
  }
  /// In 2 P blocks as even as even() makes them: rank r has block r and block 2 P - 1 - r. Where
  /// work grows along the dimension, as it does under a causal mask, every rank has as much of it.
  [[nodiscard]] static ShardOrder zigzag() { return ShardOrder(Kind::zigzag, 1); }

  /// The indices of `rank`, one of `ranks`, out of n. @throws contract_error for an n below 0, a
  /// rank that is none of them, or weights of another number of ranks.
  [[nodiscard]] IndexSet share(std::int64_t n, std::int64_t ranks, std::int64_t rank) const {
    expects(n >= 0 && rank >= 0 && rank < ranks, [&] {
      return Complaint{"heddle::ShardOrder::share", "one of the ranks has a share of n indices",
                       text("rank ", rank, " of ", ranks, ", n = ", n)};
    });
    IndexSet share;
    switch (m_kind) {
      case Kind::even: share.add(block(n, ranks, rank)); break;
      case Kind::weighted: share.add(weighted_block(n, ranks, rank)); break;
      case Kind::cyclic: {
        const std::int64_t each = std::min(m_number, n);
        __extension__ using Wide = __int128;  // blocks times ranks may be more than n, and 64 bits
        for (Wide begin = Wide{rank} * each; begin < n; begin += Wide{ranks} * each)
          share.add({static_cast<std::int64_t>(begin),
                     static_cast<std::int64_t>(std::min<Wide>(begin + each, n))});
        break;
      }
      case Kind::strided:
        for (std::int64_t p = 0; p < std::min(m_number, n); ++p) {
          const Interval piece = block(n, m_number, p);
          const Interval mine = block(piece.size(), ranks, rank);
          share.add({piece.begin + mine.begin, piece.begin + mine.end});
        }
        break;
      case Kind::zigzag:
        share.add(block(n, 2 * ranks, rank));
        share.add(block(n, 2 * ranks, 2 * ranks - 1 - rank));
        break;
    }
    return share;
  }

  /// Whether every rank has one block of neighbours, whatever n is.
  [[nodiscard]] bool in_blocks() const noexcept {
    return m_kind == Kind::even || m_kind == Kind::weighted;
  }
  /// Whether it can deal out to so many.
  [[nodiscard]] bool fits(std::size_t ranks) const noexcept {
    return m_kind != Kind::weighted || m_weights.size() == ranks;
  }

  /// It as numbers, for a message: of_numbers() makes it of them.
  [[nodiscard]] std::vector<std::int64_t> numbers() const {
    std::vector<std::int64_t> numbers = {static_cast<std::int64_t>(m_kind), m_number};
    numbers.insert(numbers.end(), m_weights.begin(), m_weights.end());
    return numbers;
  }
  /// What numbers() of the same version of the library returned.
  [[nodiscard]] static ShardOrder of_numbers(std::span<const std::int64_t> numbers) {
    ShardOrder order(static_cast<Kind>(numbers[0]), numbers[1]);
    order.m_weights.assign(numbers.begin() + 2, numbers.end());
    return order;
  }

  friend bool operator==(const ShardOrder&, const ShardOrder&) = default;

  /// As in "even", "cyclic(2)", "weighted(3, 1)".
  friend std::ostream& operator<<(std::ostream& out, const ShardOrder& order) {
    constexpr std::array names = {"even", "weighted", "cyclic", "strided", "zigzag"};
    out << names[static_cast<std::size_t>(order.m_kind)];
    if (order.m_kind == Kind::weighted) return out << '(' << list(order.m_weights) << ')';
    if (order.m_kind == Kind::cyclic || order.m_kind == Kind::strided)
      out << '(' << order.m_number << ')';
    return out;
  }

 private:
  enum class Kind : std::uint8_t { even, weighted, cyclic, strided, zigzag };

  ShardOrder(Kind kind, std::int64_t number) : m_kind(kind), m_number(number) {}

  [[nodiscard]] static std::int64_t at_least_one(const char* order, const char* what,
                                                 std::int64_t number) {
    expects(number >= 1, [&] {
      return Complaint{text("heddle::ShardOrder::", order), text("'", what, "' is at least 1"),
                       text(number)};
    });
    return number;
  }
  [[nodiscard]] static std::string list(const std::vector<std::int64_t>& numbers) {
    std::string all;
    for (const std::int64_t number : numbers) all += text(all.empty() ? "" : ", ", number);
    return all;
  }
  [[nodiscard]] static Interval block(std::int64_t n, std::int64_t blocks, std::int64_t which) {
    const Share share = even_share(static_cast<std::size_t>(n), static_cast<std::size_t>(blocks),
                                   static_cast<std::size_t>(which));
    return {static_cast<std::int64_t>(share.first), static_cast<std::int64_t>(share.end())};
  }
  [[nodiscard]] Interval weighted_block(std::int64_t n, std::int64_t ranks,
                                        std::int64_t rank) const {
    expects(fits(static_cast<std::size_t>(ranks)), [&] {
      return Complaint{"heddle::ShardOrder::share", "there is one weight for each rank",
                       text(m_weights.size(), " weights, ", ranks, " ranks")};
    });
    __extension__ using Wide = __int128;  // n times a sum of weights
    const auto sum = [&](std::int64_t first) {
      return std::accumulate(m_weights.begin(), m_weights.begin() + first, Wide{0});
    };
    const Wide all = sum(ranks);
    return {static_cast<std::int64_t>(n * sum(rank) / all),
            static_cast<std::int64_t>(n * sum(rank + 1) / all)};
  }

  Kind m_kind = Kind::even;
  std::int64_t m_number = 1;  ///< the block of cyclic, the pieces of strided
  std::vector<std::int64_t> m_weights;
};

}  // namespace heddle::inline v0
