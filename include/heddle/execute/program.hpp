// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Program: one rank's part of a Schedule with memory bound. slice() makes it, an Executor runs it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/execute/task.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace impl {

/// The progress of a rank over all steps, counted in its own actions. It lies in memory that every
/// rank of the domain can read, and begins at 0.
using ProgressCounter = std::atomic<std::uint64_t>;

}  // namespace impl

/// One rank's part of a Schedule. slice() makes it; users do not write it by hand.
///
/// A move is posted at its place in the list. The rank waits for it as late as possible: just
/// before the first later action that conflicts with it. This cannot deadlock. Consider the rank
/// that is blocked at the smallest place j of the list and waits for a move i < j. Its peer has
/// either passed i and posted it, or is blocked at or before i < j, which is a contradiction.
struct Program {
  /// One end of a channel at this rank. The messages of a port start, and are waited for, in order.
  /// If the peer's memory is shared, its progress replaces the messages. A port of a Mover has
  /// moves within the rank in place of messages; the peer is then the rank itself.
  struct Port {
    Rank peer;                   ///< the rank at the other end
    Lane lane = {};              ///< the lane of the channel
    bool sends = false;          ///< true if messages go from this rank to the peer
    std::uint32_t messages = 0;  ///< the number of messages per step
    const impl::ProgressCounter* progress =
        nullptr;         ///< the peer's progress, if its memory is shared
    bool mover = false;  ///< true if a Mover performs the moves of the port
  };

  /// The part of a Program at one place of the list.
  struct Step {
    /// The kinds of steps. A move between ranks is a send on one rank and a receive on the other. A
    /// move between tiers, in a queue of moves only, is a step `move`: a Mover performs it. All
    /// other actions run. A settle waits for messages that an action of another rank depends on,
    /// because that rank sees only the progress of this one. A settle without waits at the begin of
    /// the list shows that the rank has begun the step.
    enum class Does : std::uint8_t { run, send, receive, settle, move };

    ActionId action;               ///< the action, by its place in the list
    Does does = Does::run;         ///< this rank's part of the action
    std::uint32_t port = 0;        ///< the port of a send, receive or move
    std::uint32_t progress = 0;    ///< the rank's progress afterwards; 0: nobody waits
    std::uint32_t first_wait = 0;  ///< its waits: [first_wait, first_wait of the next step)
    std::uint32_t first_use = 0;   ///< its uses, in the same form

    /// Returns true if the step is one end of a message.
    [[nodiscard]] bool moves() const noexcept {
      return does == Does::send || does == Does::receive;
    }
    /// Returns true if the step starts an operation that ends later: a message, or a move of a
    /// Mover.
    [[nodiscard]] bool posts() const noexcept { return moves() || does == Does::move; }
  };

  /// A condition of a step: the first `messages` messages of `port` must be complete. They are
  /// counted from the begin of this pass over the schedule, or of the previous one if `carried` is
  /// true.
  struct Wait {
    std::uint32_t port = 0;      ///< the number of one of the program's ports
    std::uint32_t messages = 0;  ///< the number of its messages
    bool carried = false;        ///< counted in the previous pass
  };

  Schedule schedule;                          ///< the whole list
  Rank rank;                                  ///< the rank whose part it is
  std::vector<Step> steps;                    ///< and one entry that ends the ranges of the last
  std::vector<BoundUse> uses;                 ///< the uses of all steps, one after another
  std::vector<Wait> waits;                    ///< the waits of all steps, one after another
  std::vector<Port> ports;                    ///< ends of channels, and ranks that it waits for
  impl::ProgressCounter* progress = nullptr;  ///< its own; null if nobody reads it
  std::uint32_t progress_per_step = 0;        ///< the growth of the counter per step

  /// Returns the number of steps.
  [[nodiscard]] std::size_t size() const noexcept { return steps.size() - 1; }
  /// Returns the memory on this rank that a step touches.
  [[nodiscard]] std::span<const BoundUse> uses_of(std::size_t step) const {
    return {uses.data() + steps[step].first_use, steps[step + 1].first_use - steps[step].first_use};
  }
  /// Returns the messages that must be complete before a step.
  [[nodiscard]] std::span<const Wait> waits_of(std::size_t step) const {
    return {waits.data() + steps[step].first_wait,
            steps[step + 1].first_wait - steps[step].first_wait};
  }
};

}  // namespace heddle::inline v0
