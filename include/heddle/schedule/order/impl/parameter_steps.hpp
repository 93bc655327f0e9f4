// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Implements lower(): computes the parameter steps of one rank by the rules of
/// torch.distributed.pipelining.

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/parameter_step.hpp>

namespace heddle::inline v0::schedule::impl {

/// Returns true if an action of this kind completes the gradient of its microbatch.
[[nodiscard]] constexpr bool completes_gradient(Kind kind) noexcept {
  return kind == Kind::backward || kind == Kind::backward_weight;
}

/// The entries of a rank that run together: one entry, or a fused pair.
struct Turn {
  std::size_t first, end;
};
/// Divides the list of a rank into turns.
[[nodiscard]] inline std::vector<Turn> turns_of(std::span<const Order> list) {
  std::vector<Turn> turns;
  for (std::size_t i = 0; i < list.size(); i = turns.back().end)
    turns.push_back({i, std::min(i + (list[i].fused ? 2 : 1), list.size())});
  return turns;
}

/// The number of stages that a rank keeps unsharded in torch's rule.
inline constexpr int most_unsharded = 3;

/// Returns for every turn the `most` stages that are computed next, from this turn on. There is one
/// more if a fused pair contains the last of them and another one.
[[nodiscard]] inline std::vector<std::vector<Stage>> next_stages(std::span<const Order> list,
                                                                 const std::vector<Turn>& turns,
                                                                 std::size_t most) {
  struct Next {
    Stage stage;
    std::size_t turn;
  };
  std::vector<Next> next;  // the stages of the later turns, the nearest first
  std::vector<std::vector<Stage>> result(turns.size());
  for (std::size_t t = turns.size(); t-- > 0;) {
    for (std::size_t i = turns[t].end; i-- > turns[t].first;) {
      std::erase_if(next, [&](const Next& each) { return each.stage == list[i].stage; });
      next.insert(next.begin(), {list[i].stage, t});
    }
    for (const auto& [stage, turn] : next)
      if (result[t].size() < most || turn == next[most - 1].turn) result[t].push_back(stage);
  }
  return result;
}

/// Returns the parameter steps of the list of a rank, which unshards `ahead` stages ahead.
[[nodiscard]] inline std::vector<ParameterStep> parameter_steps(std::span<const Order> list,
                                                                int ahead) {
  std::unordered_map<std::size_t, std::size_t>
      last;  // the last entry that completes a stage's gradient
  for (std::size_t i = 0; i < list.size(); ++i)
    if (completes_gradient(list[i].kind)) last[+list[i].stage] = i;
  const std::vector<Turn> turns = turns_of(list);
  const auto next = next_stages(list, turns, most_unsharded);
  const auto near = next_stages(list, turns, static_cast<std::size_t>(ahead));
  std::vector<ParameterStep> steps;
  std::set<Stage> unsharded;
  for (std::size_t t = 0; t < turns.size(); ++t) {
    const auto soon = [&](Stage stage) { return std::ranges::count(next[t], stage) != 0; };
    for (const Stage stage : unsharded)
      if (!soon(stage)) steps.push_back({ParameterStep::Action::reshard, stage, turns[t].first});
    std::erase_if(unsharded, [&](Stage stage) { return !soon(stage); });
    for (const Stage stage : near[t])
      if (unsharded.insert(stage).second)
        steps.push_back({ParameterStep::Action::unshard, stage, turns[t].first});
    for (std::size_t i = turns[t].first; i < turns[t].end; ++i)
      if (const auto found = last.find(+list[i].stage); found != last.end() && found->second == i)
        steps.push_back({ParameterStep::Action::reduce_grad, list[i].stage, turns[t].end});
  }
  for (const Stage stage : unsharded)
    steps.push_back({ParameterStep::Action::reshard, stage, list.size()});
  return steps;
}

}  // namespace heddle::inline v0::schedule::impl
