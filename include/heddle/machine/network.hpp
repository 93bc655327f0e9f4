// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// network(): the Machine of links that were measured one pair at a time.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

/// Ranks on a network, joined by links of these latencies and bandwidths: `links[from][to]`; a
/// rank's link to itself is for moves within it. Each rank has a port, which all messages that
/// leave it share, and one for all that enter it, as fast as the fastest of its links: alone on
/// the network it reaches nobody at a higher rate.
/// @throws contract_error for no ranks, not a link for every ordered pair, or one of nonsense.
[[nodiscard]] Machine network(const std::vector<std::vector<Link>>& links, Device device);

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/machine/network.ipp>
#endif
