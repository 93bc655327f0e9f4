// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// shared_stream(): a stream of items through a chain of stages, over ranks that share memory.

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/stage_storage.hpp>

namespace heddle::inline v0::schedule {

/// Who does what in a stream. Lane l takes the items l, l + lanes, ... and has a rank for each
/// division of the stages: rank l * divisions + d does the next `stages[d]` stages for its items.
/// One lane is a pipeline; one division has every item done by one rank.
struct StreamPlan {
  std::vector<int> stages = {1};  ///< neighbours in the chain, by division
  int lanes = 1;                  ///< items that are taken in turn

  /// Number of ranks.
  [[nodiscard]] int ranks() const noexcept { return lanes * static_cast<int>(stages.size()); }
  friend bool operator==(const StreamPlan&, const StreamPlan&) = default;
};

/// Forward actions for `items` items. What a stage makes lies on its rank, one part of role "input"
/// of the next stage per item; the next stage reads it there. A stage takes the items in order, one
/// after the other, also where several lanes do it, but for stages that are `parallel`, which may
/// do several at once (one entry per stage; none: no stage is). The state of the others has role
/// "weights" and no bytes.
/// @throws contract_error for a plan without ranks or stages, or a negative number of items.
[[nodiscard]] inline Schedule shared_stream(const StreamPlan& plan, int items,
                                            const std::vector<bool>& parallel = {}) {
  const int stages = std::accumulate(plan.stages.begin(), plan.stages.end(), 0);
  bool fits = plan.lanes >= 1 && !plan.stages.empty() && items >= 0 &&
              (parallel.empty() || parallel.size() == static_cast<std::size_t>(stages));
  for (const int each : plan.stages) fits = fits && each >= 1;
  expects(fits, [&] {
    return Complaint{"heddle::schedule::shared_stream",
                     "every division has at least one stage, and there is at least one lane",
                     text(plan.lanes, " lanes, ", plan.stages.size(), " divisions, ", stages,
                          " stages, ", parallel.size(), " of them described, ", items, " items")};
  });
  std::vector<std::uint32_t> division;  // of every stage
  for (std::size_t d = 0; d < plan.stages.size(); ++d)
    division.insert(division.end(), static_cast<std::size_t>(plan.stages[d]),
                    static_cast<std::uint32_t>(d));
  const auto count = static_cast<std::uint32_t>(stages);
  const auto lanes = static_cast<std::uint32_t>(plan.lanes);
  const auto divisions = static_cast<std::uint32_t>(plan.stages.size());
  const auto rank_of = [&](std::uint32_t stage, std::uint32_t item) {
    return Rank{item % lanes * divisions + division[stage]};
  };

  Builder builder(text("stream S=", stages, " D=", divisions, " L=", lanes, " M=", items),
                  plan.ranks());
  builder.share_memory(std::vector<std::uint32_t>(static_cast<std::size_t>(plan.ranks()), 0));
  const auto total = static_cast<std::uint32_t>(items);
  std::vector<BufferId> state;
  std::vector<std::vector<BufferId>> made(count);  // of every stage, by lane
  for (std::uint32_t s = 0; s < count; ++s) {
    state.push_back(builder.add_buffer({.rank = rank_of(s, 0),
                                        .stage = Stage{s},
                                        .label = builder.label(role::weights),
                                        .transient = false}));
    for (std::uint32_t lane = 0; s + 1 < count && lane < lanes; ++lane)
      made[s].push_back(
          builder.add_buffer({.rank = rank_of(s, lane),
                              .parts = std::max(1u, (total + lanes - 1 - lane) / lanes),
                              .stage = Stage{s + 1},
                              .label = builder.label(role::input)}));
  }
  std::vector<Use> uses;
  for (std::uint32_t m = 0; m < total; ++m) {
    for (std::uint32_t s = 0; s < count; ++s) {
      uses.clear();
      if (s > 0) uses.push_back(read(made[s - 1][m % lanes], m / lanes));
      if (s + 1 < count) uses.push_back(write(made[s][m % lanes], m / lanes));
      if (parallel.empty() || !parallel[s]) uses.push_back(update(state[s]));
      builder.add({.kind = Kind::F,
                   .queue = builder.local(rank_of(s, m)),
                   .stage = Stage{s},
                   .item = Item{m}},
                  uses);
    }
  }
  return std::move(builder).build();
}

}  // namespace heddle::inline v0::schedule
