// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// network(): builds a Machine from links that were measured one pair at a time. connect(): gives
/// the nodes of a Machine the links of the networks that they are on.

#include <span>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

/// Returns a Machine of ranks on a network, each with the device `device`. `links[from][to]` is the
/// link between two ranks; a rank's link to itself is used by moves within it. Each rank has one
/// outgoing and one incoming port, shared by all of its messages in that direction. A port is as
/// fast as the fastest link of the rank in that direction, because a rank that is alone on the
/// network reaches no peer at a higher rate.
/// @throws contract_error if there are no ranks, if a link is missing for an ordered pair, or if a
///         latency or bandwidth is invalid.
[[nodiscard]] Machine network(const std::vector<std::vector<Link>>& links, Device device);

namespace impl {

/// Returns the network() of ranks with different devices. @throws contract_error as above, or if
/// the number of devices is not that of the ranks.
[[nodiscard]] Machine network_of(const std::vector<std::vector<Link>>& links,
                                 std::span<const Device> devices);

}  // namespace impl

/// A kind of network, such as the InfiniBand of some nodes: any two of its ranks reach each other.
struct NetworkKind {
  std::string name;         ///< shown to people
  Link link;                ///< between two ranks in different nodes
  std::vector<Rank> ranks;  ///< the ranks that are on the network
};

/// Returns a Machine whose nodes talk over the networks that they have in common. The link of two
/// ranks in different nodes is the one of the fastest network that both are on. Nodes are the
/// groups of the smallest level that has groups of several ranks, unless these have all ranks.
/// Otherwise they are single ranks. Links within a node stay.
///
///     const std::vector<Rank> all = {0, 1, 2, 3};
///     Machine mixed = connect(nodes, {{"InfiniBand", {5e-6, 25e9}, {0, 1}},
///                                     {"Ethernet", {20e-6, 3e9}, all}});
///
/// @throws contract_error if a network names a rank that does not exist or has an invalid link, or
///         if no network joins two ranks of different nodes. The error names both devices.
[[nodiscard]] Machine connect(Machine machine, const std::vector<NetworkKind>& networks);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_MACHINE
#include <heddle/machine/network.ipp>
#endif
