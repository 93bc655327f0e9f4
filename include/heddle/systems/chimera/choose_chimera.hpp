// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// choose_chimera(): chooses the fastest of 1F1B and the variants of Chimera under given costs.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/generator/chimera.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/memory.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0::systems {

/// The input of choose_chimera().
struct ChimeraCase {
  int ranks = 2;          ///< number of ranks, and of stages, an even number
  int microbatches = 1;   ///< microbatches of a step
  bool may_halve = true;  ///< true if a microbatch can be run as two halves
  int most_live = std::numeric_limits<int>::max();  ///< the most microbatches that a rank can keep
  StageSizes sizes = {};                            ///< the sizes of a microbatch
};

/// The result of choose_chimera().
template <class Time>
struct ChimeraChoice {
  Orders orders;        ///< the fastest orders that fit in memory
  bool halved = false;  ///< true if their items are halves of microbatches
  Time makespan = {};   ///< their makespan by simulate()
};

namespace impl {

/// The costs of halves of microbatches: half the work and half the bytes, but the whole latency.
template <Costs C>
struct HalfCosts {
  using Time = typename C::Time;
  const C& whole;

  [[nodiscard]] Time time(const Schedule& schedule, ActionId id) const {
    const Time time = whole.time(schedule, id);
    return schedule[id].kind <= Kind::backward ? time / Time(2) : time;
  }
  [[nodiscard]] Transfer<Time> transfer(const Schedule& schedule, ActionId id) const {
    const Transfer<Time> transfer = whole.transfer(schedule, id);
    return {transfer.occupancy / Time(2), transfer.latency};
  }
};

}  // namespace impl

/// Returns the fastest, by simulation, of 1F1B and of Chimera with direct concatenation, with
/// doubled forwards and with halved backwards. If several are equally fast, the first wins, so that
/// no rank keeps two copies of the model without a gain. The result is never slower than 1F1B if
/// 1F1B fits. Time is a rational or floating-point number.
///
/// @throws infeasible if the number of stages is odd, or if no candidate fits in memory.
/// @throws contract_error if a count is below 1, or if `most_live` is negative.
template <Costs C>
[[nodiscard]] ChimeraChoice<typename C::Time> choose_chimera(const ChimeraCase& wanted,
                                                             const C& costs) {
  using Time = typename C::Time;
  static_assert(!std::integral<Time>, "halves of microbatches need a Time that can be halved");
  expects(wanted.most_live >= 0, [&] {
    return ErrorInfo{"heddle::systems::choose_chimera", "most_live must be at least 1 microbatch",
                     text("most live = ", wanted.most_live)};
  });
  ChimeraChoice<Time> best;
  BasicTimeline<Time> timeline;
  const auto consider = [&](Orders orders, bool halved) {
    const Schedule schedule = weave(orders, wanted.sizes);
    if (halved)
      simulate(schedule, impl::HalfCosts<C>{costs}, timeline);
    else
      simulate(schedule, costs, timeline);
    const auto most = static_cast<std::uint64_t>(wanted.most_live);
    for (std::uint32_t rank = 0; rank < orders.ranks.size(); ++rank)
      if (schedule::peak(timeline, Rank{rank}, role::saved).parts > (halved ? 2 * most : most))
        return;
    const Time makespan = timeline.makespan();
    if (best.orders.ranks.empty() || makespan < best.makespan)
      best = {std::move(orders), halved, makespan};
  };
  consider(schedule::one_f_one_b(wanted.ranks, wanted.microbatches), false);
  consider(schedule::chimera(wanted.ranks, wanted.microbatches), false);
  consider(schedule::chimera(wanted.ranks, wanted.microbatches, 1, true), false);
  if (wanted.may_halve)
    consider(schedule::chimera(wanted.ranks, 2 * wanted.microbatches, 1, true), true);
  if (best.orders.ranks.empty())
    throw infeasible(
        {"heddle::systems::choose_chimera", "no candidate fits in memory",
         text("stages = ", wanted.ranks, ", microbatches = ", wanted.microbatches,
              ", most live = ", wanted.most_live),
         text("1F1B needs ", std::min(wanted.ranks, wanted.microbatches), " live activations")});
  return best;
}

}  // namespace heddle::inline v0::systems
