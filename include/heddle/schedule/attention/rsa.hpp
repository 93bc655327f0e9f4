// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// rsa(): ring self-attention in two passes (Li et al., "Sequence Parallelism: Long Sequence
/// Training from System Perspective", ACL 2023).

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Every rank keeps its queries and fills whole rows of scores. Pass 1 sends the keys around, then
/// each rank finishes its rows (the softmax), and pass 2 sends the values around: 2 (P - 1) moves
/// of 1 unit. The scores are P times those of one pair of blocks. As published, no rank sends V
/// before its rows are complete, so that the latencies of both passes add up: twice those of
/// ring_attention().
///
/// Buffers, for each rank: persistent "queries", "keys", "values" and "output" of one part,
/// "scores" with a part for each block of keys, and transient "ring_rows" (the blocks that arrive).
/// Actions F of stage q and item k have the uses [queries, keys or ring_rows, scores] in pass 1 and
/// [scores, values or ring_rows, output] in pass 2. An action USER between the two has the uses
/// [scores (each run of parts)..., values] and replaces scores by probabilities. It does not change
/// the values: to update them is what keeps a rank from sending them earlier.
///
/// With `form.backward` V goes around again, then K, and the gradients of the whole K and V, which
/// every rank has formed, are summed up by two ring reduce-scatters: 4 (P - 1) units in all.
/// Further buffers: persistent "output_grads" and "query_grads" of one part, "score_grads",
/// "key_grads" and "value_grads" with a part for each block; the owner of a block finds its sum
/// there. First, an action USER writes the parts of key_grads and value_grads that no pair reaches:
/// it clears them. Actions B have the uses [scores, values or ring_rows, output, output_grads,
/// score_grads, value_grads] in pass 1 and [score_grads, keys or ring_rows, queries, query_grads,
/// key_grads] in pass 2.
///
/// Blocks travel whole: order and mask say which pairs are visible, and drop_unread() drops blocks
/// that nobody needs.
/// @throws contract_error as AttentionForm::expect_valid(), and for two ways.
[[nodiscard]] Schedule rsa(const AttentionForm& form);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/attention/rsa.ipp>
#endif
