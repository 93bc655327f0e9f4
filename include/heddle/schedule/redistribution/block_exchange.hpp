// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BlockExchange: which blocks of bytes go from arrays of ranks into arrays of ranks: what a
/// redistribution and a halo exchange come to, before they are a Schedule.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0::schedule {

/// Bytes of one rank's array, in order.
struct Piece {
  Rank rank;                         ///< of the communicator
  std::vector<StridedBlock> blocks;  ///< one after the other

  /// Whether they are one run, which needs no packing.
  [[nodiscard]] bool contiguous() const noexcept {
    return blocks.size() == 1 && blocks.front().contiguous();
  }
};

/// One piece that becomes another one, or what several are merged to. They have as many bytes.
struct Delivery {
  std::uint32_t piece = 0;  ///< the target, of BlockExchange::pieces; its sources follow
  std::uint32_t parts = 1;  ///< sources; where there are several they are merged in this order
  Bytes bytes = 0;          ///< of each piece
};

/// Deliveries that do not depend on one another.
struct ExchangeStep {
  std::string_view name;             ///< what it is: "all_gather"
  bool within = false;               ///< its sources lie in the arrays "to"
  std::vector<Delivery> deliveries;  ///< no two write the same bytes
};

/// Blocks that go from the arrays "from" of the ranks of a communicator into their arrays "to", in
/// steps.
struct BlockExchange {
  std::vector<Bytes> from;          ///< the size of each rank's array
  std::vector<Bytes> to;            ///< likewise
  std::vector<Piece> pieces;        ///< of all deliveries
  std::vector<ExchangeStep> steps;  ///< one after the other

  /// What a delivery writes.
  [[nodiscard]] const Piece& target(const Delivery& delivery) const {
    return pieces[delivery.piece];
  }
  /// What it reads.
  [[nodiscard]] std::span<const Piece> sources(const Delivery& delivery) const {
    return std::span(pieces).subspan(delivery.piece + 1, delivery.parts);
  }

  /// Appends a delivery to the last step.
  void deliver(Piece target, std::vector<Piece> sources, Bytes bytes);

  /// Calls `visit(from, to, bytes)` for all that goes from one rank to another.
  template <class Visit>
  void for_each_message(Visit&& visit) const {
    for (const ExchangeStep& step : steps)
      for (const Delivery& delivery : step.deliveries)
        for (const Piece& source : sources(delivery))
          if (source.rank != target(delivery).rank)
            visit(source.rank, target(delivery).rank, delivery.bytes);
  }
  /// Bytes that leave a rank for another one, all ranks together.
  [[nodiscard]] Bytes bytes() const;
};

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/redistribution/block_exchange.ipp>
#endif
