// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of network.hpp.

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine/network.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Machine network(const std::vector<std::vector<Link>>& links, Device device) {
  return network_of(links, std::vector<Device>(links.size(), std::move(device)));
}

HEDDLE_INLINE Machine network_of(const std::vector<std::vector<Link>>& links,
                                 std::span<const Device> devices) {
  const std::size_t ranks = links.size();
  for (const auto& row : links)
    expects(row.size() == ranks, [&] {
      return ErrorInfo{"heddle::network", "a link is missing for an ordered pair of ranks",
                       text("expected ", ranks, " links in each row, got ", row.size())};
    });
  expects(devices.size() == ranks, [&] {
    return ErrorInfo{"heddle::network_of", "every rank needs its device",
                     text("expected ", ranks, " devices, got ", devices.size())};
  });
  Machine machine = Machine::hierarchical(
      std::vector<Device>(devices.begin(), devices.end()),
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
