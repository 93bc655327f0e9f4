// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Proves that an attention Schedule computes every visible pair of queries and keys once.

#include <string>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the first difference between what `schedule` leaves and the attention of `form`, or an
/// empty string if there is none. The list runs on symbols: a block of keys is a name that travels,
/// and a state is the sum of the (query, key) blocks that it has met. So the result holds for all
/// data. The buffers must have the roles that ring_attention(), rsa() or token_ring() gives them.
///
/// Every action must read the blocks that its stage and its item name. At the end, the state or the
/// output of every query must have met each visible key once, and the gradients must be the sums
/// over the same pairs. The order in which blocks are met is free. In the lists of this library, a
/// query meets its own block first and then those that arrive, one step after another.
///
/// The time is linear in the actions and quadratic in the ranks, because each pair of blocks is
/// looked for.
/// @throws contract_error if the ranks or the buffers of `schedule` are not those of `form`.
[[nodiscard]] std::string why_not_equivalent(const Schedule& schedule, const AttentionForm& form);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/proof/why_not_attention.ipp>
#endif
