// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// token_ring(): queries go around a ring, and partial results return to their owners (Wang et al.,
/// "TokenRing: An Efficient Parallelism Framework for Infinite-Context LLMs via Bidirectional
/// Communication", 2024).

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Every rank keeps its keys and values. In step s, rank r attends the queries of rank r - s to
/// them, passes these queries on to rank r + 1, and sends the state that results to their owner,
/// which joins it to its own: P - 1 moves of 1 unit, and up to P - 1 of 1 + H/d. One rank has its
/// own block only.
///
/// Between every two ranks a private link, the busiest link carries P + H/d units, against 2 (P -
/// 1) of ring_attention() and P - 1 of the same with two ways. If each rank has one port, nothing
/// is gained.
///
/// Buffers, for each rank, with a part for each piece: persistent "queries", "keys_values" (as in
/// ring_attention()) and "state"; transient "ring" (the queries that arrive), "partial" (the states
/// to return) and "arrived" (those that returned). A part of a state is one record. An action F of
/// stage q and item k has the uses [queries or ring, keys_values, state or partial] and runs on
/// rank k. A combine action joins "arrived" into "state": see combine_records(). Queries are in
/// lane 0, states in lane 1.
///
/// @throws contract_error as AttentionForm::expect_valid(), for two ways, and for `form.backward`,
///         which no publication describes.
[[nodiscard]] Schedule token_ring(const AttentionForm& form);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/attention/token_ring.ipp>
#endif
