// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of block_exchange.hpp.

#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>

namespace heddle::inline v0::schedule {

HEDDLE_INLINE void BlockExchange::deliver(Piece target, std::vector<Piece> sources, Bytes bytes) {
  steps.back().deliveries.push_back({static_cast<std::uint32_t>(pieces.size()),
                                     static_cast<std::uint32_t>(sources.size()), bytes});
  pieces.push_back(std::move(target));
  for (Piece& source : sources) pieces.push_back(std::move(source));
}

HEDDLE_INLINE Bytes BlockExchange::bytes() const {
  Bytes sum = 0;
  for_each_message([&](Rank, Rank, Bytes bytes) { sum += bytes; });
  return sum;
}

}  // namespace heddle::inline v0::schedule
