// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of path_plan.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/path_plan.hpp>

namespace heddle::inline v0::plan {

HEDDLE_INLINE PathPlan::PathPlan(std::vector<Flow> flows, int spines) : m_flows(std::move(flows)) {
  expects(spines >= 1, [&] {
    return ErrorInfo{"heddle::plan::PathPlan",
                     "flows between leaf switches need at least one spine switch",
                     text(spines, " spines")};
  });
  for (const Flow& flow : m_flows) m_leaves = std::max({m_leaves, flow.from + 1, flow.to + 1});
  m_alive.assign(static_cast<std::size_t>(spines), true);
  m_at.resize(2 * std::size_t{m_leaves});
  m_load.assign(m_at.size() * m_alive.size(), 0);
  m_spine.assign(m_flows.size(), none);
  for (std::uint32_t flow = 0; flow < m_flows.size(); ++flow)
    for (const std::size_t end : {sender(flow), receiver(flow)}) m_at[end].push_back(flow);
  for (std::uint32_t flow = 0; flow < m_flows.size(); ++flow) place(flow);
}

HEDDLE_INLINE std::uint32_t PathPlan::max_load() const noexcept {
  return m_load.empty() ? 0 : *std::ranges::max_element(m_load);
}

HEDDLE_INLINE std::vector<std::uint32_t> PathPlan::lose(std::uint32_t spine) {
  constexpr const char* where = "heddle::plan::PathPlan::lose";
  expects(spine < m_alive.size() && m_alive[spine], [&] {
    return ErrorInfo{where, "no such live spine", text("spine ", spine, " of ", m_alive.size())};
  });
  if (std::ranges::count(m_alive, true) == 1)
    throw infeasible({where, "the only live spine cannot be removed", text("spine ", spine)});
  const std::vector<std::uint32_t> before = m_spine;
  m_alive[spine] = false;
  std::vector<std::uint32_t> homeless;
  for (std::uint32_t flow = 0; flow < m_flows.size(); ++flow)
    if (m_spine[flow] == spine) homeless.push_back(flow);
  for (const std::uint32_t flow : homeless) set(flow, none);
  for (const std::uint32_t flow : homeless) place(flow);
  std::vector<std::uint32_t> moved;
  for (std::uint32_t flow = 0; flow < m_flows.size(); ++flow)
    if (m_spine[flow] != before[flow]) moved.push_back(flow);
  return moved;
}

HEDDLE_INLINE std::uint32_t PathPlan::cap(std::size_t end) const {
  const auto alive = static_cast<std::size_t>(std::ranges::count(m_alive, true));
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
  const auto spines = static_cast<std::uint32_t>(m_alive.size());
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

HEDDLE_INLINE std::vector<std::uint32_t> hash_paths(std::size_t flows, int spines,
                                                    std::uint64_t seed) {
  expects(spines >= 1, [&] {
    return ErrorInfo{"heddle::plan::hash_paths",
                     "flows between leaf switches need at least one spine switch",
                     text(spines, " spines")};
  });
  const Random random(seed, "heddle::plan::hash_paths");
  std::vector<std::uint32_t> paths(flows);
  for (std::size_t flow = 0; flow < flows; ++flow)
    paths[flow] =
        static_cast<std::uint32_t>(random.below(flow, static_cast<std::uint64_t>(spines)));
  return paths;
}

}  // namespace heddle::inline v0::plan
