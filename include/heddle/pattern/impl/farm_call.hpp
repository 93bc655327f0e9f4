// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The options that the ranks of a farm compare before it begins, an attempt at an item, and the
/// form of an outcome in messages.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/sendable.hpp>
#include <heddle/pattern/farm_options.hpp>
#include <heddle/pattern/impl/farm_part.hpp>

namespace heddle::inline v0::impl {

/// Marks a transport as used by a farm of this thread while it lives.
class FarmCall {
 public:
  /// @throws contract_error if this thread is in a farm on the transport already.
  explicit FarmCall(const void* transport);
  FarmCall(const FarmCall&) = delete;
  FarmCall& operator=(const FarmCall&) = delete;
  ~FarmCall();
};

/// Returns the options that all ranks must give alike, one a line.
[[nodiscard]] std::string farm_terms(const pattern::FarmOptions& options);

/// Returns the options of the decider of a farm with so many worker ranks.
/// @throws contract_error if `prefetch` is below 1 or too large, or if `workers` is not 1.
[[nodiscard]] pattern::FarmOptions decider_options(const pattern::FarmOptions& options,
                                                   int workers);

/// Returns what the outcomes of a farm depend on, for its journal. The last two are the
/// type_words() of items and results.
[[nodiscard]] std::string farm_identity(int attempts, std::uint64_t seed, int lag,
                                        const std::string& items, const std::string& results);

/// Makes an attempt at an item. If the work throws, the outcome has the text of its error.
void farm_attempt(FarmPart& part, const AnyFarmItem& item, const pattern::FarmTask& task,
                  AnyFarmOutcome& outcome);

/// Returns how long to wait for a time in steady_seconds(): at most an hour, because waits of more
/// than 300 years are too long for the clocks of std::chrono.
[[nodiscard]] Seconds time_left(Seconds time);

/// Sleeps until a time in steady_seconds(), but at most an hour.
void sleep_until(Seconds time);

/// Appends an outcome to a message: whether there is a result, the attempts, and the result or the
/// error.
void put_outcome(const FarmPart& part, MessageBytes& message, const AnyFarmOutcome& outcome);
/// Returns true if the outcome at the front of a message has a result.
[[nodiscard]] bool has_value(std::span<const std::byte> message);
/// Takes an outcome from a message.
void take_outcome(const FarmPart& part, std::span<const std::byte> message,
                  AnyFarmOutcome& outcome);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PATTERN
#include <heddle/pattern/impl/farm_call.ipp>
#endif
