// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// exchanged_steps(): steps of a computation on parts of a field, with an exchange between them
/// that may be used when it is some steps old.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/redistribution/freshness.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// The Schedule of `steps` steps on every rank, an F of stage r and item t, of which each updates
/// the rank's field and reads what the others sent: after the step before, or as many steps before
/// that as `freshness` says. Between two steps all ranks exchange, however old it will be when it
/// is used: a cast packs, a move sends. Buffers: of each rank its "field", which is not transient,
/// and "packed" and "arrived", with a part for each message and each exchange that is under way.
/// The pattern of DistriFusion (Li et al., 2024).
/// @throws contract_error for a negative number of steps, an exchange in several steps or one that
///         merges, or what expect_valid() refuses.
[[nodiscard]] Schedule exchanged_steps(const BlockExchange& exchange, int steps,
                                       const Freshness& freshness = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/redistribution/exchanged_steps.ipp>
#endif
