// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// DispatchCosts: the times of the actions of systems::gang_dispatch().

#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/systems/pathways/gang_dispatch.hpp>

namespace heddle::inline v0::systems {

/// The costs of a chain of functions on any time type: `{.prepare = 1, .enqueue = 0.2, .compute =
/// 10}`. Moves are free, because the time of an enqueue contains them.
template <class T>
struct BasicDispatchCosts {
  using Time = T;  ///< the type of costs

  T prepare = {};  ///< the host's time for a function
  T enqueue = {};  ///< the time to hand a function to its device
  T compute = {};  ///< the device's time for a function

  /// Checks all costs. @throws contract_error if one is negative, infinite or not a number.
  void check() const {
    heddle::impl::expect_time("heddle::systems::DispatchCosts", "prepare", prepare);
    heddle::impl::expect_time("heddle::systems::DispatchCosts", "enqueue", enqueue);
    heddle::impl::expect_time("heddle::systems::DispatchCosts", "compute", compute);
  }
  /// Returns the cost of an action that is not a move.
  [[nodiscard]] T time(const Schedule& schedule, ActionId id) const {
    const Stage stage = schedule[id].stage;
    return stage == gang::prepare ? prepare : stage == gang::enqueue ? enqueue : compute;
  }
  /// Returns the cost of a move.
  [[nodiscard]] Transfer<T> transfer(const Schedule&, ActionId) const { return {}; }
};

using DispatchCosts = BasicDispatchCosts<Seconds>;  ///< in seconds

}  // namespace heddle::inline v0::systems
