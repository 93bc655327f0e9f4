// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PathPlan: whole flows between leaves over spines, so that no link carries more than it must; and
/// what hashing makes of them instead.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::plan {

/// A flow from one leaf switch to another; all have one size.
struct Flow {
  std::uint32_t from = 0;  ///< the leaf that sends
  std::uint32_t to = 0;    ///< the leaf that receives
};

/// A spine for every flow, so that each link between a leaf and a spine carries at most the flows
/// of that leaf in that direction, over the number of spines, rounded up: the least there is.
///
/// Such a plan always exists: flows are the edges of a bipartite multigraph, spines their colours,
/// and it has an edge colouring in which the colours of every vertex are balanced (D. de Werra,
/// "Equitable colorations of graphs", 1971). Where no spine has room at both ends of a flow, flows
/// of two spines change places along a path.
class PathPlan {
 public:
  /// Plans all `flows` over `spines`. @throws contract_error for no spines.
  PathPlan(std::vector<Flow> flows, int spines);

  /// The spine that a flow takes.
  [[nodiscard]] std::uint32_t spine(std::size_t flow) const { return m_spine[flow]; }
  /// Those of all flows.
  [[nodiscard]] std::span<const std::uint32_t> spines() const noexcept { return m_spine; }
  /// Flows on the busiest link.
  [[nodiscard]] std::uint32_t max_load() const noexcept;

  /// Plans without `spine` from now on: its flows move, and others only where that is the only way
  /// to the least load, those of one sender or one receiver never. Returns the flows that moved, in
  /// ascending order.
  /// @throws contract_error for a spine that is not there; infeasible where it was the last.
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
  /// The least that the busiest link of a leaf must carry.
  [[nodiscard]] std::uint32_t cap(std::size_t end) const;
  [[nodiscard]] bool has_room(std::size_t end, std::uint32_t spine) {
    return m_alive[spine] && load(end, spine) < cap(end);
  }

  void set(std::uint32_t flow, std::uint32_t spine);

  void place(std::uint32_t flow);

  /// Gives `flow` spine `a`, which is full at its receiver, and from there on exchanges `a` and `b`
  /// along a path, until no link is too full. A path comes to a sender only by flows that leave `a`
  /// and to a receiver only by flows that leave `b`; so it ends, and there always is a flow to go
  /// on by. Returns the flows on it.
  std::vector<std::uint32_t> exchange(std::uint32_t flow, std::uint32_t a, std::uint32_t b);

  std::vector<Flow> m_flows;
  std::uint32_t m_leaves = 0;
  std::vector<bool> m_alive;                     ///< by spine
  std::vector<std::vector<std::uint32_t>> m_at;  ///< flows by leaf: as senders, then as receivers
  std::vector<std::uint32_t> m_load;             ///< flows by the same, and by spine
  std::vector<std::uint32_t> m_spine;            ///< by flow
};

/// The spines that hashing gives so many flows (ECMP), as f(seed, flow): each any of them, alike.
/// @throws contract_error for no spines.
[[nodiscard]] std::vector<std::uint32_t> hash_paths(std::size_t flows, int spines,
                                                    std::uint64_t seed);

}  // namespace heddle::inline v0::plan

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/path_plan.ipp>
#endif
