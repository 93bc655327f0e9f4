// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_schedule(BlockExchange): turns an exchange into actions that pack, send, merge and unpack.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {
/// Returns the Schedule of an exchange. Its buffers are the arrays "from" and "to" of each rank
/// that has them, which are not transient, and transient buffers "packed" and "arrived".
///
/// A cast packs or unpacks a piece. Its item is the piece's number in BlockExchange::pieces, and
/// its second use is the complete array. If its first use is written, it packs; if its first use is
/// read, it unpacks. Pieces of one run are sent and received in place, without packing. With
/// `apart` all pieces are packed, and only unpacking writes to an array.
///
/// Sources are combined in their order. A combine merges its first use behind its second use, into
/// the one that it updates. The item of a message is the number of its piece.
[[nodiscard]] Schedule to_schedule(const BlockExchange& exchange, std::string name, Scalar type,
                                   bool apart = false);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_REDISTRIBUTION
#include <heddle/schedule/redistribution/exchange_schedule.ipp>
#endif
