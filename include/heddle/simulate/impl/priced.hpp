// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What Costs say of an action, for all that ask them. A cost that is no time is an error. Costs
/// that check themselves (CheckedCosts) are not checked again for every action.

#include <heddle/core/text.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/impl/is_time.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::impl {

/// Throws the contract_error for `value`, which `function` of some Costs returned for an action.
/// Takes it by value, so that the caller can keep it in a register.
template <class Time>
[[noreturn, gnu::noinline, gnu::cold]] void refuse_cost(Time value, const Schedule& schedule,
                                                        ActionId id, const char* function) {
  throw contract_error(no_time(text("heddle::Costs of '", schedule.name(), "'"),
                               text(function, " of ", action_text(schedule, id), " on rank ",
                                    schedule[schedule[id].queue].from),
                               value));
}

/// `value`, which `function` of C returned for an action.
/// @throws contract_error unless it is a time; names function, action, rank and value.
template <Costs C>
[[nodiscard]] typename C::Time checked_time(typename C::Time value, const Schedule& schedule,
                                            ActionId id, const char* function) {
  if constexpr (!CheckedCosts<C>)
    if (!is_time(value)) [[unlikely]]
      refuse_cost(value, schedule, id, function);
  return value;
}

/// What an action that is not a move takes.
template <Costs C>
[[nodiscard]] typename C::Time work_time(const Schedule& schedule, const C& costs, ActionId id) {
  return checked_time<C>(costs.time(schedule, id), schedule, id, "time()");
}

/// What the fused pair (id, id + 1) takes.
template <Costs C>
[[nodiscard]] typename C::Time fused_time(const Schedule& schedule, const C& costs, ActionId id) {
  if constexpr (FusedCosts<C>)
    return checked_time<C>(costs.fused(schedule, id), schedule, id, "fused()");
  else
    return work_time(schedule, costs, id) + work_time(schedule, costs, ActionId{+id + 1});
}

/// What a move takes.
template <Costs C>
[[nodiscard]] Transfer<typename C::Time> transfer_time(const Schedule& schedule, const C& costs,
                                                       ActionId id) {
  const Transfer<typename C::Time> transfer = costs.transfer(schedule, id);
  return {checked_time<C>(transfer.occupancy, schedule, id, "transfer().occupancy"),
          checked_time<C>(transfer.latency, schedule, id, "transfer().latency")};
}

/// How long a move keeps what it shares.
template <SharingCosts C>
[[nodiscard]] typename C::Time shared_time(const Schedule& schedule, const C& costs, ActionId id,
                                           const Shared& shared) {
  return checked_time<C>(costs.occupancy(schedule, id, shared), schedule, id, "occupancy()");
}

}  // namespace heddle::inline v0::impl
