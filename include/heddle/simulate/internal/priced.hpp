// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Asks Costs for the time of an action and checks it. A negative, infinite or undefined cost is an
/// error. Costs that check themselves (CheckedCosts) are not checked again for every action.

#include <string>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::impl {

/// The place and the name of a cost, as no_time() needs them.
struct CostPlace {
  std::string where;
  std::string name;
};
/// Returns the place and the name of what `function` of some Costs returned for an action.
[[nodiscard]] CostPlace cost_place(const Schedule& schedule, ActionId id, const char* function);

/// Throws the contract_error for `value`, which `function` of some Costs returned for an action.
/// `value` is passed by value, so that the caller can keep it in a register.
template <class Time>
[[noreturn, gnu::noinline, gnu::cold]] void refuse_cost(Time value, const Schedule& schedule,
                                                        ActionId id, const char* function) {
  CostPlace place = cost_place(schedule, id, function);
  throw contract_error(no_time(std::move(place.where), place.name, value));
}

/// Returns `value`, which `function` of C returned for an action.
/// @throws contract_error if it is not a time. The error names function, action, rank and value.
template <Costs C>
[[nodiscard]] typename C::Time checked_time(typename C::Time value, const Schedule& schedule,
                                            ActionId id, const char* function) {
  if constexpr (!CheckedCosts<C>)
    if (!is_time(value)) [[unlikely]]
      refuse_cost(value, schedule, id, function);
  return value;
}

/// Returns the time of an action that is not a move.
template <Costs C>
[[nodiscard]] typename C::Time work_time(const Schedule& schedule, const C& costs, ActionId id) {
  return checked_time<C>(costs.time(schedule, id), schedule, id, "time()");
}

/// Returns the time of the fused pair (id, id + 1).
template <Costs C>
[[nodiscard]] typename C::Time fused_time(const Schedule& schedule, const C& costs, ActionId id) {
  if constexpr (FusedCosts<C>)
    return checked_time<C>(costs.fused(schedule, id), schedule, id, "fused()");
  else
    return work_time(schedule, costs, id) + work_time(schedule, costs, ActionId{+id + 1});
}

/// Returns the times of a move.
template <Costs C>
[[nodiscard]] Transfer<typename C::Time> transfer_time(const Schedule& schedule, const C& costs,
                                                       ActionId id) {
  const Transfer<typename C::Time> transfer = costs.transfer(schedule, id);
  return {checked_time<C>(transfer.occupancy, schedule, id, "transfer().occupancy"),
          checked_time<C>(transfer.latency, schedule, id, "transfer().latency")};
}

/// Returns the time for which a move keeps a shared resource.
template <Costs C>
[[nodiscard]] typename C::Time shared_time(const Schedule& schedule, const C& costs, ActionId id,
                                           const Shared& shared) {
  return checked_time<C>(costs.occupancy(schedule, id, shared), schedule, id, "occupancy()");
}

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_SIMULATE
#include <heddle/simulate/internal/priced.ipp>
#endif
