// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What breadth-first searches of other libraries share: a symmetric graph without loops, and the
/// parents that a search returns.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <heddle/systems/graph_load_balance/graph.hpp>

namespace searches {

/// Searches from a root, and returns the parent of each vertex; a negative number if no path leads
/// there. Only the search itself is within `timed`.
using Search = std::function<std::vector<std::int32_t>(
    std::int32_t root, const std::function<void(const std::function<void()>&)>& timed)>;

/// The searches that a library has; without a value if it is not installed.
struct Peer {
  Search top_down{}, both{};
};

std::optional<Peer> graphblas(const heddle::systems::Graph& graph);
std::optional<Peer> gapbs(const heddle::systems::Graph& graph);

}  // namespace searches
