// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// FarmOptions: the options of a farm, and FarmTask: an attempt at an item.

#include <cstdint>
#include <string>

#include <heddle/core/units.hpp>

namespace heddle::inline v0 {

class Trail;

/// The options of a farm.
struct FarmOptions {
  int workers = 1;               ///< number of workers, from 1 to 2^22
  int attempts = 1;              ///< attempts at an item before it counts as failed, at least 1
  Seconds backoff = 0.01;        ///< wait before the second attempt; each later one doubles it
  Seconds longest_backoff = 10;  ///< the longest wait before an attempt
  std::uint64_t seed = 0;        ///< seed of the jitter of these waits
  /// The most items that are taken from the source and not finished. 0 means 4 per worker, or 4
  /// chunks per worker if items are light.
  int in_flight = 0;
  bool ordered = true;  ///< results arrive in the order of the items, not as they finish
  /// If set to k > 0, the source sees the results of exactly the items up to i - k when it gives
  /// item i. The results are then the same for any number of workers. k = 1 is one after another.
  int lag = 0;
  Seconds lease = 0;  ///< a worker that is silent for so long loses its item to another; 0: never
  Trail* trail = nullptr;  ///< if set, gets an event for each attempt
  /// Path of the journal of finished items, or empty for none. The results must be Sendable. The
  /// journal knows a class by its name and its size, so rename a class whose members change.
  std::string journal = {};
};

/// An attempt at an item.
struct FarmTask {
  std::int64_t item = 0;  ///< the number of the item, in the order of the source
  int attempt = 1;        ///< from 1
  friend constexpr bool operator==(const FarmTask&, const FarmTask&) = default;
};

}  // namespace heddle::inline v0
