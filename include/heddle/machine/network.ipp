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
#include <heddle/machine/internal/expect_link.hpp>
#include <heddle/machine/internal/same_node.hpp>
#include <heddle/machine/network.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE Machine network(const std::vector<std::vector<Link>>& links, Device device) {
  return impl::network_of(links, std::vector<Device>(links.size(), std::move(device)));
}

namespace impl {

HEDDLE_INLINE Machine network_of(const std::vector<std::vector<Link>>& links,
                                 std::span<const Device> devices) {
  const std::size_t ranks = links.size();
  for (const auto& row : links)
    expects(row.size() == ranks, [&] {
      return ErrorInfo{"heddle::network", "a link is missing for an ordered pair of ranks",
                       text("expected ", ranks, " links in each row, got ", row.size())};
    });
  expects(devices.size() == ranks, [&] {
    return ErrorInfo{"heddle::network", "every rank needs its device",
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

}  // namespace impl

HEDDLE_INLINE Machine connect(Machine machine, const std::vector<NetworkKind>& networks) {
  constexpr const char* where = "heddle::connect";
  const auto ranks = static_cast<std::size_t>(machine.ranks());
  std::vector<std::vector<const NetworkKind*>> of_rank(ranks);  // fastest first
  std::vector<const NetworkKind*> fastest;
  for (const NetworkKind& each : networks) {
    impl::expect_link(each.link, where, [&] { return text("network '", each.name, "'"); });
    fastest.push_back(&each);
  }
  std::ranges::stable_sort(fastest, [](const NetworkKind* a, const NetworkKind* b) {
    return a->link.bandwidth > b->link.bandwidth;
  });
  for (const NetworkKind* const each : fastest)
    for (const Rank rank : each->ranks) {
      expects(+rank < ranks, [&] {
        return ErrorInfo{where, text("network '", each->name, "' joins a rank that does not exist"),
                         text("rank ", rank, " of ", ranks)};
      });
      of_rank[+rank].push_back(each);
    }
  for (std::size_t from = 0; from < ranks; ++from)
    for (std::size_t to = 0; to < ranks; ++to) {
      if (impl::same_node(machine, Rank{from}, Rank{to})) continue;
      const auto shared = std::ranges::find_first_of(of_rank[from], of_rank[to]);
      expects(shared != of_rank[from].end(), [&] {
        return ErrorInfo{
            where, "no kind of network joins two devices",
            text("rank ", from, " ('", machine.device(Rank{from}).name, "') and rank ", to, " ('",
                 machine.device(Rank{to}).name, "'), with ", networks.size(), " networks"),
            "add a network that both are on, such as the Ethernet of all nodes, or "
            "plan for each part alone"};
      });
      machine.set_link(Rank{from}, Rank{to}, (*shared)->link);
    }
  return machine;
}

}  // namespace heddle::inline v0
