// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// split_flows(): equal flows over equal links, so that all links carry the same, exactly; and
/// over_uplinks(), which does that to the messages of a Schedule.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::plan {

/// How r flows are cut for s links, each of which then carries r / s of a flow; g is the greatest
/// common divisor of r and s.
enum class SplitRule : std::uint8_t {
  equal_pieces,       ///< all flows in s/g equal pieces: r s/g pieces
  whole_flows_first,  ///< whole flows while all links can have one more, the remaining q = r mod s
                      ///< in equal pieces: r - q + q s/gcd(q, s) pieces
  fill_in_turn,       ///< one link after the other is filled: r + s - g pieces, the fewest
};

/// Units [first, first + count) of a flow, on one link. A flow has as many units as there are
/// links, so that loads are whole numbers.
struct FlowPiece {
  std::uint32_t flow = 0;   ///< from 0 to r - 1
  std::uint32_t link = 0;   ///< from 0 to s - 1
  std::uint32_t first = 0;  ///< the first unit
  std::uint32_t count = 0;  ///< number of units

  friend bool operator==(const FlowPiece&, const FlowPiece&) = default;
};

/// Cuts `flows` equal flows for `links` equal links: in order of flows, and of units within one.
/// Every link carries `flows` units, which is r f / s for flows of size f, what ideal spraying of
/// packets reaches. Equal pieces are the rule of Ethereal (Addanki et al., 2024).
/// @throws contract_error for no links, or fewer than no flows.
[[nodiscard]] std::vector<FlowPiece> split_flows(int flows, int links, SplitRule rule);

/// What over_uplinks() goes by.
struct UplinkOptions {
  int ranks = 1;  ///< in a group: a leaf's
  int links = 1;  ///< ways out of each group: lane l takes number l % links, as on a Machine
  SplitRule rule = SplitRule::fill_in_turn;  ///< how flows are cut
};

/// `schedule` with the messages that leave a group divided over its uplinks: all that leave one
/// group are its flows, taken to be under way at the same time, numbered by how far on the other
/// group is and then by their place in the list. What every group sends alike to the others also
/// divides the ways into each group exactly.
/// @throws contract_error for no ranks or links, or messages of unequal size that leave one group.
[[nodiscard]] Schedule over_uplinks(const Schedule& schedule, const UplinkOptions& options);

}  // namespace heddle::inline v0::plan

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/flow_splitting.ipp>
#endif
