// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// same_node(): says which ranks of a Machine share a node.

#include <cstddef>

#include <heddle/core/index.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0::impl {

/// Returns true if two ranks are in one node. Nodes are the groups of the smallest level that has
/// groups of several ranks, unless that level has all ranks. Otherwise every rank is a node.
[[nodiscard]] inline bool same_node(const Machine& machine, Rank a, Rank b) {
  for (std::size_t l = 0; l + 1 < machine.levels().size(); ++l)
    if (machine.levels()[l].ranks > 1) return machine.group(l, a) == machine.group(l, b);
  return a == b;
}

}  // namespace heddle::inline v0::impl
