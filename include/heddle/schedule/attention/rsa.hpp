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

/// Returns a Schedule in which every rank keeps its queries and computes complete rows of scores.
/// In pass 1 the keys travel around the ring, then each rank computes the softmax of its rows, and
/// in pass 2 the values travel around the ring. This takes 2 (P - 1) moves of 1 unit. A rank stores
/// P times the scores of one pair of blocks. As in the publication, no rank sends V before its rows
/// are complete, so the latencies of both passes add up to twice those of ring_attention().
///
/// Each rank has these buffers. Persistent: "queries", "keys", "values" and "output" with one part
/// each, and "scores" with one part per block of keys. Transient: "ring_rows" (the blocks that
/// arrive). Actions F of stage q and item k have the uses [queries, keys or ring_rows, scores] in
/// pass 1 and [scores, values or ring_rows, output] in pass 2. An action USER between the passes
/// has the uses [scores (each run of parts)..., values] and replaces scores by probabilities. It
/// does not change the values; its use of them only prevents the rank from sending them earlier.
///
/// With `form.backward`, V travels around the ring again, then K. Every rank has computed its
/// addend of the gradients of the whole K and V, and two ring reduce-scatters sum them. In total
/// this is 4 (P - 1) units. Further persistent buffers are "output_grads" and "query_grads" with
/// one part each, and "score_grads", "key_grads" and "value_grads" with one part per block. The
/// owner of a block finds its sum in the last two. First, an action USER clears the parts of
/// key_grads and value_grads to which no pair contributes. Actions B have the uses [scores, values
/// or ring_rows, output, output_grads, score_grads, value_grads] in pass 1 and [score_grads, keys
/// or ring_rows, queries, query_grads, key_grads] in pass 2.
///
/// Blocks are always sent as a whole. The order and the mask determine which pairs are visible, and
/// drop_unread() removes blocks that no rank needs.
/// @throws contract_error in the cases of AttentionForm::expect_valid(), and if `form.ways` is not
///         1.
[[nodiscard]] Schedule rsa(const AttentionForm& form);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_ATTENTION
#include <heddle/schedule/attention/rsa.ipp>
#endif
