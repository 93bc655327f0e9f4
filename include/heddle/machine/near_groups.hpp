// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// near_groups(): which ranks of a Machine are near each other.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0 {
/// The groups of ranks that are near each other, of the first `ranks` ranks of `machine`: the group
/// of each rank, numbered from 0 in the order of their first ranks. Several such where they nest,
/// the smallest groups first; in each there are more than one group, and fewer than ranks. They are
/// those of a level of the machine, or such that a message of `bytes` takes less time over each
/// link inside of groups than over any between them. Groups that are not of one size, or whose
/// ranks do not follow one another, must be twice as near: noise makes such groups of ranks that
/// are alike.
[[nodiscard]] std::vector<std::vector<std::uint32_t>> near_groups(const Machine& machine, int ranks,
                                                                  Bytes bytes);

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/machine/near_groups.ipp>
#endif
