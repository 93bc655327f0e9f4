// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// network(): the Machine of links that were measured one pair at a time.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

/// Ranks on a network, joined by links of these latencies and bandwidths: `links[from][to]`; a
/// rank's link to itself is for moves within it. Each rank has a port, which all messages that
/// leave it share, and one for all that enter it, as fast as the fastest of its links: alone on
/// the network it reaches nobody at a higher rate.
/// @throws contract_error for no ranks, not a link for every ordered pair, or one of nonsense.
[[nodiscard]] inline Machine network(const std::vector<std::vector<Link>>& links, Device device) {
  const std::size_t ranks = links.size();
  for (const auto& row : links)
    expects(row.size() == ranks, [&] {
      return Complaint{"heddle::network", "there is a link for every ordered pair of ranks",
                       text(row.size(), " links of a rank, of ", ranks, " ranks")};
    });
  Machine machine = Machine::hierarchical(
      std::vector<Device>(ranks, std::move(device)),
      {{.name = "port", .ranks = 1}, {.name = "network", .ranks = static_cast<int>(ranks)}});
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Ports ports{.out = 0, .in = 0};
    for (std::size_t peer = 0; peer < ranks; ++peer) {
      machine.set_link(Rank{rank}, Rank{peer}, links[rank][peer]);
      if (peer == rank) continue;
      ports.out = std::max(ports.out, links[rank][peer].bandwidth);
      ports.in = std::max(ports.in, links[peer][rank].bandwidth);
    }
    if (ranks > 1) machine.set_ports(0, rank, ports);
  }
  return machine;
}

}  // namespace heddle::inline v0
