// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PathPlan: assigns whole flows between leaf switches to spine switches with the least possible
/// load of the busiest link. hash_paths() gives the assignment by hashing, for comparison.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::plan {

/// A flow from one leaf switch to another. All flows have one size.
struct Flow {
  std::uint32_t from = 0;  ///< the leaf that sends
  std::uint32_t to = 0;    ///< the leaf that receives
};

/// An assignment of every flow to a spine. Each link between a leaf and a spine carries at most the
/// flows of that leaf in that direction, divided by the number of spines and rounded up. This is
/// the lower bound.
///
/// Such a plan always exists. Flows are the edges of a bipartite multigraph and spines are their
/// colours; the graph has an edge colouring in which the colours of every vertex are balanced (D.
/// de Werra, "Equitable colorations of graphs", 1971). If no spine has room at both ends of a flow,
/// flows of two spines are exchanged along a path.
class PathPlan {
 public:
  /// Plans all `flows` over `spines` spines. @throws contract_error if there are none.
  PathPlan(std::vector<Flow> flows, int spines);

  /// Returns the spine of a flow.
  [[nodiscard]] std::uint32_t spine(std::size_t flow) const { return m_spine[flow]; }
  /// Returns the spine of every flow.
  [[nodiscard]] std::span<const std::uint32_t> spines() const noexcept { return m_spine; }
  /// Returns the number of flows on the busiest link.
  [[nodiscard]] std::uint32_t max_load() const noexcept;

  /// Removes `spine` from the plan. Its flows move to other spines. Other flows move only if the
  /// least load requires it, and never if all flows have one sender or one receiver. Returns the
  /// flows that moved, in ascending order.
  /// @throws contract_error if there is no such spine; infeasible if it is the last one.
  std::vector<std::uint32_t> lose(std::uint32_t spine);

 private:
  static constexpr std::uint32_t none = 0xffffffffu;

  [[nodiscard]] std::size_t sender(std::uint32_t flow) const { return m_flows[flow].from; }
  [[nodiscard]] std::size_t receiver(std::uint32_t flow) const {
    return std::size_t{m_leaves} + m_flows[flow].to;
  }
  [[nodiscard]] std::uint32_t& load(std::size_t end, std::uint32_t spine) {
    return m_load[end * m_alive.size() + spine];
  }
  /// Returns the least number of flows that the busiest link of a leaf must carry.
  [[nodiscard]] std::uint32_t cap(std::size_t end) const;
  [[nodiscard]] bool has_room(std::size_t end, std::uint32_t spine) {
    return m_alive[spine] && load(end, spine) < cap(end);
  }

  void set(std::uint32_t flow, std::uint32_t spine);

  void place(std::uint32_t flow);

  /// Assigns `flow` to spine `a`, which is full at its receiver, and exchanges `a` and `b` along a
  /// path until no link is too full. The path reaches a sender only by flows that leave `a`, and a
  /// receiver only by flows that leave `b`. It therefore ends, and there always is a next flow.
  /// Returns the flows of the path.
  std::vector<std::uint32_t> exchange(std::uint32_t flow, std::uint32_t a, std::uint32_t b);

  std::vector<Flow> m_flows;
  std::uint32_t m_leaves = 0;
  std::vector<bool> m_alive;  ///< by spine
  std::vector<std::vector<std::uint32_t>>
      m_at;                            ///< flows of each leaf: first as senders, then as receivers
  std::vector<std::uint32_t> m_load;   ///< number of flows, indexed by m_at and spine
  std::vector<std::uint32_t> m_spine;  ///< by flow
};

/// Returns the spine of each of `flows` flows by hashing (ECMP). It is uniform and depends on
/// (seed, flow).
/// @throws contract_error if there are no spines.
[[nodiscard]] std::vector<std::uint32_t> hash_paths(std::size_t flows, int spines,
                                                    std::uint64_t seed);

}  // namespace heddle::inline v0::plan

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/path_plan.ipp>
#endif
