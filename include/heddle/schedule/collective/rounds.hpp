// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Rounds: what every collective is made of. An algorithm lists hops; this turns them into actions.

#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>

namespace heddle::inline v0 {

class Builder;

}  // namespace heddle::inline v0

namespace heddle::inline v0::schedule {

/// Blocks [first, first + count) of one member of a collective.
struct Blocks {
  std::uint32_t member = 0;  ///< whose
  std::uint32_t first = 0;   ///< the first block
  std::uint32_t count = 1;   ///< number of blocks
};

/// One message: blocks go from one member to another, which stores or merges them.
struct Hop {
  Blocks from;            ///< what is sent
  Blocks to;              ///< where it goes
  bool merges = false;    ///< into what is there: to = to + from; else in its place
  bool in_front = false;  ///< of what is there it is merged: to = from + to
};

/// What happens at the same time: no hop of a round needs what another one of it brings.
using Round = std::vector<Hop>;

/// An algorithm, played through.
using Rounds = std::vector<Round>;

/// Appends the actions of `rounds` to `builder`. Member i is the range `members[i]`, every block of
/// which is `chunks` parts; a hop becomes as many messages, one behind the other. Where all hops
/// are of single blocks the next round begins with the first while the last is under way.
///
/// A move carries a message, in lane 0 of the channel between the two ranks, or in local lane 1
/// where both members lie on one rank: a copy, which the handler makes. What is merged goes to a
/// transient buffer of role "scratch" first, and a combine in local lane 1 follows: its first use
/// is merged behind the second, into the one that it updates. Where sizes are known, parts of no
/// bytes are not sent.
void append(Builder& builder, std::span<const Use> members, Stage stage, const Rounds& rounds,
            int chunks);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/rounds.ipp>
#endif
