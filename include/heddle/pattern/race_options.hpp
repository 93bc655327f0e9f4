// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RaceOptions and RaceResult: the options and the result of a race.

#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/execute/execute_options.hpp>

namespace heddle::inline v0 {

class Trail;

namespace pattern {

/// The options of a race, on threads and over ranks, of which each runs one walker.
struct RaceOptions {
  /// Decides who wins a race.
  enum class Order : std::uint8_t {
    by_time,  ///< the walker that finds a result first by the clock
    by_work,  ///< the walker that finds a result with the least work, the same one on each machine
  };

  int walkers = 1;               ///< number of searches, at least 1; 1 over ranks
  int threads = 0;               ///< threads that run them, or 0 for one per walker; 0 over ranks
  Order order = Order::by_time;  ///< who wins
  /// If set, gets an event for each walker that began. Over ranks, the times are in rank 0's
  /// steady_seconds(), each rank is a worker, and all ranks set it or none.
  Trail* trail = nullptr;
  ExecuteOptions wait = {};  ///< over ranks: how a rank waits for the others at the end
};

/// The result of a race. Over ranks, the winner and the work are the same on every rank.
template <class T>
struct RaceResult {
  /// The result of the winner, or nothing if all walkers gave up. Over ranks, only the winner's
  /// rank has it.
  std::optional<T> value = {};
  int winner = -1;  ///< the number of the winner, or -1 if no walker found a result
  std::vector<std::uint64_t> work = {};  ///< by walker, as counted by Walker::work()
};

}  // namespace pattern

}  // namespace heddle::inline v0
