// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ring_attention(): blocks of keys and values go around a ring of ranks (Liu et al., "Ring
/// Attention with Blockwise Transformers for Near-Infinite Context", 2023).

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Every rank keeps its queries. In step t, rank r attends to the block of rank r - t while it
/// passes that block on to rank r + 1: P - 1 moves of 2 units. With two ways the first piece of
/// every block goes that way and the second piece the other way, so that each of the two links of
/// a rank carries half of the bytes. A pair of blocks without a visible pair of tokens has no
/// action; drop_unread() removes the moves that this makes useless. Under a causal mask that leaves
/// 1/2 of the bytes in contiguous order, and in zigzag order 1 - 1/(2P) with one way and 3/4 with
/// two.
///
/// Buffers, for each rank, with a part for each piece: persistent "queries", "keys_values" (a
/// piece's rows of K, then its rows of V), and "state" (the outputs of a piece, then its log-sums;
/// one record, see combine_records()). Transient "ring": the pieces that arrive, step after step.
/// An action F of stage q and item k has the uses [queries, keys_values or ring, state] and
/// attends queries of rank q to keys of rank k. The first one of a rank writes the state, the
/// others update it.
///
/// With `form.backward` K and V go around once more and their gradients behind them. The gradient
/// of a block begins on the first other rank that has a visible pair with it, and what its owner
/// adds stays at home: P - 1 moves of 2 units, where released codes send P. Further buffers:
/// persistent "output_grads", "query_grads" and "key_value_grads" (as "keys_values"), transient
/// "partial" (the gradient that a rank adds, and then the sum that it sends) and "arrived". An
/// action B has the uses [queries, keys_values or ring, state, output_grads, query_grads,
/// key_value_grads or partial]; it writes the last one.
///
/// If a pair of blocks takes the time c and a message of a block the time m, the forward makespan
/// without a mask is P c if m <= c, and (P - 1) m + c otherwise, also when folded to two slots.
///
/// Moves of K and V are in lane 0 clockwise and in lane 1 the other way, those of gradients in
/// lanes 2 and 3.
/// @throws contract_error as AttentionForm::expect_valid().
[[nodiscard]] Schedule ring_attention(const AttentionForm& form);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/attention/ring_attention.ipp>
#endif
