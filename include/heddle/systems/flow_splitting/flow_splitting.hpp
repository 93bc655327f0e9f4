// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// split_flows(): divides equal flows over equal links so that all links carry exactly the same
/// load. over_uplinks() divides the messages of a Schedule in this way.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::systems {

/// The rule by which r flows are cut for s links. Each link then carries r / s of a flow. g is the
/// greatest common divisor of r and s.
enum class SplitRule : std::uint8_t {
  equal_pieces,       ///< cuts all flows into s/g equal pieces: r s/g pieces
  whole_flows_first,  ///< keeps whole flows while all links can have one more, and cuts the
                      ///< remaining q = r mod s into equal pieces: r - q + q s/gcd(q, s) pieces
  fill_in_turn,       ///< fills one link after another: r + s - g pieces, the fewest
};

/// The units [first, first + count) of a flow on one link. A flow has as many units as there are
/// links, so loads are whole numbers.
struct FlowPiece {
  std::uint32_t flow = 0;   ///< from 0 to r - 1
  std::uint32_t link = 0;   ///< from 0 to s - 1
  std::uint32_t first = 0;  ///< the first unit
  std::uint32_t count = 0;  ///< number of units

  friend bool operator==(const FlowPiece&, const FlowPiece&) = default;
};

/// Cuts `flows` equal flows for `links` equal links. Pieces are ordered by flow and by unit. Every
/// link carries `flows` units, which is r f / s for flows of size f, as with ideal packet spraying.
/// The rule of equal pieces is that of Ethereal (Addanki et al., 2024).
/// @throws contract_error if there are no links, or if the number of flows is negative.
[[nodiscard]] std::vector<FlowPiece> split_flows(int flows, int links, SplitRule rule);

/// The options of over_uplinks().
struct UplinkOptions {
  int ranks = 1;  ///< ranks of a group, which a leaf switch joins
  int links = 1;  ///< uplinks of each group; lane l takes uplink l % links, as on a Machine
  SplitRule rule = SplitRule::fill_in_turn;  ///< how flows are cut
};

/// Returns `schedule` with the messages that leave a group divided over its uplinks. All messages
/// that leave one group are its flows and are taken to be in flight at the same time. They are
/// numbered by the distance to the other group and then by their place in the list. If all groups
/// send alike, the downlinks of each group also carry exactly the same load.
/// @throws contract_error if there are no ranks or links, or if messages of unequal size leave one
/// group.
[[nodiscard]] Schedule over_uplinks(const Schedule& schedule, const UplinkOptions& options);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/flow_splitting/flow_splitting.ipp>
#endif
