// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of farm_call.hpp.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/pattern/impl/equal_terms.hpp>
#include <heddle/pattern/impl/farm_call.hpp>

namespace heddle::inline v0::impl {

// The transports of the farms that this thread is in.
inline std::vector<const void*>& farm_transports() {
  thread_local std::vector<const void*> transports;
  return transports;
}

HEDDLE_INLINE FarmCall::FarmCall(const void* transport) {
  std::vector<const void*>& open = farm_transports();
  expects(std::find(open.begin(), open.end(), transport) == open.end(), [] {
    return ErrorInfo{"heddle::pattern::farm", "a farm is called inside a farm on the same ranks",
                     "the other ranks do not call it",
                     "call the farm of threads inside, or farm over other ranks"};
  });
  open.push_back(transport);
}

HEDDLE_INLINE FarmCall::~FarmCall() { farm_transports().pop_back(); }

HEDDLE_INLINE std::string farm_terms(const pattern::FarmOptions& options) {
  return text("attempts = ", options.attempts, "\nbackoff = ", exact_text(options.backoff),
              "\nlongest_backoff = ", exact_text(options.longest_backoff),
              "\nseed = ", options.seed, "\nin_flight = ", options.in_flight,
              "\nordered = ", options.ordered, "\nlag = ", options.lag,
              "\nlease = ", exact_text(options.lease), "\nprefetch = ", options.prefetch,
              "\ntrail = ", options.trail != nullptr, "\njournal = ", options.journal, "\n");
}

HEDDLE_INLINE std::string farm_identity(int attempts, std::uint64_t seed, int lag,
                                        const std::string& items, const std::string& results) {
  return text("attempts = ", attempts, ", seed = ", seed, ", lag = ", lag, ", items = ", items,
              ", results = ", results);
}

HEDDLE_INLINE pattern::FarmOptions decider_options(const pattern::FarmOptions& options,
                                                   int workers) {
  expects(options.workers == 1, [&] {
    return ErrorInfo{"heddle::pattern::farm", "each rank but rank 0 is one worker",
                     text("workers = ", options.workers), "leave workers at 1"};
  });
  expects(options.prefetch >= 1 && options.prefetch <= most_workers / workers, [&] {
    return ErrorInfo{"heddle::pattern::farm",
                     options.prefetch < 1 ? "prefetch must be at least 1" : "prefetch is too large",
                     text("prefetch = ", options.prefetch, " for ", workers, " working ranks"),
                     text("use 1 to ", most_workers / workers)};
  });
  pattern::FarmOptions made = options;
  made.workers = workers * options.prefetch;
  return made;
}

HEDDLE_INLINE void farm_attempt(FarmPart& part, const AnyFarmItem& item,
                                const pattern::FarmTask& task, AnyFarmOutcome& outcome) {
  outcome.clear();
  outcome.attempts = task.attempt;
  try {
    part.work(item, task, outcome);
    outcome.succeeded = true;
  } catch (const std::exception& error) {
    outcome.error = error.what();
  } catch (...) {
    outcome.error = "an exception that is no std::exception";
  }
}

HEDDLE_INLINE Seconds time_left(Seconds time) { return std::min(time - steady_seconds(), 3600.0); }

HEDDLE_INLINE void sleep_until(Seconds time) {
  std::this_thread::sleep_for(std::chrono::duration<double>(time_left(time)));
}

HEDDLE_INLINE void put_outcome(const FarmPart& part, MessageBytes& message,
                               const AnyFarmOutcome& outcome) {
  pack(message, outcome.succeeded);
  pack(message, outcome.attempts);
  if (outcome.succeeded)
    part.put_result(message, outcome);
  else
    pack(message, outcome.error);
}

HEDDLE_INLINE bool has_value(std::span<const std::byte> message) { return unpack<bool>(message); }

HEDDLE_INLINE void take_outcome(const FarmPart& part, std::span<const std::byte> message,
                                AnyFarmOutcome& outcome) {
  outcome.clear();
  outcome.succeeded = unpack<bool>(message);
  outcome.attempts = unpack<int>(message);
  if (outcome.succeeded)
    part.take_result(message, outcome);
  else
    outcome.error = unpack<std::string>(message);
}

}  // namespace heddle::inline v0::impl
