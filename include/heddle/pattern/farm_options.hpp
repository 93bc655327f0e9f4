// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FarmOptions: the options of a farm, and FarmTask: an attempt at an item.

#include <cstdint>
#include <string>

#include <heddle/core/units.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/idle.hpp>

namespace heddle::inline v0 {

class Trail;

namespace pattern {

/// The options of a farm, on threads and over ranks, of which each (but rank 0) is one worker.
struct FarmOptions {
  int workers = 1;               ///< number of threads, from 1 to 2^22; 1 over ranks
  int attempts = 1;              ///< attempts at an item before it counts as failed, at least 1
  Seconds backoff = 0.01;        ///< wait before the second attempt; each later one doubles it
  Seconds longest_backoff = 10;  ///< the longest wait before an attempt
  std::uint64_t seed = 0;        ///< seed of the jitter of these waits
  /// The most items that are taken from the source and not finished. 0 means 4 per worker, or 4
  /// chunks per worker if items are light, and over ranks 4 per held item.
  int in_flight = 0;
  bool ordered = true;  ///< results arrive in the order of the items, not as they finish
  /// If set to k > 0, the source sees the results of exactly the items up to i - k when it gives
  /// item i. The results are then the same for any number of workers. k = 1 is one after another.
  int lag = 0;
  /// A worker that is silent for so long loses its items to others; 0: never.
  Seconds lease = 0;
  /// Over ranks: the items that a rank holds at a time, at least 1. With 2 a rank need not wait for
  /// rank 0 between items, but at the end an item may wait behind a long one. 1 on threads.
  int prefetch = 1;
  /// If set, gets an event for each attempt. Over ranks, rank 0 gets them, in its
  /// steady_seconds(), the ranks that work are the workers, and all ranks set it or none.
  Trail* trail = nullptr;
  /// Path of the journal of finished items, or empty for none. The results must be Sendable. The
  /// journal knows a class by its name and its size, so rename a class whose members change.
  std::string journal = {};
  /// Over ranks: how a rank waits for rank 0. It may differ between ranks. A watchdog must be
  /// longer than the longest attempt; there is none by default, because an item may take hours.
  ExecuteOptions wait = {.idle = Idle::nap, .watchdog = 0};
};

/// An attempt at an item.
struct FarmTask {
  std::int64_t item = 0;  ///< the number of the item, in the order of the source
  int attempt = 1;        ///< from 1
  friend constexpr bool operator==(const FarmTask&, const FarmTask&) = default;
};

}  // namespace pattern

}  // namespace heddle::inline v0
