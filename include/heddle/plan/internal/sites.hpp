// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The ranks of a machine in groups: by kind of device, and by site.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0::plan::impl {

/// Returns the capacity of a device's first memory, or 0 if it is unknown.
[[nodiscard]] inline Bytes capacity_of(const Device& device) {
  return device.memories.empty() ? Bytes{0} : device.memories[0].capacity;
}

/// Returns true if `a` has more memory than `b`. An unknown capacity is unlimited.
[[nodiscard]] inline bool roomier(const Device& a, const Device& b) {
  const Bytes here = capacity_of(a), there = capacity_of(b);
  return there != 0 && (here == 0 || here > there);
}

/// Returns whether a profile gives two devices the same times.
[[nodiscard]] inline bool same_kind(const Device& a, const Device& b) {
  return a.name == b.name && a.speed == b.speed;
}

/// Returns the ranks of each kind of device, those with more memory first and otherwise in
/// ascending order. Kinds are in the order of their first ranks. Memory makes no kinds of its own,
/// so that ranks whose memories differ can be replicas.
[[nodiscard]] inline std::vector<std::vector<Rank>> device_kinds(const Machine& machine) {
  std::vector<std::vector<Rank>> kinds;
  for (int r = 0; r < machine.ranks(); ++r) {
    const Rank rank{r};
    const auto kind = std::ranges::find_if(kinds, [&](const std::vector<Rank>& ranks) {
      return same_kind(machine.device(ranks[0]), machine.device(rank));
    });
    if (kind == kinds.end())
      kinds.push_back({rank});
    else
      kind->push_back(rank);
  }
  for (std::vector<Rank>& kind : kinds)
    std::ranges::stable_sort(
        kind, [&](Rank a, Rank b) { return roomier(machine.device(a), machine.device(b)); });
  return kinds;
}

/// Returns the ranks of each site. Sites are the groups of the last level but one. If there is no
/// such level, or it is the first one and has groups of one rank, sites are the kinds of device,
/// because a first level of single ranks describes the ranks themselves.
[[nodiscard]] inline std::vector<std::vector<Rank>> sites_of(const Machine& machine) {
  const std::size_t levels = machine.levels().size();
  std::vector<std::vector<Rank>> sites;
  if (levels >= 2)
    for (int r = 0; r < machine.ranks(); ++r) {
      const std::size_t group = machine.group(levels - 2, Rank{r});
      if (group >= sites.size()) sites.resize(group + 1);
      sites[group].push_back(Rank{r});
    }
  const bool grouped =
      std::ranges::any_of(sites, [](const std::vector<Rank>& site) { return site.size() > 1; });
  return grouped || levels > 2 ? sites : device_kinds(machine);
}

/// Returns the site of every rank.
[[nodiscard]] inline std::vector<std::size_t> site_by_rank(
    const std::vector<std::vector<Rank>>& sites, int ranks) {
  std::vector<std::size_t> site(static_cast<std::size_t>(ranks), 0);
  for (std::size_t s = 0; s < sites.size(); ++s)
    for (const Rank rank : sites[s]) site[+rank] = s;
  return site;
}

/// Returns whether nothing changes if two sites change places, rank by rank.
[[nodiscard]] inline bool interchangeable(const Machine& machine, std::span<const Rank> a,
                                          std::span<const Rank> b) {
  if (a.size() != b.size()) return false;
  std::vector<Rank> swapped;
  for (int r = 0; r < machine.ranks(); ++r) swapped.push_back(Rank{r});
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Device &here = machine.device(a[i]), &there = machine.device(b[i]);
    if (!same_kind(here, there) || capacity_of(here) != capacity_of(there)) return false;
    swapped[+a[i]] = b[i];
    swapped[+b[i]] = a[i];
  }
  for (std::size_t i = 0; i < a.size(); ++i)
    for (int r = 0; r < machine.ranks(); ++r) {
      const Rank other{r};
      if (!(machine.link(a[i], other) == machine.link(b[i], swapped[+other]))) return false;
      if (!(machine.link(other, a[i]) == machine.link(swapped[+other], b[i]))) return false;
    }
  return true;
}

}  // namespace heddle::inline v0::plan::impl
