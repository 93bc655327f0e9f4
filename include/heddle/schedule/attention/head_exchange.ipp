// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of head_exchange.hpp.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/fits.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/layout/shard_order.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/layout/shared_region.hpp>
#include <heddle/schedule/attention/head_exchange.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE void HeadExchange::expect_valid(std::size_t ranks) const {
  constexpr const char* where = "heddle::schedule::HeadExchange";
  expects(ranks >= 1 && tokens >= 0, [&] {
    return ErrorInfo{where, "there must be a rank, and at least 0 tokens",
                     text("ranks = ", ranks, ", tokens = ", tokens)};
  });
  expects(heads >= 1 && kv_heads >= 1 && heads % kv_heads == 0 && head_width >= 1, [&] {
    return ErrorInfo{
        where, "the heads need columns, and must be a multiple of the K,V heads",
        text("heads = ", heads, ", kv_heads = ", kv_heads, ", head_width = ", head_width)};
  });
  // The largest array has the columns Q | K | V of every token, and K,V no more than Q.
  expects(heddle::impl::product_fits(
              {3, heads, head_width, static_cast<std::uint64_t>(tokens), sequences}),
          [&] {
            return ErrorInfo{where, "the elements do not fit in 63 bits",
                             text("sequences = ", sequences, ", tokens = ", tokens,
                                  ", heads = ", heads, ", head_width = ", head_width)};
          });
}

HEDDLE_INLINE IndexSet HeadExchange::columns(std::size_t ranks, std::size_t rank) const {
  expect_valid(ranks);
  expects(rank < ranks, [&] {
    return ErrorInfo{"heddle::schedule::HeadExchange::columns", "there is no such rank",
                     text("rank ", rank, " of ", ranks)};
  });
  const Share kv = even_share(kv_heads, ranks, rank);
  IndexSet columns;
  const auto add = [&](std::size_t begin, std::size_t of_each) {
    columns.add({static_cast<std::int64_t>(begin + kv.first * of_each),
                 static_cast<std::int64_t>(begin + kv.end() * of_each)});
  };
  add(0, heads / kv_heads * head_width);
  if (!qkv) return columns;
  add(heads * head_width, head_width);
  add((heads + kv_heads) * head_width, head_width);
  return columns;
}

HEDDLE_INLINE BlockExchange HeadExchange::blocks(std::size_t ranks, Bytes element) const {
  using Side = SharedRegion::Side;
  expect_valid(ranks);
  expects(element >= 1, [&] {
    return ErrorInfo{"heddle::schedule::HeadExchange::blocks", "an element has at least one byte",
                     text("element = ", element)};
  });
  struct Part {
    std::vector<IndexSet> indices;
    SharedRegion::Array array;
  };
  const auto part = [&](IndexSet rows, IndexSet of_heads) {
    const auto all = static_cast<std::int64_t>(sequences);
    SharedRegion::Array array{{all, rows.size(), of_heads.size()}, {0, 0, 0}};
    return Part{{IndexSet(all), std::move(rows), std::move(of_heads)}, std::move(array)};
  };
  const IndexSet every_column = columns(1, 0);
  std::vector<Part> from, to;
  BlockExchange exchange;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Part by_tokens = part(ShardOrder().share(tokens, static_cast<std::int64_t>(ranks),
                                             static_cast<std::int64_t>(rank)),
                          every_column);
    Part by_heads = part(IndexSet(tokens), columns(ranks, rank));
    if (to_tokens) std::swap(by_tokens, by_heads);
    exchange.from.push_back(by_tokens.array.bytes(element));
    exchange.to.push_back(by_heads.array.bytes(element));
    from.push_back(std::move(by_tokens));
    to.push_back(std::move(by_heads));
  }
  exchange.steps.push_back({"all_to_all", false, {}});
  for (std::size_t step = 0; step < ranks; ++step)
    for (std::size_t source = 0; source < ranks; ++source) {
      const std::size_t target = (source + step) % ranks;
      const SharedRegion region(from[source].indices, to[target].indices);
      if (region.elements() == 0) continue;
      exchange.deliver({Rank{target}, region.blocks(Side::b, to[target].array, element)},
                       {{Rank{source}, region.blocks(Side::a, from[source].array, element)}},
                       static_cast<Bytes>(region.elements()) * element);
    }
  if (exchange.steps.front().deliveries.empty()) exchange.steps.clear();
  return exchange;
}

}  // namespace heddle::inline v0::schedule
