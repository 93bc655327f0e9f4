// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// simulate(): predicts the Timeline of a Schedule from Costs. It sweeps once over the list of
/// actions and needs neither a heap nor a graph, because every dependency points backwards. If
/// queues share resources of a Machine, it handles events in the order of time instead.

#include <type_traits>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/impl/any_costs.hpp>
#include <heddle/simulate/sending.hpp>

namespace heddle::inline v0 {

namespace impl {

/// simulate(), which is compiled for AnyCosts and for the costs that compiled_apart names. For
/// those with another type of time it is in any_time.hpp.
template <Costs C>
void simulate_as(const Schedule& schedule, const C& costs,
                 BasicTimeline<typename C::Time>& timeline, Sending sending);

/// True for the usual costs, which the simulator reads without a virtual call an action, and for
/// those with another type of time than Seconds.
template <Costs C>
inline constexpr bool compiled_apart =
    !std::is_same_v<typename C::Time, Seconds> || std::is_same_v<C, StageCosts> ||
    std::is_same_v<C, TableCosts> || std::is_same_v<C, MachineCosts>;

}  // namespace impl

/// Fills `timeline` with the times of `schedule`. An action starts when its queue is free and all
/// actions that it waits for have ended; this is the longest path through the list.
///
/// A move occupies its channel for transfer().occupancy and arrives transfer().latency later. It
/// ends at the destination when it has arrived, its storage there is free and the message before it
/// is delivered. With Sending::rendezvous it also starts only when that storage is free. The
/// moves of a queue that has moves between tiers always do, because nothing buffers their data.
///
/// If the costs have a Machine on which queues share ports, lines or units, each of these serves
/// one message after another, in the order in which they come; at equal times the order of the list
/// decides. A message passes them in the order of Machine::route and keeps each for its own
/// occupancy. It enters the next as soon as the one before serves it, because its bytes follow each
/// other. The latency lies between the ways out and the ways in. The channel of the message is free
/// when the last way out has served it. Bandwidth is never divided between messages.
///
/// A fused pair starts when both of its actions could start. Others see the results of both when
/// both are done. The span of the first action ends after its own cost, within the span of the
/// pair.
///
/// If the costs' type of time is not Seconds, heddle/simulate/any_time.hpp must be included.
///
/// @throws contract_error if a cost is negative, infinite or not a number. The error names the cost
///         if the costs can check themselves (see CheckedCosts), else the first such action. Also
///         if costs add up to infinity.
/// @throws contract_error if the machine has fewer ranks than the schedule, or if an action needs
///         more units than its device has.
template <Costs C>
void simulate(const Schedule& schedule, const C& costs, BasicTimeline<typename C::Time>& timeline,
              Sending sending = Sending::eager) {
  if constexpr (impl::compiled_apart<C>)
    impl::simulate_as(schedule, costs, timeline, sending);
  else
    impl::simulate_as<impl::AnyCosts>(schedule, impl::CostsOf<C>(costs), timeline, sending);
}

/// Returns the predicted Timeline of `schedule`.
template <Costs C>
[[nodiscard]] BasicTimeline<typename C::Time> simulate(const Schedule& schedule, const C& costs,
                                                       Sending sending = Sending::eager) {
  BasicTimeline<typename C::Time> timeline;
  simulate(schedule, costs, timeline, sending);
  return timeline;
}

/// Returns the predicted Timeline if `machine` prices the transfers. Its queues may share
/// resources.
/// @throws contract_error if the machine has fewer ranks than the schedule.
[[nodiscard]] Timeline simulate(const Schedule& schedule, TableCosts costs, Machine machine,
                                Sending sending = Sending::eager);
/// Returns the predicted Timeline under MachineCosts(costs, machine): `simulate(ring, {},
/// machine)`.
[[nodiscard]] Timeline simulate(const Schedule& schedule, const StageCosts& costs, Machine machine,
                                Sending sending = Sending::eager);

/// Returns the predicted Timeline under costs that are written as a braced list:
/// `simulate(schedule, {.forward = 1, .backward = 2})`.
[[nodiscard]] Timeline simulate(const Schedule& schedule, const StageCosts& costs,
                                Sending sending = Sending::eager);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SIMULATE
#include <heddle/simulate/simulate.ipp>
#endif
