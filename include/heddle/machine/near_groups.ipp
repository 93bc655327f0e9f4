// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of near_groups.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/near_groups.hpp>

namespace heddle::inline v0 {

namespace impl {

/// A partition: the group of each rank, numbered from 0 in the order of their first ranks.
using RankGroups = std::vector<std::uint32_t>;

/// Returns the number of groups.
[[nodiscard]] inline std::size_t count_of(const RankGroups& groups) {
  return groups.empty() ? 0 : std::ranges::max(groups) + std::size_t{1};
}

/// Returns whether all groups have one size and consecutive ranks.
[[nodiscard]] inline bool are_alike(const RankGroups& groups) {
  const std::size_t size = groups.size() / count_of(groups);
  for (std::size_t r = 0; r < groups.size(); ++r)
    if (groups[r] != r / size) return false;
  return true;
}

/// Returns whether each group of `small` lies in a group of `large`, and `large` has fewer groups.
[[nodiscard]] inline bool lie_in(const RankGroups& small, const RankGroups& large) {
  std::vector<std::uint32_t> in(count_of(small));
  for (std::size_t r = 0; r < small.size(); ++r) in[small[r]] = large[r];
  for (std::size_t r = 0; r < small.size(); ++r)
    if (in[small[r]] != large[r]) return false;
  return count_of(large) < count_of(small);
}

/// Returns all partitions in which a message of `bytes` bytes takes less time over each link inside
/// of groups than over any link between them, the smallest groups first. If the groups are not
/// alike, it must take less than half of that time.
[[nodiscard]] inline std::vector<RankGroups> linked_groups(const Machine& machine, int ranks,
                                                           Bytes bytes) {
  std::vector<std::tuple<Seconds, std::size_t, std::size_t>> links;
  RankGroups first;  // of each rank, the first rank of its group
  for (int from = 0; from < ranks; ++from) {
    first.push_back(static_cast<std::uint32_t>(from));
    for (int to = 0; to < ranks; ++to) {
      if (from == to) continue;
      const Link& link = machine.link(Rank{from}, Rank{to});
      links.emplace_back(link.latency + link.occupancy(bytes), from, to);
    }
  }
  std::ranges::sort(links);
  std::vector<RankGroups> found;
  std::size_t inside = 0;  // links with both ends in one group
  for (std::size_t i = 0; i + 1 < links.size(); ++i) {
    const auto [time, from, to] = links[i];
    const std::uint32_t one = std::min(first[from], first[to]);
    const std::uint32_t other = std::max(first[from], first[to]);
    if (one != other) {
      const auto pairs = std::ranges::count(first, one) * std::ranges::count(first, other);
      inside += 2 * static_cast<std::size_t>(pairs);
      std::ranges::replace(first, other, one);
    }
    const Seconds between = std::get<0>(links[i + 1]);
    if (inside != i + 1 || time >= between) continue;
    RankGroups groups;
    std::uint32_t count = 0;
    for (std::size_t r = 0; r < first.size(); ++r)
      groups.push_back(first[r] == r ? count++ : groups[first[r]]);
    if (2 * time < between || are_alike(groups)) found.push_back(std::move(groups));
  }
  return found;
}

}  // namespace impl

HEDDLE_INLINE std::vector<std::vector<std::uint32_t>> near_groups(const Machine& machine, int ranks,
                                                                  Bytes bytes) {
  expects(ranks >= 0 && ranks <= machine.ranks(), [&] {
    return ErrorInfo{"heddle::near_groups", "the machine does not have so many ranks",
                     text(ranks, " of ", machine.ranks())};
  });
  std::vector<impl::RankGroups> all;
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    impl::RankGroups& groups = all.emplace_back();
    for (int r = 0; r < ranks; ++r)
      groups.push_back(static_cast<std::uint32_t>(machine.group(l, Rank{r})));
  }
  std::ranges::move(impl::linked_groups(machine, ranks, bytes), std::back_inserter(all));
  std::ranges::stable_sort(all, std::ranges::greater{}, &impl::count_of);
  std::vector<impl::RankGroups> found;
  for (impl::RankGroups& groups : all) {
    const std::size_t count = impl::count_of(groups);
    if (count > 1 && count < groups.size() && (found.empty() || impl::lie_in(found.back(), groups)))
      found.push_back(std::move(groups));
  }
  return found;
}

}  // namespace heddle::inline v0
