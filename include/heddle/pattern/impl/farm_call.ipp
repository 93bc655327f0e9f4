// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of farm_call.hpp.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/pattern/impl/farm_call.hpp>

namespace heddle::inline v0::impl {

// The shortest text that gives the number again.
inline std::string exact_text(double number) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return std::string(digits.data(), end);
}

// The transports of the farms that this thread is in.
inline std::vector<const void*>& farm_transports() {
  thread_local std::vector<const void*> transports;
  return transports;
}

HEDDLE_INLINE FarmCall::FarmCall(const void* transport) {
  std::vector<const void*>& open = farm_transports();
  expects(std::find(open.begin(), open.end(), transport) == open.end(), [] {
    return ErrorInfo{"heddle::farm", "a farm is called inside a farm on the same ranks",
                     "the other ranks do not call it",
                     "call the farm of threads inside, or farm over other ranks"};
  });
  open.push_back(transport);
}

HEDDLE_INLINE FarmCall::~FarmCall() { farm_transports().pop_back(); }

HEDDLE_INLINE std::string farm_terms(const RankFarmOptions& options) {
  return text("attempts = ", options.attempts, "\nbackoff = ", exact_text(options.backoff),
              "\nlongest_backoff = ", exact_text(options.longest_backoff),
              "\nseed = ", options.seed, "\nin_flight = ", options.in_flight,
              "\nordered = ", options.ordered, "\nlag = ", options.lag,
              "\nlease = ", exact_text(options.lease), "\nprefetch = ", options.prefetch,
              "\njournal = ", options.journal, "\n");
}

HEDDLE_INLINE void check_farm_terms(const std::vector<std::vector<std::byte>>& terms) {
  const auto text_of = [&](std::size_t rank) {
    return std::string_view(reinterpret_cast<const char*>(terms[rank].data()), terms[rank].size());
  };
  for (std::size_t rank = 1; rank < terms.size(); ++rank) {
    std::string_view first = text_of(0);
    std::string_view other = text_of(rank);
    if (first == other) continue;
    const auto line = [](std::string_view& lines) {
      const std::size_t end = std::min(lines.find('\n'), lines.size());
      const std::string_view taken = lines.substr(0, end);
      lines.remove_prefix(std::min(end + 1, lines.size()));
      return taken;
    };
    std::string_view a;
    std::string_view b;
    while (a == b) {
      a = line(first);
      b = line(other);
    }
    throw contract_error({"heddle::farm", "the options differ between the ranks",
                          text("rank 0 has ", a, ", rank ", rank, " has ", b),
                          "give every rank the same options"});
  }
}

HEDDLE_INLINE FarmOptions decider_options(const RankFarmOptions& options, int workers) {
  expects(options.prefetch >= 1, [&] {
    return ErrorInfo{"heddle::farm", "prefetch must be at least 1",
                     text("prefetch = ", options.prefetch)};
  });
  FarmOptions made;
  made.workers = workers * options.prefetch;
  made.attempts = options.attempts;
  made.backoff = options.backoff;
  made.longest_backoff = options.longest_backoff;
  made.seed = options.seed;
  made.in_flight = options.in_flight;
  made.ordered = options.ordered;
  made.lag = options.lag;
  made.lease = options.lease;
  return made;
}

}  // namespace heddle::inline v0::impl
