// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of path_plan.hpp.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/systems/c4/path_plan.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// The slots of spines. A slot serves one flow of each leaf in each direction. Spines have as many
/// slots as makes the longest time of a link least, if the busiest leaf has `busiest` flows.
class Slots {
 public:
  static constexpr std::uint32_t none = 0xffffffffu;

  Slots(std::span<const Flow> flows, std::uint32_t leaves, const std::vector<double>& share,
        std::size_t busiest)
      : m_flows(flows), m_leaves(leaves), m_slot(flows.size(), none) {
    const std::size_t spines = share.size();
    std::vector<std::size_t> width(spines, 0);
    const auto time = [&](std::size_t s) {  // with one more slot
      return share[s] > 0 ? static_cast<double>(width[s] + 1) / share[s]
                          : std::numeric_limits<double>::infinity();
    };
    double longest = 0;
    for (std::size_t slots = 0; slots < busiest; ++slots) {
      std::size_t best = 0;
      for (std::size_t s = 1; s < spines; ++s)
        if (time(s) < time(best)) best = s;
      longest = std::max(longest, time(best));
      ++width[best];
    }
    for (std::size_t s = 0; s < spines; ++s) {
      while (busiest > 0 && time(s) <= longest) ++width[s];
      m_first.push_back(static_cast<std::uint32_t>(m_spine.size()));
      m_spine.resize(m_spine.size() + width[s], static_cast<std::uint32_t>(s));
    }
    m_first.push_back(static_cast<std::uint32_t>(m_spine.size()));
    m_at.assign(2 * std::size_t{leaves} * m_spine.size(), none);
  }

  /// Returns a slot of a spine that is free at a leaf, or none.
  [[nodiscard]] std::uint32_t free(std::size_t end, std::uint32_t spine) const {
    for (std::uint32_t slot = m_first[spine]; slot < m_first[spine + 1]; ++slot)
      if (at(end, slot) == none) return slot;
    return none;
  }
  /// Returns the number of slots of a spine that are taken at a leaf.
  [[nodiscard]] std::size_t used(std::size_t end, std::uint32_t spine) const {
    std::size_t count = 0;
    for (std::uint32_t slot = m_first[spine]; slot < m_first[spine + 1]; ++slot)
      if (at(end, slot) != none) ++count;
    return count;
  }
  /// Returns the flows that exchange slots a and b if `flow` gets slot a. Slot a is free at its
  /// sender, slot b at its receiver.
  [[nodiscard]] std::vector<std::uint32_t> path(std::uint32_t flow, std::uint32_t a,
                                                std::uint32_t b) const {
    std::vector<std::uint32_t> flows;
    bool receives = true;
    for (std::uint32_t next = at(receiver(flow), a); a != b && next != none;) {
      flows.push_back(next);
      receives = !receives;
      next = receives ? at(receiver(next), a) : at(sender(next), b);
    }
    return flows;
  }
  void insert(std::uint32_t flow, std::uint32_t a, std::uint32_t b) {
    const std::vector<std::uint32_t> changed = path(flow, a, b);
    for (const std::uint32_t other : changed) put(other, none);
    for (const std::uint32_t other : changed) m_slot[other] = m_slot[other] == a ? b : a;
    for (const std::uint32_t other : changed) put(other, other);
    m_slot[flow] = a;
    put(flow, flow);
  }
  [[nodiscard]] std::uint32_t spine(std::uint32_t flow) const { return m_spine[m_slot[flow]]; }

 private:
  [[nodiscard]] std::size_t sender(std::uint32_t flow) const { return m_flows[flow].from; }
  [[nodiscard]] std::size_t receiver(std::uint32_t flow) const {
    return std::size_t{m_leaves} + m_flows[flow].to;
  }
  [[nodiscard]] std::uint32_t at(std::size_t end, std::uint32_t slot) const {
    return m_at[end * m_spine.size() + slot];
  }
  /// Writes `value` where the slot of `flow` stands at both of its leaves.
  void put(std::uint32_t flow, std::uint32_t value) {
    for (const std::size_t end : {sender(flow), receiver(flow)})
      m_at[end * m_spine.size() + m_slot[flow]] = value;
  }

  std::span<const Flow> m_flows;
  std::uint32_t m_leaves;
  std::vector<std::uint32_t> m_first;  // slot of each spine
  std::vector<std::uint32_t> m_spine;  // by slot
  std::vector<std::uint32_t> m_at;     // flow by end and slot
  std::vector<std::uint32_t> m_slot;   // by flow
};

}  // namespace impl

