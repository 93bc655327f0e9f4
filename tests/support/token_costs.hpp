// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TokenCosts: the costs of systems::fork_join() if every token takes as long.

#include <cstdint>

#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/systems/multiverse/fork_join.hpp>
#include <heddle/systems/multiverse/forked_text.hpp>

#include "rational.hpp"

namespace heddle::test {

/// Costs of a run of tokens. Nothing moves.
struct TokenCosts {
  using Time = Rational;
  const systems::ForkedText& text;
  Rational per_token;

  [[nodiscard]] Rational time(const Schedule& schedule, ActionId id) const {
    Rational time = 0;
    for (std::int64_t t = 0; t < text.segments()[+schedule[id].item].tokens; ++t)
      time = time + per_token;
    return time;
  }
  [[nodiscard]] Transfer<Rational> transfer(const Schedule&, ActionId) const { return {}; }
};

}  // namespace heddle::test
