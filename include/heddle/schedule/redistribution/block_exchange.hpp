// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BlockExchange: the blocks of bytes that go from arrays of ranks to arrays of ranks. A
/// redistribution and a halo exchange become a BlockExchange first, and then a Schedule.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/strided_block.hpp>

namespace heddle::inline v0::schedule {

/// A piece of one rank's array: its bytes, in order.
struct Piece {
  Rank rank;                         ///< rank of the communicator
  std::vector<StridedBlock> blocks;  ///< the blocks, one after the other

  /// Returns true if the bytes are one run, which needs no packing.
  [[nodiscard]] bool contiguous() const noexcept {
    return blocks.size() == 1 && blocks.front().contiguous();
  }
};

/// An exchange of blocks, in steps. Blocks go from the arrays "from" of the ranks of a communicator
/// to their arrays "to".
struct BlockExchange {
  /// A delivery copies one source piece to a target piece, or merges several source pieces into it.
  /// All pieces of a delivery have the same size.
  struct Delivery {
    std::uint32_t piece = 0;  ///< the target, in BlockExchange::pieces; its sources follow it
    std::uint32_t parts = 1;  ///< number of sources; several are merged in this order
    Bytes bytes = 0;          ///< bytes of each piece
  };

  /// A step of an exchange: deliveries that do not depend on one another.
  struct Step {
    std::string_view name;             ///< name of the operation: "all_gather"
    bool within = false;               ///< whether its sources lie in the arrays "to"
    std::vector<Delivery> deliveries;  ///< the deliveries; no two write the same bytes
  };

  std::vector<Bytes> from;    ///< size in bytes of each rank's array "from"
  std::vector<Bytes> to;      ///< size in bytes of each rank's array "to"
  std::vector<Piece> pieces;  ///< the pieces of all deliveries
  std::vector<Step> steps;    ///< the steps, in order

  /// The piece that a delivery writes.
  [[nodiscard]] const Piece& target(const Delivery& delivery) const {
    return pieces[delivery.piece];
  }
  /// The pieces that a delivery reads.
  [[nodiscard]] std::span<const Piece> sources(const Delivery& delivery) const;

  /// Appends a delivery to the last step.
  void deliver(Piece target, std::vector<Piece> sources, Bytes bytes);

  /// Calls `visit(from, to, bytes)` for every piece that goes from one rank to another.
  template <class Visit>
  void for_each_message(Visit&& visit) const {
    for (const Step& step : steps)
      for (const Delivery& delivery : step.deliveries)
        for (const Piece& source : sources(delivery))
          if (source.rank != target(delivery).rank)
            visit(source.rank, target(delivery).rank, delivery.bytes);
  }
  /// Number of bytes sent between ranks, summed over all ranks.
  /// @throws contract_error as check() does.
  [[nodiscard]] Bytes bytes() const;
};

/// Checks the pieces and the deliveries of an exchange.
/// @throws contract_error if the arrays `from` and `to` are not as many, if a delivery names pieces
///         that do not exist or have other sizes, or if a piece is on a rank that does not exist or
///         outside of its array. The error names the delivery or the piece.
void check(const BlockExchange& exchange);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_REDISTRIBUTION
#include <heddle/schedule/redistribution/block_exchange.ipp>
#endif
