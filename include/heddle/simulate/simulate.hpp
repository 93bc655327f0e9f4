// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// simulate(): predicts the Timeline of a Schedule from Costs. It sweeps once over the list of
/// actions and needs neither a heap nor a graph, because every dependency points backwards. If
/// queues share resources of a Machine, it handles events in the order of time instead.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/impl/is_tier_move.hpp>
#include <heddle/schedule/impl/is_time.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/impl/event_engine.hpp>
#include <heddle/simulate/impl/priced.hpp>
#include <heddle/simulate/sending.hpp>

namespace heddle::inline v0 {

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
/// @throws contract_error if a cost is negative, infinite or not a number. The error names the cost
///         if the costs can check themselves (see CheckedCosts), else the first such action. Also
///         if costs add up to infinity.
/// @throws contract_error if the machine has fewer ranks than the schedule, or if an action needs
///         more units than its device has.
template <Costs C>
void simulate(const Schedule& schedule, const C& costs, BasicTimeline<typename C::Time>& timeline,
              Sending sending = Sending::eager) {
  using Time = typename C::Time;
  if constexpr (CheckedCosts<C>) costs.check();
  timeline.reset(schedule);
  if constexpr (SharingCosts<C>) {
    expects(schedule.ranks() <= costs.machine().ranks(), [&] {
      return ErrorInfo{"heddle::simulate", "the machine has too few ranks",
                       text("'", schedule.name(), "' has ", schedule.ranks(),
                            " ranks, the machine ", costs.machine().ranks())};
    });
    if (costs.machine().shares()) {
      impl::EventEngine<C>(schedule, costs, timeline, sending).run();
      return impl::expect_sum("heddle::simulate", timeline.end(),
                              [&] { return text("'", schedule.name(), "'"); });
    }
  }
  BasicSpan<Time>* const spans = timeline.spans().data();
  struct QueueState {
    Time free = {};       ///< when the source is free, or the queue if it is local
    Time delivered = {};  ///< when the last message is delivered at the destination
  };
  std::vector<QueueState> queues(schedule.queues().size());
  const Action* const actions = schedule.actions().data();
  const std::uint32_t* const after_begin = schedule.after_begin().data();
  const After* const all_after = schedule.all_after().data();
  // Queues whose moves start only when their storage is free. Most schedules have none.
  const std::vector<bool> unbuffered = impl::tier_queues(schedule);
  const auto sweep = [&]<bool waits>() {
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      QueueState& queue = queues[+actions[i].queue];
      Time ready[2] = {queue.free, queue.delivered};  // at the source, at the destination
      Time storage = queue.free;                      // when the storage at the destination is free
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
        // It waits for the storage, but not for the previous delivery: latencies overlap.
        if constexpr (waits)
          if (sending == Sending::rendezvous || unbuffered[+actions[i].queue])
            span.start = std::max(span.start, storage);
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
  };
  if (sending == Sending::rendezvous || impl::has_tiers(schedule))
    sweep.template operator()<true>();
  else
    sweep.template operator()<false>();
  for (const QueueState& queue : queues)
    for (const Time& end : {queue.free, queue.delivered})
      impl::expect_sum("heddle::simulate", end, [&] { return text("'", schedule.name(), "'"); });
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
#else
// The usual costs are compiled once. Other costs, and other types of time, are compiled where they
// are used.
extern template void heddle::simulate(const heddle::Schedule&, const heddle::StageCosts&,
                                      heddle::Timeline&, heddle::Sending);
extern template void heddle::simulate(const heddle::Schedule&, const heddle::TableCosts&,
                                      heddle::Timeline&, heddle::Sending);
extern template void heddle::simulate(const heddle::Schedule&, const heddle::MachineCosts&,
                                      heddle::Timeline&, heddle::Sending);
#endif
