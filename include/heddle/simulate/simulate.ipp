// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of simulate.hpp.

#include <utility>

#include <heddle/core/linkage.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/impl/any_costs.hpp>
#include <heddle/simulate/sending.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Timeline simulate(const Schedule& schedule, TableCosts costs, Machine machine,
                                Sending sending) {
  costs.set_machine(std::move(machine));
  return simulate<TableCosts>(schedule, costs, sending);
}

HEDDLE_INLINE Timeline simulate(const Schedule& schedule, const StageCosts& costs, Machine machine,
                                Sending sending) {
  return simulate(schedule, MachineCosts(costs, std::move(machine)), sending);
}

HEDDLE_INLINE Timeline simulate(const Schedule& schedule, const StageCosts& costs,
                                Sending sending) {
  return simulate<StageCosts>(schedule, costs, sending);
}

}  // namespace heddle::inline v0

#if !HEDDLE_HEADER_ONLY
template void heddle::impl::simulate_as(const heddle::Schedule&, const heddle::StageCosts&,
                                        heddle::Timeline&, heddle::Sending);
template void heddle::impl::simulate_as(const heddle::Schedule&, const heddle::TableCosts&,
                                        heddle::Timeline&, heddle::Sending);
template void heddle::impl::simulate_as(const heddle::Schedule&, const heddle::MachineCosts&,
                                        heddle::Timeline&, heddle::Sending);
template void heddle::impl::simulate_as(const heddle::Schedule&, const heddle::impl::AnyCosts&,
                                        heddle::Timeline&, heddle::Sending);
#endif
