// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// network(): builds a Machine from links that were measured one pair at a time.

#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>
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

/// Returns the network() of ranks with different devices. @throws contract_error as above, or if
/// the number of devices is not that of the ranks.
[[nodiscard]] Machine network_of(const std::vector<std::vector<Link>>& links,
                                 std::span<const Device> devices);

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/machine/network.ipp>
#endif
