// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// systems::group_decoding(): the Schedule of a decoder that produces tokens in groups.

#include <cstdint>
#include <span>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::systems {

/// Returns the Schedule of a decoder whose step k produces sizes[k] tokens on `ranks` ranks that
/// share their memory. Each rank decodes a part of every group: the parts differ by at most one
/// token, and ranks without a token have no action. A part is one user action. It reads the parts
/// of all earlier groups and writes a buffer of `per_token` bytes for each token. The item of an
/// action is the number of its group.
///
/// If a step takes a + b tokens / rank, the makespan is the sum over the groups of
/// a + b * ceil(size / ranks): the number of steps times a, if the weights of the model that a step
/// reads take most of its time.
/// @throws contract_error if a size, `ranks` or `per_token` is below 1.
[[nodiscard]] Schedule group_decoding(std::span<const std::int64_t> sizes, int ranks = 1,
                                      Bytes per_token = 1);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/lpd/group_decoding.ipp>
#endif
