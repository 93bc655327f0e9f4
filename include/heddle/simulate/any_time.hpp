// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// simulate() for costs with another type of time than Seconds, such as rational numbers. To be
/// included beside simulate.hpp in a program that has such costs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/internal/is_tier_move.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/impl/any_costs.hpp>
#include <heddle/simulate/impl/event_engine.hpp>
#include <heddle/simulate/internal/priced.hpp>
#include <heddle/simulate/sending.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0::impl {

template <Costs C>
void simulate_as(const Schedule& schedule, const C& costs,
                 BasicTimeline<typename C::Time>& timeline, Sending sending) {
  using Time = typename C::Time;
  if constexpr (CheckedCosts<C>) costs.check();
  timeline.reset(schedule);
  if constexpr (PricesShared<C>) {
    if (const Machine* const machine = machine_of(costs)) {
      expects(schedule.ranks() <= machine->ranks(), [&] {
        return ErrorInfo{"heddle::simulate", "the machine has too few ranks",
                         text("'", schedule.name(), "' has ", schedule.ranks(),
                              " ranks, the machine ", machine->ranks())};
      });
      if (machine->shares()) {
        EventEngine<C>(schedule, costs, *machine, timeline, sending).run();
        return expect_sum("heddle::simulate", timeline.end(),
                          [&] { return text("'", schedule.name(), "'"); });
      }
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
  const std::vector<bool> unbuffered = tier_queues(schedule);
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
        const Transfer<Time> transfer = transfer_time(schedule, costs, ActionId{i});
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
        const Time both = fused_time(schedule, costs, ActionId{i});
        auto& partner = spans[++i];
        span.end = partner.start =
            span.start + std::min(work_time(schedule, costs, ActionId{i - 1}), both);
        span.arrival = partner.end = partner.arrival = span.start + both;
        queue.free = span.arrival;
      } else {
        span.end = span.arrival = span.start + work_time(schedule, costs, ActionId{i});
        queue.free = span.end;
      }
    }
  };
  if (sending == Sending::rendezvous || has_tiers(schedule))
    sweep.template operator()<true>();
  else
    sweep.template operator()<false>();
  for (const QueueState& queue : queues)
    for (const Time& end : {queue.free, queue.delivered})
      expect_sum("heddle::simulate", end, [&] { return text("'", schedule.name(), "'"); });
}

}  // namespace heddle::inline v0::impl