HEDDLE_INLINE PathPlan::PathPlan(std::vector<Flow> flows, int spines) : m_flows(std::move(flows)) {
  expects(spines >= 1 && spines <= 1 << 20, [&] {
    return ErrorInfo{"heddle::systems::PathPlan",
                     "flows between leaf switches need from 1 to 2^20 spine switches",
                     text(spines, " spines")};
  });
  for (std::size_t f = 0; f < m_flows.size(); ++f)
    expects(std::max(m_flows[f].from, m_flows[f].to) < most_leaves, [&] {
      return ErrorInfo{"heddle::systems::PathPlan", "a leaf has too large a number",
                       text("flow ", f, " from leaf ", m_flows[f].from, " to leaf ", m_flows[f].to),
                       text("number the leaves from 0 to ", most_leaves - 1)};
    });
  for (const Flow& flow : m_flows) m_leaves = std::max({m_leaves, flow.from + 1, flow.to + 1});
  m_share.assign(static_cast<std::size_t>(spines), 1.0);
  m_at.resize(2 * std::size_t{m_leaves});
  m_load.assign(m_at.size() * m_share.size(), 0);
  m_spine.assign(m_flows.size(), none);
  for (std::uint32_t flow = 0; flow < m_flows.size(); ++flow)
    for (const std::size_t end : {sender(flow), receiver(flow)}) m_at[end].push_back(flow);
  for (std::uint32_t flow = 0; flow < m_flows.size(); ++flow) place(flow);
}

HEDDLE_INLINE std::uint32_t PathPlan::max_load() const noexcept {
  return m_load.empty() ? 0 : *std::ranges::max_element(m_load);
}

HEDDLE_INLINE double PathPlan::max_time() const noexcept {
  double longest = 0;
  for (std::size_t i = 0; i < m_load.size(); ++i)
    if (m_load[i] > 0) longest = std::max(longest, m_load[i] / m_share[i % m_share.size()]);
  return longest;
}

HEDDLE_INLINE std::vector<std::uint32_t> PathPlan::lose(std::uint32_t spine) {
  constexpr const char* where = "heddle::systems::PathPlan::lose";
  expects(spine < m_share.size() && m_share[spine] > 0, [&] {
    return ErrorInfo{where, "no such live spine", text("spine ", spine, " of ", m_share.size())};
  });
  if (std::ranges::count(m_share, 0.0) + 1 == std::ssize(m_share))
    throw infeasible({where, "the only live spine cannot be removed", text("spine ", spine)});
  m_share[spine] = 0;
  return replan();
}

HEDDLE_INLINE std::vector<std::uint32_t> PathPlan::congested(std::uint32_t spine, double share) {
  constexpr const char* where = "heddle::systems::PathPlan::congested";
  expects(spine < m_share.size() && m_share[spine] > 0, [&] {
    return ErrorInfo{where, "no such live spine", text("spine ", spine, " of ", m_share.size())};
  });
  expects(share > 0 && share <= 1, [&] {
    return ErrorInfo{where, "the share of bandwidth that is left must be in (0, 1]",
                     text("share ", share), "call lose() for a spine without any"};
  });
  m_share[spine] = share;
  return replan();
}

HEDDLE_INLINE std::vector<std::uint32_t> PathPlan::restore(std::uint32_t spine) {
  expects(spine < m_share.size(), [&] {
    return ErrorInfo{"heddle::systems::PathPlan::restore", "no such spine",
                     text("spine ", spine, " of ", m_share.size())};
  });
  m_share[spine] = 1;
  return replan();
}

HEDDLE_INLINE bool PathPlan::is_uniform() const {
  const double largest = *std::ranges::max_element(m_share);
  return std::ranges::all_of(m_share, [&](double s) { return s == 0 || s == largest; });
}

HEDDLE_INLINE std::vector<std::uint32_t> PathPlan::replan() {
  const std::vector<std::uint32_t> before = m_spine;
  if (is_uniform()) {
    std::vector<std::uint32_t> homeless;
    for (std::uint32_t flow = 0; flow < m_flows.size(); ++flow) {
      const std::uint32_t spine = m_spine[flow];
      if (m_share[spine] > 0 && load(sender(flow), spine) <= cap(sender(flow)) &&
          load(receiver(flow), spine) <= cap(receiver(flow)))
        continue;
      homeless.push_back(flow);
      set(flow, none);
    }
    for (const std::uint32_t flow : homeless) place(flow);
  } else {
    weigh();
  }
  std::vector<std::uint32_t> moved;
  for (std::uint32_t flow = 0; flow < m_flows.size(); ++flow)
    if (m_spine[flow] != before[flow]) moved.push_back(flow);
  return moved;
}

