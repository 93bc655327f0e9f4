// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of flow_splitting.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/pass/split_moves.hpp>
#include <heddle/systems/flow_splitting/flow_splitting.hpp>

namespace heddle::inline v0::systems {

HEDDLE_INLINE std::vector<FlowPiece> split_flows(int flows, int links, SplitRule rule) {
  expects(flows >= 0 && links >= 1, [&] {
    return ErrorInfo{"heddle::systems::split_flows",
                     "flows must be at least 0 and links at least 1",
                     text(flows, " flows over ", links, " links")};
  });
  heddle::impl::expect_enumerator("heddle::systems::split_flows", "rule", rule,
                                  SplitRule::fill_in_turn);
  const auto r = static_cast<std::uint32_t>(flows);
  const auto s = static_cast<std::uint32_t>(links);
  std::vector<FlowPiece> pieces;
  if (rule == SplitRule::fill_in_turn) {
    // All units are in a row. A flow ends at every s-th unit, and a link is full at every r-th.
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

HEDDLE_INLINE Schedule over_uplinks(const Schedule& schedule, const UplinkOptions& options) {
  constexpr const char* where = "heddle::systems::over_uplinks";
  expects(options.ranks >= 1 && options.links >= 1, [&] {
    return ErrorInfo{where, "a group needs at least one rank and one link",
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
        return ErrorInfo{where, "the flows of a group must have equal sizes",
                         text(bytes_of(flow.id), " and ", bytes_of(leaving[0].id), " bytes")};
      });
    for (const FlowPiece& piece :
         split_flows(static_cast<int>(leaving.size()), options.links, options.rule))
      pieces[+leaving[piece.flow].id].push_back({Lane{piece.link}, piece.first, piece.count});
  }
  return schedule::split_moves(schedule, static_cast<std::uint32_t>(options.links),
                               [&](ActionId id) { return pieces[+id]; });
}

}  // namespace heddle::inline v0::systems
