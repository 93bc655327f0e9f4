// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of shard_order.hpp.

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
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/shard_order.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE ShardOrder ShardOrder::weighted(std::vector<std::int64_t> weights) {
  expects(std::ranges::all_of(weights, [](std::int64_t w) { return w >= 0; }) &&
              std::ranges::any_of(weights, [](std::int64_t w) { return w > 0; }),
          [&] {
            return ErrorInfo{"heddle::ShardOrder::weighted",
                             "weights must be at least 0, and one of them above 0", list(weights)};
          });
  ShardOrder order(Kind::weighted, 1);
  order.m_weights = std::move(weights);
  return order;
}

HEDDLE_INLINE ShardOrder ShardOrder::cyclic(std::int64_t block) {
  return ShardOrder(Kind::cyclic, at_least_one("cyclic", "block", block));
}

HEDDLE_INLINE ShardOrder ShardOrder::strided(std::int64_t pieces) {
  return ShardOrder(Kind::strided, at_least_one("strided", "pieces", pieces));
}

HEDDLE_INLINE IndexSet ShardOrder::share(std::int64_t n, std::int64_t ranks,
                                         std::int64_t rank) const {
  expects(n >= 0 && rank >= 0 && rank < ranks, [&] {
    return ErrorInfo{"heddle::ShardOrder::share",
                     "n must be at least 0, and the rank one of the ranks",
                     text("rank ", rank, " of ", ranks, ", n = ", n)};
  });
  IndexSet share;
  switch (m_kind) {
    case Kind::even: share.add(block(n, ranks, rank)); break;
    case Kind::weighted: share.add(weighted_block(n, ranks, rank)); break;
    case Kind::cyclic: {
      const std::int64_t each = std::min(m_number, n);
      __extension__ using Wide = __int128;  // block times ranks may exceed 64 bits
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

HEDDLE_INLINE std::vector<std::int64_t> ShardOrder::numbers() const {
  std::vector<std::int64_t> numbers = {static_cast<std::int64_t>(m_kind), m_number};
  numbers.insert(numbers.end(), m_weights.begin(), m_weights.end());
  return numbers;
}

HEDDLE_INLINE ShardOrder ShardOrder::of_numbers(std::span<const std::int64_t> numbers) {
  ShardOrder order(static_cast<Kind>(numbers[0]), numbers[1]);
  order.m_weights.assign(numbers.begin() + 2, numbers.end());
  return order;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const ShardOrder& order) {
  constexpr std::array names = {"even", "weighted", "cyclic", "strided", "zigzag"};
  out << names[static_cast<std::size_t>(order.m_kind)];
  if (order.m_kind == ShardOrder::Kind::weighted)
    return out << '(' << ShardOrder::list(order.m_weights) << ')';
  if (order.m_kind == ShardOrder::Kind::cyclic || order.m_kind == ShardOrder::Kind::strided)
    out << '(' << order.m_number << ')';
  return out;
}

HEDDLE_INLINE std::int64_t ShardOrder::at_least_one(const char* order, const char* what,
                                                    std::int64_t number) {
  expects(number >= 1, [&] {
    return ErrorInfo{text("heddle::ShardOrder::", order), text("'", what, "' must be at least 1"),
                     text(number)};
  });
  return number;
}

HEDDLE_INLINE std::string ShardOrder::list(const std::vector<std::int64_t>& numbers) {
  std::string all;
  for (const std::int64_t number : numbers) all += text(all.empty() ? "" : ", ", number);
  return all;
}

HEDDLE_INLINE Interval ShardOrder::block(std::int64_t n, std::int64_t blocks, std::int64_t which) {
  const Share share = even_share(static_cast<std::size_t>(n), static_cast<std::size_t>(blocks),
                                 static_cast<std::size_t>(which));
  return {static_cast<std::int64_t>(share.first), static_cast<std::int64_t>(share.end())};
}

HEDDLE_INLINE Interval ShardOrder::weighted_block(std::int64_t n, std::int64_t ranks,
                                                  std::int64_t rank) const {
  expects(fits(static_cast<std::size_t>(ranks)), [&] {
    return ErrorInfo{"heddle::ShardOrder::share", "each rank needs one weight",
                     text(m_weights.size(), " weights, ", ranks, " ranks")};
  });
  __extension__ using Wide = __int128;  // n times a sum of weights may exceed 64 bits
  const auto sum = [&](std::int64_t first) {
    return std::accumulate(m_weights.begin(), m_weights.begin() + first, Wide{0});
  };
  const Wide all = sum(ranks);
  return {static_cast<std::int64_t>(n * sum(rank) / all),
          static_cast<std::int64_t>(n * sum(rank + 1) / all)};
}

}  // namespace heddle::inline v0
