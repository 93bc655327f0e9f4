// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of rank_policies.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/internal/stage_table.hpp>
#include <heddle/systems/dapple/impl/rank_policies.hpp>

namespace heddle::inline v0::systems::impl {

HEDDLE_INLINE RankPolicies::RankPolicies(const Machine& machine, plan::impl::StageTable& table,
                                         plan::impl::SearchWatch& watch)
    : m_machine(&machine), m_table(&table), m_watch(&watch) {
  std::size_t level = 0;
  while (level + 1 < machine.levels().size() && machine.levels()[level].ranks == 1) ++level;
  for (std::size_t r = 0; r < static_cast<std::size_t>(machine.ranks()); ++r) {
    const std::size_t node = machine.group(level, Rank{r});
    if (node >= m_nodes.size()) m_nodes.resize(node + 1);
    m_nodes[node].push_back(Rank{r});
  }
  intern(std::vector<int>(m_nodes.size(), 0));
}

HEDDLE_INLINE std::size_t RankPolicies::intern(const std::vector<int>& used) {
  const auto [at, is_new] = m_used_ids.try_emplace(used, m_used.size());
  if (is_new) {
    m_used.push_back(used);
    const auto counts = static_cast<std::size_t>(m_machine->ranks()) + 1;
    m_steps.emplace_back(counts);
    m_watch->hold(counts * sizeof(m_steps.back().front()) + 3 * used.size() * sizeof(int));
  }
  return at->second;
}

HEDDLE_INLINE std::vector<int> RankPolicies::take(int policy, std::vector<int> used,
                                                  int need) const {
  const std::vector<int> before = used;
  const auto fill = [&](std::size_t node) {
    const int taken = std::min(need, size_of_node(node) - used[node]);
    used[node] += taken;
    need -= taken;
  };
  if (policy == 2) {
    for (std::size_t node = 0; need > 0; node = (node + 1) % used.size())
      if (used[node] < size_of_node(node)) {
        ++used[node];
        --need;
      }
    return used;
  }
  for (const bool fresh : {policy == 0, policy != 0})
    for (std::size_t node = 0; node < used.size(); ++node)
      if ((before[node] == 0) == fresh) fill(node);
  return used;
}

HEDDLE_INLINE const std::vector<RankPolicies::Step>& RankPolicies::find_steps(std::size_t used,
                                                                              int need) {
  std::vector<Step> found;
  for (const int policy : {0, 1, 2}) {
    const std::vector<int> before = m_used[used];
    const std::vector<int> after = take(policy, before, need);
    std::vector<Rank> ranks;
    for (std::size_t node = 0; node < after.size(); ++node)
      for (int r = before[node]; r < after[node]; ++r)
        ranks.push_back(m_nodes[node][static_cast<std::size_t>(r)]);
    std::ranges::sort(ranks);
    const auto [at, is_new] = m_replica_ids.try_emplace(ranks, m_replicas.size());
    if (is_new) {
      m_replicas.push_back(m_table->replicas(ranks));
      m_watch->hold(sizeof(plan::impl::Replicas) +
                    ranks.size() * (2 * sizeof(Rank) + sizeof(std::int64_t)));
    }
    m_watch->spend(100 + 10 * ranks.size() + 2 * after.size());
    const Step step{at->second, intern(after)};
    if (std::ranges::find(found, step.replicas, &Step::replicas) == found.end())
      found.push_back(step);
  }
  return m_steps[used][static_cast<std::size_t>(need)].emplace(std::move(found));
}

}  // namespace heddle::inline v0::systems::impl
