// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// simulate(): a Schedule and its Costs to the Timeline it would have. One sweep of the list, no
/// heap and no graph: every dependency points backwards. On a Machine whose queues share something,
/// events in the order of time.

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/impl/event_engine.hpp>
#include <heddle/simulate/impl/priced.hpp>
#include <heddle/simulate/sending.hpp>

namespace heddle::inline v0 {

/// Fills `timeline` with the times of `schedule`: every action starts when its queue is free and
/// everything it waits for has ended, which is the longest path through the list.
///
/// A move occupies its channel for transfer().occupancy, arrives latency later, and ends at the
/// destination when it has arrived, its storage there is free and the message before it is
/// delivered. With Sending::rendezvous it also starts only when that storage is free.
///
/// Where the costs have a Machine that says that queues share ports, lines or units, these serve
/// one message after another, first come, first served in time; at equal times the first in the
/// list comes first. A message passes them in the order of Machine::route and keeps each for its
/// own occupancy; it enters the next as soon as it is served by the one before (its bytes follow),
/// and the latency lies between the ways out and the ways in. Its channel is free when the last way
/// out is done with it; what waits at a way in is under way. Nothing is shared fluidly.
///
/// A fused pair starts when both of its actions could, and what either made is seen when both are
/// done; the span of the first ends where its own cost does, within that of the pair.
///
/// @throws contract_error for a cost that is negative, infinite or not a number. It names the cost
///         if the costs can check themselves (see CheckedCosts), else the first such action. Also
///         for costs that add up to infinity.
/// @throws contract_error for a machine with fewer ranks than the schedule, or an action that needs
///         more units than its device has.
template <Costs C>
void simulate(const Schedule& schedule, const C& costs, BasicTimeline<typename C::Time>& timeline,
              Sending sending = Sending::eager) {
  using Time = typename C::Time;
  if constexpr (CheckedCosts<C>) costs.check();
  timeline.reset(schedule);
  if constexpr (SharingCosts<C>) {
    expects(schedule.ranks() <= costs.machine().ranks(), [&] {
      return Complaint{"heddle::simulate", "the machine has too few ranks",
                       text("'", schedule.name(), "' has ", schedule.ranks(),
                            " ranks, the machine ", costs.machine().ranks())};
    });
    if (costs.machine().shares())
      return impl::EventEngine<C>(schedule, costs, timeline, sending).run();
  }
  BasicSpan<Time>* const spans = timeline.spans().data();
  struct QueueState {
    Time free = {};       ///< at the source, or of local work
    Time delivered = {};  ///< at the destination
  };
  std::vector<QueueState> queues(schedule.queues().size());
  const Action* const actions = schedule.actions().data();
  const std::uint32_t* const after_begin = schedule.after_begin().data();
  const After* const all_after = schedule.all_after().data();
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    QueueState& queue = queues[+actions[i].queue];
    Time ready[2] = {queue.free, queue.delivered};  // at the source, at the destination
    Time storage = queue.free;                      // when that of the destination is free
    for (std::uint32_t a = after_begin[i]; a != after_begin[i + 1]; ++a) {
      const After after = all_after[a];
      const auto& on = spans[after.action];
      const Time end = after.end ? on.arrival : on.end;
      ready[after.mine] = std::max(ready[after.mine], end);
      if (after.mine) storage = std::max(storage, end);
    }
    auto& span = spans[i];
    span.start = ready[0];
    if (actions[i].kind == Kind::move) {
      const Transfer<Time> transfer = impl::transfer_time(schedule, costs, ActionId{i});
      // Waits for the storage, but not for the previous delivery: latencies overlap.
      if (sending == Sending::rendezvous) span.start = std::max(span.start, storage);
      span.end = span.start + transfer.occupancy;
      span.arrival = std::max(Time(span.end + transfer.latency), ready[1]);
      queue = {span.end, span.arrival};
    } else if (actions[i].flags & flag::with_next) {
      for (std::uint32_t a = after_begin[i + 1]; a != after_begin[i + 2]; ++a) {
        const auto& on = spans[all_after[a].action];
        span.start = std::max(span.start, all_after[a].end ? on.arrival : on.end);
      }
      const Time both = impl::fused_time(schedule, costs, ActionId{i});
      auto& partner = spans[++i];
      span.end = partner.start =
          span.start + std::min(impl::work_time(schedule, costs, ActionId{i - 1}), both);
      span.arrival = partner.end = partner.arrival = span.start + both;
      queue.free = span.arrival;
    } else {
      span.end = span.arrival = span.start + impl::work_time(schedule, costs, ActionId{i});
      queue.free = span.end;
    }
  }
  for (const QueueState& queue : queues)
    expects(impl::is_time(queue.free) && impl::is_time(queue.delivered), [&] {
      return Complaint{"heddle::simulate", "the costs add up to more than their type can hold",
                       text("'", schedule.name(), "'"), "choose a greater unit of time"};
    });
}

/// The Timeline that `schedule` would have.
template <Costs C>
[[nodiscard]] BasicTimeline<typename C::Time> simulate(const Schedule& schedule, const C& costs,
                                                       Sending sending = Sending::eager) {
  BasicTimeline<typename C::Time> timeline;
  simulate(schedule, costs, timeline, sending);
  return timeline;
}

/// The same with the transfers priced by `machine`, which may also say what they share.
/// @throws contract_error for a machine with fewer ranks than the schedule.
[[nodiscard]] inline Timeline simulate(const Schedule& schedule, TableCosts costs, Machine machine,
                                       Sending sending = Sending::eager) {
  costs.set_machine(std::move(machine));
  return simulate<TableCosts>(schedule, costs, sending);
}
/// The same with local work at `costs` over the speed of its device: `simulate(ring, {}, machine)`.
[[nodiscard]] inline Timeline simulate(const Schedule& schedule, const StageCosts& costs,
                                       Machine machine, Sending sending = Sending::eager) {
  return simulate(schedule, MachineCosts(costs, std::move(machine)), sending);
}

/// The same, written with a braced list: `simulate(schedule, {.forward = 1, .backward = 2})`.
[[nodiscard]] inline Timeline simulate(const Schedule& schedule, const StageCosts& costs,
                                       Sending sending = Sending::eager) {
  return simulate<StageCosts>(schedule, costs, sending);
}

}  // namespace heddle::inline v0
