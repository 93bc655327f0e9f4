// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// join(): makes one Machine of several, such as sites that one line connects.

#include <optional>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {

/// Returns one Machine of all ranks of `machines`, numbered one machine after another. Two ranks of
/// different machines are joined by `link`. If `line` is given, all messages from one machine to
/// another one share it; each direction between two machines has a line of its own.
///
/// Each machine keeps its devices, links, ports, lines and levels. Machines may have any numbers of
/// ranks and levels. The groups of the joined machine's last level but one are the machines, and
/// the last level, "joined", holds all ranks.
///
///     Machine sites = join({near, far}, {20e-3, 1.25e8}, Shared{"line", 1.25e8});
///
/// @throws contract_error if there are no machines, or if `link` or the bandwidth of `line` is
///         invalid.
[[nodiscard]] Machine join(const std::vector<Machine>& machines, Link link,
                           const std::optional<Shared>& line = {});

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_MACHINE
#include <heddle/machine/join.ipp>
#endif