HEDDLE_INLINE void PathPlan::weigh() {
  std::size_t busiest = 0;
  for (const auto& flows : m_at) busiest = std::max(busiest, flows.size());
  impl::Slots slots(m_flows, m_leaves, m_share, busiest);
  const std::uint32_t spines = spine_count();
  std::vector<std::uint32_t> homeless;
  for (std::uint32_t flow = 0; flow < m_flows.size(); ++flow) {
    const std::uint32_t a = slots.free(sender(flow), m_spine[flow]);
    const std::uint32_t b = slots.free(receiver(flow), m_spine[flow]);
    if (a == none || b == none)
      homeless.push_back(flow);
    else
      slots.insert(flow, a, b);
  }
  for (const std::uint32_t flow : homeless) {
    std::pair<std::uint32_t, std::uint32_t> best{none, none};
    double least = 0;
    for (std::uint32_t s = 0; s < spines; ++s) {
      const std::uint32_t a = slots.free(sender(flow), s);
      const std::uint32_t b = slots.free(receiver(flow), s);
      if (a == none || b == none) continue;
      const std::size_t most = std::max(slots.used(sender(flow), s), slots.used(receiver(flow), s));
      const double time = static_cast<double>(most + 1) / m_share[s];
      if (best.first != none && time >= least) continue;
      best = {a, b};
      least = time;
    }
    std::size_t shortest = best.first == none ? m_flows.size() + 1 : 0;
    for (std::uint32_t i = 0; i < spines * spines; ++i) {
      const std::uint32_t a = slots.free(sender(flow), i / spines);
      const std::uint32_t b = slots.free(receiver(flow), i % spines);
      if (shortest == 0 || a == none || b == none) continue;
      const std::size_t length = slots.path(flow, a, b).size() + 1;
      if (length >= shortest) continue;
      shortest = length;
      best = {a, b};
    }
    slots.insert(flow, best.first, best.second);
  }
  for (std::uint32_t flow = 0; flow < m_flows.size(); ++flow) set(flow, slots.spine(flow));
}

HEDDLE_INLINE std::uint32_t PathPlan::cap(std::size_t end) const {
  const auto alive = m_share.size() - static_cast<std::size_t>(std::ranges::count(m_share, 0.0));
  return static_cast<std::uint32_t>((m_at[end].size() + alive - 1) / alive);
}

HEDDLE_INLINE void PathPlan::set(std::uint32_t flow, std::uint32_t spine) {
  for (const std::size_t end : {sender(flow), receiver(flow)}) {
    if (m_spine[flow] != none) --load(end, m_spine[flow]);
    if (spine != none) ++load(end, spine);
  }
  m_spine[flow] = spine;
}

HEDDLE_INLINE void PathPlan::place(std::uint32_t flow) {
  const std::uint32_t spines = spine_count();
  std::uint32_t best = none;
  std::uint32_t least = none;
  for (std::uint32_t s = 0; s < spines; ++s) {
    if (!has_room(sender(flow), s) || !has_room(receiver(flow), s)) continue;
    const std::uint32_t sum = load(sender(flow), s) + load(receiver(flow), s);
    if (sum < least) {
      best = s;
      least = sum;
    }
  }
  if (best != none) return set(flow, best);
  // One spine has room at the sender, another at the receiver: of all such pairs, the one for
  // which fewest flows change places.
  std::pair<std::uint32_t, std::uint32_t> chosen;
  std::size_t fewest = m_flows.size() + 1;
  for (std::uint32_t a = 0; a < spines; ++a) {
    for (std::uint32_t b = 0; b < spines; ++b) {
      if (!has_room(sender(flow), a) || !has_room(receiver(flow), b)) continue;
      const std::vector<std::uint32_t> path = exchange(flow, a, b);
      if (path.size() < fewest) {
        fewest = path.size();
        chosen = {a, b};
      }
      for (const std::uint32_t changed : path) set(changed, m_spine[changed] == a ? b : a);
      set(flow, none);
    }
  }
  (void)exchange(flow, chosen.first, chosen.second);
}

