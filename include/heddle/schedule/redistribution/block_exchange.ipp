// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of block_exchange.hpp.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE void BlockExchange::deliver(Piece target, std::vector<Piece> sources, Bytes bytes) {
  steps.back().deliveries.push_back({static_cast<std::uint32_t>(pieces.size()),
                                     static_cast<std::uint32_t>(sources.size()), bytes});
  pieces.push_back(std::move(target));
  for (Piece& source : sources) pieces.push_back(std::move(source));
}

HEDDLE_INLINE std::span<const Piece> BlockExchange::sources(
    const BlockExchange::Delivery& delivery) const {
  return {pieces.data() + delivery.piece + 1, delivery.parts};
}

HEDDLE_INLINE Bytes BlockExchange::bytes() const {
  check(*this);
  Bytes sum = 0;
  for_each_message([&](Rank, Rank, Bytes bytes) { sum += bytes; });
  return sum;
}

HEDDLE_INLINE void check(const BlockExchange& exchange) {
  constexpr const char* where = "heddle::schedule::BlockExchange";
  const std::size_t ranks = exchange.to.size();
  expects(ranks >= 1 && exchange.from.size() == ranks, [&] {
    return ErrorInfo{where, "each rank needs the sizes of both arrays",
                     text(exchange.from.size(), " sizes in `from`, ", ranks, " in `to`")};
  });
  const auto check_piece = [&](std::size_t number, const std::vector<Bytes>& arrays, Bytes bytes) {
    const Piece& piece = exchange.pieces[number];
    expects(+piece.rank < ranks, [&] {
      return ErrorInfo{where, "a piece is on a rank that does not exist",
                       text("piece ", number, ": rank ", piece.rank, " of ", ranks)};
    });
    Bytes sum = 0;
    for (const StridedBlock& block : piece.blocks) {
      const auto [begin, end] = block.bounds();
      expects(begin >= 0 && static_cast<Bytes>(end) <= arrays[+piece.rank], [&] {
        return ErrorInfo{where, "a piece lies outside of its array",
                         text("piece ", number, ": bytes ", begin, " to ", end, " of ",
                              arrays[+piece.rank], " on rank ", piece.rank)};
      });
      sum += block.bytes();
    }
    expects(!piece.blocks.empty() && sum == bytes, [&] {
      return ErrorInfo{where, "a piece does not have the bytes of its delivery",
                       text("piece ", number, " has ", sum, " bytes in ", piece.blocks.size(),
                            " blocks, the delivery ", bytes)};
    });
  };
  for (std::size_t s = 0; s < exchange.steps.size(); ++s) {
    const BlockExchange::Step& step = exchange.steps[s];
    for (std::size_t d = 0; d < step.deliveries.size(); ++d) {
      const BlockExchange::Delivery& delivery = step.deliveries[d];
      expects(delivery.parts >= 1 &&
                  std::uint64_t{delivery.piece} + delivery.parts < exchange.pieces.size(),
              [&] {
                return ErrorInfo{where, "a delivery names pieces that do not exist",
                                 text("delivery ", d, " of step ", s, " ('", step.name,
                                      "'): piece ", delivery.piece, " and ", delivery.parts,
                                      " sources of ", exchange.pieces.size(), " pieces")};
              });
      check_piece(delivery.piece, exchange.to, delivery.bytes);
      for (std::size_t part = 1; part <= delivery.parts; ++part)
        check_piece(delivery.piece + part, step.within ? exchange.to : exchange.from,
                    delivery.bytes);
    }
  }
}

}  // namespace heddle::inline v0::schedule
