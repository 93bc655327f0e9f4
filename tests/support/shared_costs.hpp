// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SharedCosts: costs in any unit of time on a Machine that says what is shared, so that closed
/// forms hold exactly on a rational.

#include <cstdint>
#include <utility>

#include <heddle/machine.hpp>
#include <heddle/simulate.hpp>

namespace heddle::test {

/// The costs of BasicStageCosts. Whatever is shared takes 1 / bandwidth per byte, a bandwidth being
/// a whole number of bytes in the unit of time.
template <class T>
struct SharedCosts {
  using Time = T;
  BasicStageCosts<T> stage;
  Machine on;

  [[nodiscard]] T time(const Schedule& schedule, ActionId id) const {
    return stage.time(schedule, id);
  }
  [[nodiscard]] T fused(const Schedule& schedule, ActionId id) const {
    return stage.fused(schedule, id);
  }
  [[nodiscard]] Transfer<T> transfer(const Schedule& schedule, ActionId id) const {
    return stage.transfer(schedule, id);
  }
  [[nodiscard]] const Machine& machine() const noexcept { return on; }
  [[nodiscard]] T occupancy(const Schedule& schedule, ActionId id, const Shared& shared) const {
    return T(static_cast<std::int64_t>(schedule.bytes(schedule.uses(id)[0]))) /
           T(static_cast<std::int64_t>(shared.bandwidth));
  }
};
static_assert(SharingCosts<SharedCosts<double>> && FusedCosts<SharedCosts<double>>);

}  // namespace heddle::test
