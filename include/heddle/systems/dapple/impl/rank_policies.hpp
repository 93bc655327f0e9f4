// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// RankPolicies: the ranks that a stage of DAPPLE's planner may take.

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/internal/search_watch.hpp>
#include <heddle/plan/internal/stage_table.hpp>

namespace heddle::inline v0::systems::impl {

/// The three policies by which a stage takes free ranks, see Dapple. Sets of used ranks and lists
/// of the ranks of a stage have numbers, which are given when they first occur.
class RankPolicies {
 public:
  /// A way to take ranks.
  struct Step {
    std::size_t replicas;  ///< the ranks of the stage
    std::size_t used;      ///< all ranks that are used then
  };
  static constexpr std::size_t none = 0;  ///< the set of used ranks that is empty

  /// Keeps references to the machine, to the table, which it asks for replicas, and to the watch,
  /// which counts what it spends.
  RankPolicies(const Machine& machine, plan::impl::StageTable& table,
               plan::impl::SearchWatch& watch);

  /// Returns the number of ranks that are free.
  [[nodiscard]] int free(std::size_t used) const {
    int ranks = m_machine->ranks();
    for (const int count : m_used[used]) ranks -= count;
    return ranks;
  }
  /// Returns the ways to take `need` of the ranks that are free. There are enough.
  [[nodiscard]] const std::vector<Step>& steps(std::size_t used, int need) {
    const std::optional<std::vector<Step>>& known = m_steps[used][static_cast<std::size_t>(need)];
    return known ? *known : find_steps(used, need);
  }
  /// Returns the ranks of a Step.
  [[nodiscard]] const plan::impl::Replicas& replicas(std::size_t number) const {
    return m_replicas[number];
  }

 private:
  /// Returns the number of a set of used ranks: the first ones of each node, as the policies take
  /// them.
  std::size_t intern(const std::vector<int>& used);
  [[nodiscard]] int size_of_node(std::size_t node) const {
    return static_cast<int>(m_nodes[node].size());
  }
  /// Returns the used ranks by node after a policy took `need` more.
  [[nodiscard]] std::vector<int> take(int policy, std::vector<int> used, int need) const;
  [[nodiscard]] const std::vector<Step>& find_steps(std::size_t used, int need);

  const Machine* m_machine;
  plan::impl::StageTable* m_table;
  plan::impl::SearchWatch* m_watch;
  std::vector<std::vector<Rank>> m_nodes;  ///< the ranks of each node, in order
  std::map<std::vector<int>, std::size_t> m_used_ids;
  std::vector<std::vector<int>> m_used;  ///< by number: the used ranks of each node
  std::vector<std::vector<std::optional<std::vector<Step>>>> m_steps;  ///< by used ranks, by need
  std::map<std::vector<Rank>, std::size_t> m_replica_ids;
  std::vector<plan::impl::Replicas> m_replicas;
};

}  // namespace heddle::inline v0::systems::impl

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/dapple/impl/rank_policies.ipp>
#endif
