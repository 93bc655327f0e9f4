// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// copy_out(): a rank with private memory copies what other ranks need to memory that they can
/// read. Apply it before share_memory() if data may lie in any memory.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns `schedule` with a transient buffer of role "outbox" beside every persistent buffer that
/// is sent within a domain. `domains` has the number of the domain of every rank. The owner of the
/// buffer copies what it sends to the outbox, in local lane 1. One copy serves all receivers while
/// the value stays the same.
///
/// share_memory() of the result touches no persistent memory of other ranks. fold() makes the
/// outboxes small if their parts have one size, so that they stay in the cache.
/// @throws contract_error if `domains` does not have one number per rank.
[[nodiscard]] Schedule copy_out(const Schedule& schedule,
                                const std::vector<std::uint32_t>& domains);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/copy_out.ipp>
#endif
