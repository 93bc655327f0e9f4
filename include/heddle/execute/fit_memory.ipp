// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of fit_memory.hpp.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/fit_memory.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/capacity.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0 {

namespace impl {

HEDDLE_INLINE Schedule fold_uneven(Schedule schedule) {
  const std::size_t buffers = schedule.buffers().size();
  std::vector<bool> alone(buffers, true), used(buffers, false);
  for (const Use& use : schedule.all_uses()) {
    used[+use.buffer] = true;
    if (use.count != 1) alone[+use.buffer] = false;
  }
  for (std::size_t b = 0; b < buffers; ++b) {
    const Buffer& buffer = schedule[BufferId{b}];
    bool suits = buffer.transient && used[b] && alone[b] && !is_cut_alike(buffer) &&
                 buffer.block == 0 && buffer.record == 0 && buffer.granules == nullptr;
    for (std::uint32_t part = 0; suits && part < buffer.parts; ++part)
      suits = schedule::part_bytes(buffer, part, 1) > 0;
    if (!suits) continue;
    Schedule folded = schedule::fold(schedule, BufferId{b});
    if (folded[BufferId{b}].bytes < buffer.bytes) schedule = std::move(folded);
  }
  return schedule;
}

}  // namespace impl

HEDDLE_INLINE void impl::expect_fits(const Schedule& schedule, const Machine& machine) {
  schedule::check_capacity(
      simulate(schedule, StageCosts{.forward = 1, .backward_input = 1, .backward_weight = 1},
               machine),
      machine);
  std::vector<std::vector<Bytes>> needed(static_cast<std::size_t>(schedule.ranks()));
  for (const Buffer& buffer : schedule.buffers()) {
    std::vector<Bytes>& tiers = needed[+buffer.rank];
    if (tiers.size() <= +buffer.tier) tiers.resize(+buffer.tier + 1);
    tiers[+buffer.tier] += buffer.bytes;
  }
  for (std::size_t r = 0; r < needed.size(); ++r) {
    const auto& memories = machine.device(Rank{r}).memories;
    for (std::size_t t = 0; t < needed[r].size() && t < memories.size(); ++t)
      if (memories[t].capacity != 0 && needed[r][t] > memories[t].capacity)
        throw infeasible(
            {"heddle::expect_fits",
             text("the buffers of '", schedule.name(), "' do not fit in tier ", t, " ('",
                  memories[t].name, "') of rank ", r),
             text("they have ", needed[r][t], " bytes, the tier ", memories[t].capacity, ", so ",
                  needed[r][t] - memories[t].capacity, " bytes lack; fewer live at once"),
             "fold the buffers (RunOptions::fold) with less slack, or use fewer microbatches"});
  }
}

}  // namespace heddle::inline v0
