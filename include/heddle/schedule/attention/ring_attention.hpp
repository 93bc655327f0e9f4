// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ring_attention(): sends blocks of keys and values around a ring of ranks (Liu et al., "Ring
/// Attention with Blockwise Transformers for Near-Infinite Context", 2023).

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Returns a Schedule in which every rank keeps its queries, and blocks of keys and values travel
/// around a ring. In step t, rank r computes the attention of its queries to the block of rank r -
/// t, and sends that block to rank r + 1. This takes P - 1 moves of 2 units. If `form.ways` is 2,
/// the first piece of every block travels in one direction and the second piece in the other, so
/// that each of the two links of a rank carries half of the bytes.
///
/// A pair of blocks without a visible pair of tokens has no action. drop_unread() removes the moves
/// that become useless. Under a causal mask, 1/2 of the bytes remain in contiguous order. In zigzag
/// order, 1 - 1/(2P) remain with one way and 3/4 with two.
///
/// Each rank has these buffers, with one part per piece. Persistent: "queries", "keys_values" (a
/// piece's rows of K, then its rows of V) and "state" (the AttentionState of a piece;
/// one record, see combine_records()). Transient: "ring" (the pieces that arrive, one step after
/// another). An action F of stage q and item k has the uses [queries, keys_values or ring, state].
/// It computes the attention of the queries of rank q to the keys of rank k. The first action of a
/// rank writes the state, and the others update it.
///
/// With `form.backward`, K and V travel around the ring again, and their gradients follow them. The
/// gradient of a block begins on the first other rank that has a visible pair with it. The owner of
/// the block adds its own addend at the end, without a move. This takes P - 1 moves of 2 units;
/// published codes send P. Further persistent buffers are "output_grads", "query_grads" and
/// "key_value_grads" (laid out like "keys_values"). Further transient buffers are "partial" (the
/// gradient that a rank adds, and then the sum that it sends) and "arrived". An action B has the
/// uses [queries, keys_values or ring, state, output_grads, query_grads, key_value_grads or
/// partial], and writes the last one.
///
/// Let c be the time of a pair of blocks, and m the time of a message with a block. Without a mask,
/// the forward makespan is P c if m <= c, and (P - 1) m + c otherwise. This also holds after a fold
/// to two slots.
///
/// Moves of K and V use lane 0 in clockwise direction and lane 1 in the other direction. Moves of
/// gradients use lanes 2 and 3.
/// @throws contract_error in the cases of AttentionForm::expect_valid().
[[nodiscard]] Schedule ring_attention(const AttentionForm& form);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_ATTENTION
#include <heddle/schedule/attention/ring_attention.ipp>
#endif
