// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// split_flows(): equal flows over equal links, so that all links carry the same, exactly; and
/// over_uplinks(), which does that to the messages of a Schedule.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/pass/split_moves.hpp>

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
[[nodiscard]] inline std::vector<FlowPiece> split_flows(int flows, int links, SplitRule rule) {
  expects(flows >= 0 && links >= 1, [&] {
    return Complaint{"heddle::plan::split_flows", "there is at least one link",
                     text(flows, " flows over ", links, " links")};
  });
  const auto r = static_cast<std::uint32_t>(flows);
  const auto s = static_cast<std::uint32_t>(links);
  std::vector<FlowPiece> pieces;
  if (rule == SplitRule::fill_in_turn) {
    // All units in a row: a flow ends at every s-th, a link is full at every r-th.
    const std::uint64_t all = std::uint64_t{r} * s;
    for (std::uint64_t at = 0; at < all;) {
      const auto flow = static_cast<std::uint32_t>(at / s);
      const auto link = static_cast<std::uint32_t>(at / r);
      const std::uint64_t end =
          std::min((flow + std::uint64_t{1}) * s, (link + std::uint64_t{1}) * r);
      pieces.push_back(
          {flow, link, static_cast<std::uint32_t>(at % s), static_cast<std::uint32_t>(end - at)});
      at = end;
    }
    return pieces;
  }
  const std::uint32_t whole = rule == SplitRule::whole_flows_first ? r - r % s : 0;
  for (std::uint32_t flow = 0; flow < whole; ++flow) pieces.push_back({flow, flow % s, 0, s});
  const std::uint32_t size = std::gcd(r - whole, s);
  for (std::uint32_t flow = whole; flow < r; ++flow)
    for (std::uint32_t first = 0; first < s; first += size) {
      const std::uint32_t link = ((flow - whole) * (s / size) + first / size) % s;
      pieces.push_back({flow, link, first, size});
    }
  return pieces;
}

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
[[nodiscard]] inline Schedule over_uplinks(const Schedule& schedule, const UplinkOptions& options) {
  constexpr const char* where = "heddle::plan::over_uplinks";
  expects(options.ranks >= 1 && options.links >= 1, [&] {
    return Complaint{where, "a group has at least one rank and one link",
                     text(options.ranks, " ranks, ", options.links, " links")};
  });
  const auto size = static_cast<std::size_t>(options.ranks);
  const std::size_t groups = (static_cast<std::size_t>(schedule.ranks()) + size - 1) / size;
  struct Leaving {
    std::size_t distance;
    ActionId id;
  };
  std::vector<std::vector<Leaving>> flows(groups);
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const ActionId id{i};
    if (schedule[id].kind != Kind::move) continue;
    const Queue& queue = schedule[schedule[id].queue];
    const std::size_t from = +queue.from / size;
    const std::size_t to = +queue.to / size;
    if (from != to) flows[from].push_back({(to + groups - from) % groups, id});
  }
  std::vector<std::vector<schedule::MovePiece>> pieces(schedule.size());
  for (std::vector<Leaving>& leaving : flows) {
    if (leaving.empty()) continue;
    std::ranges::stable_sort(leaving, {}, &Leaving::distance);
    const auto bytes_of = [&](ActionId id) { return schedule.bytes(schedule.uses(id)[0]); };
    for (const Leaving& flow : leaving)
      expects(bytes_of(flow.id) == bytes_of(leaving[0].id), [&] {
        return Complaint{where, "the flows of a group have one size",
                         text(bytes_of(flow.id), " and ", bytes_of(leaving[0].id), " bytes")};
      });
    for (const FlowPiece& piece :
         split_flows(static_cast<int>(leaving.size()), options.links, options.rule))
      pieces[+leaving[piece.flow].id].push_back({Lane{piece.link}, piece.first, piece.count});
  }
  return schedule::split_moves(schedule, static_cast<std::uint32_t>(options.links),
                               [&](ActionId id) { return pieces[+id]; });
}

}  // namespace heddle::inline v0::plan
