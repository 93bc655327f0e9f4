// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of algorithms.hpp: scan.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/team.hpp>
#include <heddle/schedule/internal/cut_in_parts.hpp>

namespace heddle::inline v0::schedule::impl {

/// Appends a round in which each member from `first` + `distance` on receives the data of the
/// member `distance` before it, and merges it in front of its own.
inline void scan_at(Team& team, std::uint32_t first, std::uint32_t distance) {
  team.next_round();
  for (std::uint32_t m = first + distance; m < team.size(); ++m)
    team.merge_in_front(m - distance, m, 0, team.blocks());
}

/// Appends the scan of members `first`, first + 1, ..., in rounds of distance 1, 2, 4, ...
inline void scan_by_doubling(Team& team, std::uint32_t first) {
  for (std::uint32_t distance = 1; first + distance < team.size(); distance *= 2)
    scan_at(team, first, distance);
}

/// Appends the scan of members `first`, first + 1, ..., from each member to the next.
inline void scan_by_chain(Team& team, std::uint32_t first) {
  for (std::uint32_t m = first; m + 1 < team.size(); ++m) {
    team.next_round();
    team.merge_in_front(m, m + 1, 0, team.blocks());
  }
}

/// Appends an exclusive scan, which is the inclusive scan of the data of the previous members.
/// Member r sends its data to the scratch of member r + 1, which is member P + r + 1. The result is
/// copied from there. Member 0 stays unchanged.
template <void (*scan)(Team&, std::uint32_t)>
void scan_before(Team& team) {
  const std::uint32_t p = team.size();
  const auto all = [&](std::uint32_t member) { return Blocks{member, 0, team.blocks()}; };
  team.next_round();
  for (std::uint32_t r = 1; r < p; ++r) team.copy(all(r - 1), all(p + r));
  Team kept = team.moved_by(p);
  scan(kept, 1);
  team.next_round();
  for (std::uint32_t r = 1; r < p; ++r) team.copy(all(p + r), all(r));
}

HEDDLE_INLINE void recursive_doubling_inclusive_scan(Team& team) { scan_by_doubling(team, 0); }

HEDDLE_INLINE void chain_inclusive_scan(Team& team) { scan_by_chain(team, 0); }

HEDDLE_INLINE void recursive_doubling_exclusive_scan(Team& team) {
  scan_before<scan_by_doubling>(team);
}

HEDDLE_INLINE void chain_exclusive_scan(Team& team) { scan_before<scan_by_chain>(team); }

HEDDLE_INLINE void keep_scanned(Builder& builder, std::vector<Use>& members, std::uint32_t,
                                std::uint32_t) {
  const std::size_t p = members.size();
  members.push_back(members.front());  // rank 0 needs no scratch, but the list has an entry for it
  for (std::size_t r = 1; r < p; ++r) {
    const Use data = members[r];
    const Buffer whole = builder[data.buffer];
    Buffer buffer = whole;
    buffer.label = builder.label("scratch");
    buffer.transient = true;
    std::vector<Bytes> sizes;
    for (std::uint32_t part = data.first; part < data.first + data.count; ++part)
      sizes.push_back(part_bytes(whole, part, 1));
    heddle::impl::cut_in_parts(buffer, std::move(sizes), heddle::impl::is_bound(whole));
    members.push_back(update(builder.add_buffer(buffer), 0, buffer.parts));
  }
}

}  // namespace heddle::inline v0::schedule::impl
