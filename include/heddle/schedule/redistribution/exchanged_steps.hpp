// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// exchanged_steps(): steps of a computation on parts of a field, with exchanges between them. A
/// step may use data that is several steps old.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/redistribution/block_exchange.hpp>
#include <heddle/schedule/redistribution/staleness.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns the Schedule of `steps` steps on every rank. Step t of rank r is an F of stage r and
/// item t. It updates the rank's field, and reads the data that other ranks sent after the step
/// before, or `staleness` steps earlier. All ranks exchange between any two steps, whatever the age
/// of the data that is used: a cast packs, a move sends. Each rank has a buffer "field", which is
/// not transient, and buffers "packed" and "arrived", with a part for each message of each exchange
/// in flight. This is the pattern of DistriFusion (Li et al., 2024).
/// @throws contract_error if `steps` is negative, if the exchange has several steps or merges, or
///         if expect_valid() rejects `staleness`.
[[nodiscard]] Schedule exchanged_steps(const BlockExchange& exchange, int steps,
                                       const Staleness& staleness = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_REDISTRIBUTION
#include <heddle/schedule/redistribution/exchanged_steps.ipp>
#endif
