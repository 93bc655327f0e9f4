// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RankFarmOptions: the options of a farm over ranks.

#include <cstdint>
#include <string>

#include <heddle/core/units.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0 {

class Trail;

/// The options of a farm over ranks. For the first eight see FarmOptions.
struct RankFarmOptions {
  int attempts = 1;              ///< attempts at an item before it counts as failed, at least 1
  Seconds backoff = 0.01;        ///< wait before the second attempt; each later one doubles it
  Seconds longest_backoff = 10;  ///< the longest wait before an attempt
  std::uint64_t seed = 0;        ///< seed of the jitter of these waits
  int in_flight = 0;             ///< items that are taken and not finished; 0: 4 per held item
  bool ordered = true;           ///< results arrive in the order of the items, not as they finish
  int lag = 0;                   ///< if k > 0: the source sees exactly the results up to item i - k
  Seconds lease = 0;  ///< a rank whose attempt takes so long loses its items to others; 0: never
  /// Items that a rank holds at a time, at least 1. With 2 a rank need not wait for rank 0 between
  /// items, but at the end an item may wait behind a long one.
  int prefetch = 1;
  /// If set, gets an event for each attempt, on rank 0, in its steady_seconds(). The ranks that
  /// work are the workers. All ranks set it or none.
  Trail* trail = nullptr;
  std::string journal = {};  ///< path of the journal of finished items; empty: none
  /// How far a waiting rank gives up its core. It may differ between ranks.
  Idle idle = Idle::nap;
  /// A rank that hears nothing for so long throws. It must be longer than the longest attempt, and
  /// may differ between ranks. 0: never.
  Seconds watchdog = 0;
};

}  // namespace heddle::inline v0
