// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// near_groups(): finds groups of ranks with fast links among them.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {
/// Finds groups of near ranks among the first `ranks` ranks of `machine`. Returns one partition for
/// each level of nested groups, the smallest groups first. A partition holds the group of each
/// rank; groups are numbered from 0 in the order of their first ranks. Each partition has more than
/// one group, and fewer groups than ranks.
///
/// The groups are those of a level of the machine, or follow from its links: a message of `bytes`
/// bytes takes less time over every link inside of a group than over any link between groups. If
/// the groups differ in size, or their ranks are not consecutive, it must take less than half of
/// that time, because noise in measured links makes such groups among equal ranks.
/// @throws contract_error if `ranks` is below 0 or above the ranks of the machine.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> near_groups(const Machine& machine, int ranks,
                                                                  Bytes bytes);

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_MACHINE
#include <heddle/machine/near_groups.ipp>
#endif
