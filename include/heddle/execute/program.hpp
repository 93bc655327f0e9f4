// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Program: one rank's part of a Schedule with memory bound. slice() makes it; an Executor runs it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/execute/task.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// How far a rank has come in all its steps, counted in actions of its own. Lies where every rank
/// of its domain can read it, and begins with 0.
using ProgressCounter = std::atomic<std::uint64_t>;

/// One end of a channel at this rank. Messages of a port start and are waited for in order. Where
/// the peer's memory is shared, its progress takes the place of messages.
struct Port {
  Rank peer;                                  ///< at the other end
  Lane lane = {};                             ///< of the channel
  bool sends = false;                         ///< from here to the peer
  std::uint32_t messages = 0;                 ///< per step
  const ProgressCounter* progress = nullptr;  ///< of the peer, where it is what counts
};

/// What a Program does at one place of the list.
struct Step {
  /// A move between ranks is a send on one and a receive on the other; all else runs. To settle is
  /// to wait for messages that an action of another rank depends on, which sees progress only; with
  /// no waits, at the begin of the list, it tells that the rank has begun the step.
  enum class Does : std::uint8_t { run, send, receive, settle };

  ActionId action;               ///< the place in the list
  Does does = Does::run;         ///< this rank's part of it
  std::uint32_t port = 0;        ///< of a send or receive
  std::uint32_t progress = 0;    ///< how far the rank has come then; 0: nobody waits for it
  std::uint32_t first_wait = 0;  ///< its waits: [first_wait, first_wait of the next step)
  std::uint32_t first_use = 0;   ///< its uses, likewise

  /// Whether it is one end of a message.
  [[nodiscard]] bool moves() const noexcept { return does == Does::send || does == Does::receive; }
};

/// Before a step: the first `messages` messages of `port` must be complete, counted from the begin
/// of this step of the schedule, or of the previous one where `carried`.
struct Wait {
  std::uint32_t port = 0;      ///< number among the program's ports
  std::uint32_t messages = 0;  ///< how many of them are complete
  bool carried = false;        ///< counted in the step before
};

/// One rank's part of a Schedule. Nobody writes it by hand.
///
/// A move is posted at its place in the list and waited for as late as possible: just before the
/// first later action that conflicts with it. This cannot deadlock: take the walker that is blocked
/// at the smallest place j of the list, waiting for a move i < j. Its peer has either passed and
/// posted i, or is blocked at or before i < j, a contradiction.
struct Program {
  Schedule schedule;           ///< the whole list
  Rank rank;                   ///< whose part this is
  std::vector<Step> steps;     ///< closed by one entry that only ends the ranges of the last
  std::vector<BoundUse> uses;  ///< of all steps, one after another
  std::vector<Wait> waits;     ///< likewise
  std::vector<Port> ports;     ///< this rank's ends of channels, and the ranks that it waits for
  ProgressCounter* progress = nullptr;  ///< its own; null where nobody sees it
  std::uint32_t progress_per_step = 0;  ///< by which that grows

  /// Number of steps.
  [[nodiscard]] std::size_t size() const noexcept { return steps.size() - 1; }
  /// The memory that a step touches, as far as it lies on this rank.
  [[nodiscard]] std::span<const BoundUse> uses_of(std::size_t step) const {
    return std::span(uses).subspan(steps[step].first_use,
                                   steps[step + 1].first_use - steps[step].first_use);
  }
  /// What must be complete before a step.
  [[nodiscard]] std::span<const Wait> waits_of(std::size_t step) const {
    return std::span(waits).subspan(steps[step].first_wait,
                                    steps[step + 1].first_wait - steps[step].first_wait);
  }
};

}  // namespace heddle::inline v0
