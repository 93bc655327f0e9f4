// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The items that a thread of a farm takes at a time.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/pattern/farm_decider.hpp>
#include <heddle/pattern/farm_outcome.hpp>

namespace heddle::inline v0::impl {

/// The time that a chunk should take: many times that of the lock, and short for a person.
inline constexpr Seconds chunk_time = 50e-6;

/// An attempt at an item.
template <class Slot, class Result>
struct FarmAttempt {
  FarmTask task;
  Worker holder;  ///< the worker of the decider
  Slot* slot = nullptr;
  FarmOutcome<Result> outcome = {};
  Seconds start = 0;   ///< if a trail is wanted
  Seconds end = 0;     ///< if a trail is wanted
  bool taken = false;  ///< by the thread of the chunk
};

/// The attempts of a thread. Other threads may take some of them.
template <class Attempt>
struct FarmChunk {
  std::vector<Attempt> tasks;
  std::uint32_t count = 0;
  std::atomic<std::uint32_t> next{0};  ///< the next one that nobody has taken
  bool waited = false;                 ///< the thread had nothing to do before
};

/// Returns the most items of a chunk. A lease begins when an item is taken, and a source that sees
/// outcomes needs each as soon as it is there.
[[nodiscard]] inline int most_of_chunk(const FarmOptions& options) {
  constexpr int most = 64;
  if (options.lease > 0 || options.lag > 0 || options.workers < 1) return 1;
  if (options.in_flight == 0) return most;
  return std::clamp(options.in_flight / options.workers / 2, 1, most);
}

/// Returns the options of a decider whose workers are the items of the chunks.
[[nodiscard]] inline FarmOptions in_chunks(FarmOptions options, int most) {
  if (options.in_flight == 0) options.in_flight = 4 * std::max(options.workers, 0);
  options.workers *= most;
  return options;
}

/// Returns how many items take chunk_time, if `count` took `time`: at most twice as many as `now`.
[[nodiscard]] inline std::int64_t chunk_size(std::int64_t now, std::int64_t count, Seconds time,
                                             std::int64_t most) {
  const double fit = time > 0 ? chunk_time * static_cast<double>(count) / time : 1e9;
  return std::max<std::int64_t>(
      1, std::min({2 * now, most, static_cast<std::int64_t>(std::min(fit, 1e9))}));
}

}  // namespace heddle::inline v0::impl
