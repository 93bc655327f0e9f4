// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Rounds: the messages of a collective. An algorithm lists hops, and append() turns them into
/// actions.

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0 {

class Builder;

}  // namespace heddle::inline v0

namespace heddle::inline v0::schedule::impl {

/// Blocks [first, first + count) of one member of a collective.
struct Blocks {
  std::uint32_t member = 0;  ///< the member
  std::uint32_t first = 0;   ///< the first block
  std::uint32_t count = 1;   ///< number of blocks
};

/// A message: blocks go from one member to another, which stores or merges them.
struct Hop {
  Blocks from;            ///< the blocks that are sent
  Blocks to;              ///< the blocks that receive them
  bool merges = false;    ///< true: to = to + from; false: to = from
  bool in_front = false;  ///< with `merges`: to = from + to
};

/// Hops that happen at the same time. No hop of a round needs the data of another hop of it.
using Round = std::vector<Hop>;

/// The rounds of an algorithm, in order.
using Rounds = std::vector<Round>;

/// Appends the actions of `rounds` to `builder`. Member i is the range `members[i]`. Each block has
/// `chunks` parts, and a hop becomes `chunks` consecutive messages. If all hops have single blocks,
/// the next round begins with the first chunk while the last chunk is in flight.
///
/// A move carries a message, in lane 0 of the channel between the two ranks. If both members lie on
/// one rank, it is in local lane 1, and the handler makes a copy. Data to be merged goes to a
/// transient buffer of role "scratch" first, and a combine in local lane 1 follows. The combine
/// merges its first use behind its second, into the use that it updates. If sizes are known, parts
/// of no bytes are not sent.
/// @throws contract_error if `chunks` is below 1.
void append(Builder& builder, std::span<const Use> members, Stage stage, const Rounds& rounds,
            int chunks);

}  // namespace heddle::inline v0::schedule::impl

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/impl/rounds.ipp>
#endif
