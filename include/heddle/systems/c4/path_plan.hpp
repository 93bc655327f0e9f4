// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PathPlan: assigns whole flows between leaf switches to spine switches with the least possible
/// load of the busiest link, and repairs the assignment if a spine dies or is congested.
/// over_ports() divides flows between the two ports of network cards. spine_shares() finds
/// congested spines in the measurements of a Monitor. hash_paths() gives the assignment by hashing,
/// for comparison.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/monitor.hpp>

namespace heddle::inline v0::systems {

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
///
/// If spines are congested, a link of a spine with a share c of its bandwidth takes n / c flow
/// times for n flows. The plan then has the least possible time of the busiest link: spines are
/// divided into slots that serve one flow of a leaf each, and flows are edges that get a slot by
/// Konig's edge colouring. If all spines have the same share, the plan is again the balanced one.
class PathPlan {
 public:
  /// The leaves have numbers below this one.
  static constexpr std::uint32_t most_leaves = 1u << 24;

  /// Plans all `flows` over `spines` spines. @throws contract_error if there are no spines or more
  /// than 2^20, or if a leaf is not below most_leaves.
  PathPlan(std::vector<Flow> flows, int spines);

  /// Returns the spine of a flow.
  [[nodiscard]] std::uint32_t spine(std::size_t flow) const { return m_spine[flow]; }
  /// Returns the spine of every flow.
  [[nodiscard]] std::span<const std::uint32_t> spines() const noexcept {
    return {m_spine.data(), m_spine.size()};
  }
  /// Returns the number of spines, dead ones included.
  [[nodiscard]] std::uint32_t spine_count() const noexcept {
    return static_cast<std::uint32_t>(m_share.size());
  }
  /// Returns the number of flows on the busiest link.
  [[nodiscard]] std::uint32_t max_load() const noexcept;

  /// Returns the time of the busiest link, in the time that one flow takes on a whole link: the
  /// number of its flows over the share of bandwidth that its spine has.
  [[nodiscard]] double max_time() const noexcept;
  /// Returns the share of its bandwidth that a spine has; 0 if it is dead.
  [[nodiscard]] double share(std::uint32_t spine) const { return m_share[spine]; }

  /// Plans for a spine that has only `share` of its bandwidth left, because other traffic uses it.
  /// A flow moves only if its spine has too many, or to make room for such a flow. Returns the
  /// flows that moved, in ascending order.
  /// @throws contract_error if there is no such live spine, or if `share` is not in (0, 1].
  std::vector<std::uint32_t> congested(std::uint32_t spine, double share);

  /// Plans with the whole bandwidth of a spine that was dead or congested. Returns the flows that
  /// moved, in ascending order.
  /// @throws contract_error if there is no such spine.
  std::vector<std::uint32_t> restore(std::uint32_t spine);

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
    return m_load[end * m_share.size() + spine];
  }
  /// Returns the least number of flows that the busiest link of a leaf must carry.
  [[nodiscard]] std::uint32_t cap(std::size_t end) const;
  [[nodiscard]] bool has_room(std::size_t end, std::uint32_t spine) {
    return m_share[spine] > 0 && load(end, spine) < cap(end);
  }

  /// Returns true if all live spines have the same share.
  [[nodiscard]] bool is_uniform() const;

  /// Plans anew for the present shares and keeps flows where they are if possible. Returns the
  /// flows that moved.
  std::vector<std::uint32_t> replan();

  /// Assigns all flows if the shares of live spines differ.
  void weigh();

  void set(std::uint32_t flow, std::uint32_t spine);

  void place(std::uint32_t flow);

  /// Assigns `flow` to spine `a`, which is full at its receiver, and exchanges `a` and `b` along a
  /// path until no link is too full. The path reaches a sender only by flows that leave `a`, and a
  /// receiver only by flows that leave `b`. It therefore ends, and there always is a next flow.
  /// Returns the flows of the path.
  std::vector<std::uint32_t> exchange(std::uint32_t flow, std::uint32_t a, std::uint32_t b);

  std::vector<Flow> m_flows;
  std::uint32_t m_leaves = 0;
  std::vector<double> m_share;  ///< the shares of bandwidth by spine; 0: dead
  std::vector<std::vector<std::uint32_t>>
      m_at;                            ///< flows of each leaf: first as senders, then as receivers
  std::vector<std::uint32_t> m_load;   ///< number of flows, indexed by m_at and spine
  std::vector<std::uint32_t> m_spine;  ///< by flow
};

/// The flows between leaves that follow from flows between network cards with two ports.
struct PortFlows {
  std::vector<std::uint32_t> port = {};  ///< 0 or 1, by flow
  std::vector<Flow> flows = {};          ///< between the leaves of these ports, for a PathPlan
};

/// Assigns each flow between two network cards to one of their two ports. `leaves[c]` are the
/// leaves of the ports of card c. A flow leaves and enters by the port of the same number, as in
/// C4. Each port of a card carries at most half of the flows of the card in each direction, rounded
/// up.
/// @throws contract_error if a flow names a card without leaves.
[[nodiscard]] PortFlows over_ports(const std::vector<Flow>& cards,
                                   std::span<const std::array<std::uint32_t, 2>> leaves);

/// The ranks at the ends of a flow, whose entry in a Monitor measures it.
struct FlowRanks {
  Rank from = {};  ///< the rank that sends
  Rank to = {};    ///< the rank that receives
};

/// Returns the share of bandwidth that each spine of a plan has by the measurements of a monitor,
/// for PathPlan::congested(). `ends` has the ranks of each flow. A spine is congested if more than
/// three quarters of its flows exceed Monitor::transfer_threshold(). Its share is then the usual
/// time of a transfer over the median time of its flows; otherwise it is 1. Flows of slow senders
/// and receivers do not count, because another path would not make them faster. Shares are relative
/// to what the monitor was told as the plan.
///
/// `hangs` are the findings of find_hang() if a step hung. A spine is dead if one of its messages
/// does not arrive although both ranks have started it. Its share is 0; call PathPlan::lose() for
/// it.
/// @throws contract_error unless `ends` has one entry for each flow.
[[nodiscard]] std::vector<double> spine_shares(const PathPlan& plan, const Monitor& monitor,
                                               std::span<const FlowRanks> ends,
                                               std::span<const Finding> hangs = {});

/// Returns the spine of each of `flows` flows by hashing (ECMP). It is uniform and depends on
/// (seed, flow).
/// @throws contract_error if there are no spines.
[[nodiscard]] std::vector<std::uint32_t> hash_paths(std::size_t flows, int spines,
                                                    std::uint64_t seed);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/c4/path_plan.ipp>
#endif
