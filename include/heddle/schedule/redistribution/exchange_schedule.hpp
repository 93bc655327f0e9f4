// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// to_schedule(BlockExchange): packing, messages, merging and unpacking as actions.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {
/// The Schedule of an exchange. Of each rank that has one, its arrays "from" and "to", which are
/// not transient. A cast whose first use is written packs the piece of BlockExchange::pieces that
/// its item is the number of, out of the array that its second use is all of; one whose first use
/// is read unpacks into it. Pieces in one run are not packed, but sent and received where they lie;
/// `apart`, all are packed, and nothing is written to an array but by what unpacks. What is merged
/// is combined in the order of its sources: a combine merges what its first use has behind what its
/// second has, to the one that is updated. A message's item is the piece it carries.
[[nodiscard]] Schedule to_schedule(const BlockExchange& exchange, std::string name, Scalar type,
                                   bool apart = false);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/redistribution/exchange_schedule.ipp>
#endif
