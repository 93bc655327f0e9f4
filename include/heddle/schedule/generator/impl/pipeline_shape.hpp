// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Checks of the numbers of ranks, stages and microbatches, for the definitions of the generators.

#include <algorithm>
#include <cstdint>
#include <limits>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0::schedule::impl {

/// Throws contract_error if a pipeline or a step of these numbers is empty.
inline void check(const char* where, int ranks, int stages_per_rank, int microbatches) {
  expects(ranks >= 1 && stages_per_rank >= 1, [&] {
    return ErrorInfo{where, "a pipeline needs at least one stage",
                     text("ranks = ", ranks, ", stages per rank = ", stages_per_rank)};
  });
  expects(microbatches >= 1, [&] {
    return ErrorInfo{where, "a step needs at least one microbatch",
                     text("microbatches = ", microbatches)};
  });
  constexpr std::int64_t most = std::numeric_limits<int>::max() / 4;
  expects(std::int64_t{ranks} * stages_per_rank <= most &&
              std::int64_t{microbatches} * stages_per_rank <= most,
          [&] {
            return ErrorInfo{where, "the stages or the entries of a rank are too many",
                             text("ranks = ", ranks, ", stages per rank = ", stages_per_rank,
                                  ", microbatches = ", microbatches, "; at most ", most)};
          });
}

/// Throws contract_error if `group`, which users know as `name`, is below 1. Throws infeasible if
/// the microbatches do not divide into equal groups.
inline void check_groups(const char* where, int microbatches, int group, const char* name) {
  expects(group >= 1, [&] {
    return ErrorInfo{where, "a group needs at least one microbatch", text(name, " = ", group)};
  });
  if (const int rest = microbatches % group; rest != 0) {
    const int below = microbatches - rest;
    throw infeasible({where, "the microbatches cannot be divided into equal groups",
                      text("microbatches = ", microbatches, ", ", name, " = ", group),
                      text("the nearest valid number is ",
                           below > 0 && 2 * rest <= group ? below : below + group)});
  }
}

/// Returns the number of microbatches in each round of interleaved().
/// @throws infeasible if the microbatches do not divide into equal rounds.
inline int round_of(const char* where, int ranks, int stages_per_rank, int microbatches) {
  check(where, ranks, stages_per_rank, microbatches);
  const auto rounds_of = [ranks](int m) { return std::max(1, m / ranks); };
  const auto valid = [&](int m) { return m >= 1 && m % rounds_of(m) == 0; };
  if (!valid(microbatches)) {
    int step = 1;
    while (!valid(microbatches - step) && !valid(microbatches + step)) ++step;
    const int nearest = valid(microbatches - step) ? microbatches - step : microbatches + step;
    throw infeasible({where, "the microbatches cannot be divided into equal rounds",
                      text("microbatches = ", microbatches, ", ranks = ", ranks,
                           ", rounds = ", rounds_of(microbatches)),
                      text("the nearest valid number is ", nearest,
                           "; grouped_interleaved() takes any number, in groups")});
  }
  return microbatches / rounds_of(microbatches);
}

}  // namespace heddle::inline v0::schedule::impl
