// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// token_ring(): sends queries around a ring, and returns partial results to their owners (Wang et
/// al., "TokenRing: An Efficient Parallelism Framework for Infinite-Context LLMs via Bidirectional
/// Communication", 2024).

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns a Schedule in which every rank keeps its keys and values, and queries travel around a
/// ring. In step s, rank r computes the attention of the queries of rank r - s to its own keys. It
/// sends these queries to rank r + 1, and sends the resulting state to the owner of the queries,
/// which joins it to its own state. This takes P - 1 moves of 1 unit and up to P - 1 moves of 1 +
/// 2 H/d units. A single rank only computes its own block.
///
/// If every pair of ranks has a private link, the busiest link carries P + 2 H/d units. For
/// ring_attention() this is 2 (P - 1) with one way and P - 1 with two ways. If each rank has only
/// one port, token_ring() has no advantage.
///
/// Each rank has these buffers, with one part per piece. Persistent: "queries", "keys_values" (as
/// in ring_attention()) and "state". Transient: "ring" (queries that arrive), "partial" (states to
/// return) and "arrived" (states that have returned). A part of a state is one record. An action F
/// of stage q and item k has the uses [queries or ring, keys_values, state or partial] and runs on
/// rank k. A combine action joins "arrived" into "state"; see combine_records(). Queries use lane
/// 0, and states use lane 1.
///
/// @throws contract_error in the cases of AttentionForm::expect_valid(), if `form.ways` is 2, and
///         if `form.backward` is true, because no publication describes the backward pass.
[[nodiscard]] Schedule token_ring(const AttentionForm& form);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_ATTENTION
#include <heddle/schedule/attention/token_ring.ipp>
#endif
