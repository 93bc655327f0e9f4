// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The options that the ranks of a farm compare before it begins, and the form of an outcome in
/// messages.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/execute/sendable.hpp>
#include <heddle/pattern/farm_decider.hpp>
#include <heddle/pattern/farm_outcome.hpp>
#include <heddle/pattern/impl/equal_terms.hpp>
#include <heddle/pattern/rank_farm_options.hpp>

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
[[nodiscard]] std::string farm_terms(const RankFarmOptions& options);

/// Returns the options of the decider of a farm with so many worker ranks.
/// @throws contract_error if `prefetch` is below 1.
[[nodiscard]] FarmOptions decider_options(const RankFarmOptions& options, int workers);

/// Returns what the outcomes of a farm depend on, for its journal. The last two are the
/// type_words() of items and results.
[[nodiscard]] std::string farm_identity(int attempts, std::uint64_t seed, int lag,
                                        const std::string& items, const std::string& results);

/// Appends an outcome to a message: whether there is a result, the attempts, and the result or the
/// error.
template <Sendable Result>
void put_outcome(MessageBytes& message, const FarmOutcome<Result>& outcome) {
  pack(message, outcome.value.has_value());
  pack(message, outcome.attempts);
  if (outcome.value)
    pack(message, *outcome.value);
  else
    pack(message, outcome.error);
}

/// Returns true if the outcome at the front of a message has a result.
[[nodiscard]] inline bool has_value(std::span<const std::byte> message) {
  return unpack<bool>(message);
}

/// Takes an outcome from a message.
template <Sendable Result>
[[nodiscard]] FarmOutcome<Result> take_outcome(std::span<const std::byte>& message) {
  FarmOutcome<Result> outcome;
  const bool succeeded = has_value(message);
  message = message.subspan(sizeof(bool));
  outcome.attempts = unpack<int>(message);
  if (succeeded)
    outcome.value = unpack<Result>(message);
  else
    outcome.error = unpack<std::string>(message);
  return outcome;
}

}  // namespace heddle::inline v0::impl

#if HEDDLE_HEADER_ONLY
#include <heddle/pattern/impl/farm_call.ipp>
#endif