HEDDLE_INLINE std::vector<std::uint32_t> PathPlan::exchange(std::uint32_t flow, std::uint32_t a,
                                                            std::uint32_t b) {
  std::vector<std::uint32_t> path{flow};
  set(flow, a);
  std::size_t end = receiver(flow);
  for (std::uint32_t full = a; load(end, full) > cap(end);) {
    const std::uint32_t next = *std::ranges::find_if(m_at[end], [&](std::uint32_t other) {
      return m_spine[other] == full && std::ranges::find(path, other) == path.end();
    });
    path.push_back(next);
    full = full == a ? b : a;
    set(next, full);
    end = end == sender(next) ? receiver(next) : sender(next);
  }
  return path;
}

HEDDLE_INLINE PortFlows over_ports(const std::vector<Flow>& cards,
                                   std::span<const std::array<std::uint32_t, 2>> leaves) {
  PortFlows result;
  for (const Flow& flow : cards)
    expects(flow.from < leaves.size() && flow.to < leaves.size(), [&] {
      return ErrorInfo{"heddle::systems::over_ports", "a flow names a card without leaves",
                       text("card ", std::max(flow.from, flow.to), " of ", leaves.size())};
    });
  // Ports are to cards what spines are to leaves.
  const PathPlan ports(cards, 2);
  for (std::size_t f = 0; f < cards.size(); ++f) {
    const std::uint32_t port = ports.spine(f);
    result.port.push_back(port);
    result.flows.push_back({leaves[cards[f].from][port], leaves[cards[f].to][port]});
  }
  return result;
}

HEDDLE_INLINE std::vector<double> spine_shares(const PathPlan& plan, const Monitor& monitor,
                                               std::span<const FlowRanks> ends,
                                               std::span<const Finding> hangs) {
  expects(ends.size() == plan.spines().size(), [&] {
    return ErrorInfo{"heddle::systems::spine_shares",
                     "the flows with ranks are not those of the plan",
                     text("ranks of ", ends.size(), " flows, a plan of ", plan.spines().size()),
                     "give the two ranks of every flow, in the order of the plan"};
  });
  std::vector<Finding> found = monitor.findings();
  const auto excused = [&](const FlowRanks& flow) {
    return std::ranges::any_of(found, [&](const Finding& finding) {
      const Finding::Syndrome cause = finding.causes.front();
      return (cause == Finding::Syndrome::slow_sender && finding.rank == flow.from) ||
             (cause == Finding::Syndrome::slow_receiver && finding.rank == flow.to);
    });
  };
  std::vector<std::vector<double>> times(plan.spine_count());
  for (std::size_t f = 0; f < ends.size(); ++f)
    if (const auto seen = monitor.transfer(ends[f].from, ends[f].to); seen && !excused(ends[f]))
      times[plan.spine(f)].push_back(*seen);
  const double usual = monitor.usual_transfer();
  const double slow = monitor.transfer_threshold() * usual;
  std::vector<double> shares(times.size(), 1.0);
  for (std::size_t s = 0; s < times.size(); ++s) {
    std::ranges::sort(times[s]);
    const std::size_t count = times[s].size();
    if (count > 0 && times[s][(count - 1) / 4] > slow)
      shares[s] = usual / times[s][(count - 1) / 2];
  }
  for (const Finding& hang : hangs) {
    if (hang.causes != std::vector{Finding::Syndrome::hang_in_communication}) continue;
    for (std::size_t f = 0; f < ends.size(); ++f)
      if (ends[f].from == hang.rank && ends[f].to == hang.peer) shares[plan.spine(f)] = 0;
  }
  return shares;
}

HEDDLE_INLINE std::vector<std::uint32_t> hash_paths(std::size_t flows, int spines,
                                                    std::uint64_t seed) {
  expects(spines >= 1, [&] {
    return ErrorInfo{"heddle::systems::hash_paths",
                     "flows between leaf switches need at least one spine switch",
                     text(spines, " spines")};
  });
  const Random random(seed, "heddle::plan::hash_paths");  // results depend on the name
  std::vector<std::uint32_t> paths(flows);
  for (std::size_t flow = 0; flow < flows; ++flow)
    paths[flow] =
        static_cast<std::uint32_t>(random.below(flow, static_cast<std::uint64_t>(spines)));
  return paths;
}

}  // namespace heddle::inline v0::systems
