// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StepCosts: an action takes a time, and more for every byte that it writes.

#include <cstdint>

#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::test {

/// Costs of a decoder of one byte a token.
template <class T>
struct StepCosts {
  using Time = T;

  T step;   ///< of an action, such as the reading of the model's weights
  T token;  ///< of each byte that it writes

  [[nodiscard]] T time(const Schedule& schedule, ActionId id) const {
    T sum = step;
    for (const Use& use : schedule.uses(id))
      if (use.access() == Access::write)
        sum = sum + token * T(static_cast<std::int64_t>(schedule[use.buffer].bytes));
    return sum;
  }
  [[nodiscard]] Transfer<T> transfer(const Schedule&, ActionId) const { return {}; }
};

}  // namespace heddle::test
