// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The algorithms of collectives: functions that append rounds to a Team.
///
/// In the closed forms of all algorithms P is the number of members, m the number of bytes of the
/// complete data (of P equal blocks), a the latency and b the bandwidth of every link, and C the
/// number of chunks. Merging takes no time.

#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/collective/impl/rounds.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

// Rings: every member sends only to its neighbours, so that all links carry the same load.

/// Reduce-scatter around a ring. Every member sends (P - 1) C messages, with all blocks except its
/// own. It merges block s in the cyclic order x[s+1], x[s+2], ..., x[s]. With x = m / (P C b) the
/// time is max((P-1)(a + x) + (C-1) x, (P-1) C x + a). The time of an all-reduce, which adds an
/// all-gather, has 2 (P-1) instead of P - 1.
void ring_reduce_scatter(Team& team);

/// All-gather around a ring. Every member sends (P - 1) C messages, with all blocks except that of
/// the next member. The time is that of the reduce-scatter.
void ring_all_gather(Team& team);

/// Reduce-scatter around two rings in opposite directions, with half of every block each. The time
/// is that of one ring with half of the bytes. The number of messages doubles.
void bidirectional_ring_reduce_scatter(Team& team);

/// All-gather around two rings in opposite directions, with half of every block each.
void bidirectional_ring_all_gather(Team& team);

/// Broadcast down a chain that begins at the root. Each of P - 1 members sends C messages, of m
/// bytes in total. With x = m / (C b) the time is (P-1)(a + x) + (C-1) x.
void ring_broadcast(Team& team);

/// Reduction down a chain that ends at the root: the reverse of the broadcast. The result is
/// x[root] + (x[root+1] + (x[root+2] + ...)), in cyclic order.
void ring_reduce(Team& team);

// Recursive doubling and halving: partners at distance 1, 2, 4, ... exchange data. Doubling needs
// the fewest steps for little data. Halving needs few steps for much data, too.

/// All-reduce by recursive doubling. Of P = 2^k + s members, 2^k are corners of a hypercube. Each
/// corner sends k C messages of k m bytes in total. Each of s surplus members exchanges C messages
/// of m bytes in each direction with its corner. All members merge in the same order, that of the
/// members. With one chunk the time is k (a + m / b), plus at most 2 (a + m / b) if s > 0.
void recursive_doubling_all_reduce(Team& team);

/// All-gather by recursive doubling. With P = 2^k every member sends k C messages: d m / P bytes at
/// distance d, (P-1) m / P bytes in total. With one chunk the time is k a + (P-1) m / (P b). A
/// surplus member sends its block to its corner, and receives all other blocks from it.
void recursive_doubling_all_gather(Team& team);

/// Reduce-scatter by recursive halving: the reverse of the all-gather. Surplus members send all of
/// their blocks first, and receive their own block at the end.
void recursive_halving_reduce_scatter(Team& team);

/// All-reduce by recursive halving, then doubling (Rabenseifner, ICCS 2004). With P = 2^k every
/// member sends 2 k C messages of 2 (P-1) m / P bytes in total. With one chunk the time is
/// 2 k a + 2 (P-1) m / (P b).
void recursive_halving_all_reduce(Team& team);

// Binomial trees: ranks that have the data pass it on. They need few steps for little data from or
// to one root.

/// Broadcast down a binomial tree. C messages of m bytes in total travel over each of P - 1 edges,
/// up to ceil(log2 P) of which leave the root. With x = m / (C b) the time is D (a + x) + (C-1) x,
/// where D is the largest number of one bits in a number below P.
void binomial_broadcast(Team& team);

/// Reduction up a binomial tree: the reverse of the broadcast. With one chunk the time is the same.
/// With root 0 it merges members in their order, each behind all members before it.
void binomial_reduce(Team& team);

// Double trees: two binary trees with half of the data each. No member has children in both. With
// many chunks they need few steps and use the full bandwidth.

/// Broadcast of half of the data down each of two trees. The trees hold all members except the
/// root, which sends to the roots of both trees. C messages of m / 2 bytes in total travel over
/// each edge, and a member has at most two outgoing edges. With x = m / (2 C b) and P > 2 the time
/// is (1 + floor(log2(P-1)))(a + x) + (C-1) x.
void double_tree_broadcast(Team& team);

/// All-reduce of half of the data up and down each of two trees. C messages of m / 2 bytes in total
/// travel over each edge in each direction. With one chunk the time is
/// 2 floor(log2 P) (a + m / (2 b)).
void double_tree_all_reduce(Team& team);

// Stars: all members send to the root, or the root sends to all. A sum has the fewest latencies
// over slow links (TPI-LLM, arXiv:2410.00531), but the root's port carries all of the data.

/// Reduction to the root. Every other member sends it C messages of m bytes in total. The root
/// merges x[root] + x[root+1] + ..., in cyclic order. With x = m / (C b) the time is a + C x if
/// links do not share a port, or a + (P-1) C x if the root has one port. An all-reduce, which adds
/// a broadcast, takes 2 a + (C+1) x, or 2 (a + (P-1) m / b) with one port and one chunk.
void star_reduce(Team& team);

/// Broadcast from the root: the reverse of the reduction.
void star_broadcast(Team& team);

// Direct algorithms: every block goes from its source to its destination in one message. All
// messages make one round.

/// Direct reduce-scatter. Every member sends block q to member q, which merges the blocks that it
/// receives: (P - 1) C messages from each member. It merges block s in the cyclic order x[s],
/// x[s+1], ... With x = m / (P C b) the time is a + C x. The time of an all-reduce, which adds an
/// all-gather, is max(2 (a + x) + (C-1) x, a + 2 C x).
void direct_reduce_scatter(Team& team);

/// Direct all-gather. Every member r sends block r to all others: (P - 1) C messages from each
/// member. The time is that of the reduce-scatter.
void direct_all_gather(Team& team);

/// Direct all-to-all. The outputs are members P to 2 P - 1. Each rank sends (P - 1) C messages and
/// makes C local copies.
void direct_all_to_all(Team& team);

/// Direct gather. Every input, of one block, goes to the output of the root, which is member P.
/// Each rank sends C messages, except the root, which copies its own block.
void direct_gather(Team& team);

/// Direct scatter. Every block of the root's input, which is member 0, goes to the output of one
/// rank. The output of rank r is member r + 1.
void direct_scatter(Team& team);

// Bruck's algorithms: ceil(log2 P) rounds for any number of members, at cyclic distances 1, 2, 4,
// ... They send no more bytes than a ring.

/// All-gather in k = ceil(log2 P) rounds. Before the round at distance d every member has d blocks:
/// its own and the d - 1 blocks after it. It sends those that are still missing to the member d
/// before it. It sends P - 1 blocks in total. The blocks of a round take two messages if they wrap
/// around the end. With one chunk the time is at most k a + (P-1) m / (P b), with equality if
/// P = 2^k. Bruck et al., IEEE TPDS 8 (1997), without the rotations, because blocks lie at their
/// final positions.
void bruck_all_gather(Team& team);

/// Reduce-scatter: the reverse of the all-gather. It merges block s along the same tree.
void bruck_reduce_scatter(Team& team);

/// Barrier by dissemination (Hensgen, Finkel and Manber, 1988). Every member sends k = ceil(log2 P)
/// messages of no bytes. The time is k a. Block i + 1 of a member receives the message of round i.
void bruck_barrier(Team& team);

// Bruck's all-to-all: one message in each of ceil(log2 P) rounds, for short blocks. Ranks store
// and forward the blocks of other ranks.

/// All-to-all in k = ceil(log2 P) rounds (Bruck et al., IEEE TPDS 8 (1997)). The outputs are
/// members P to 2 P - 1. The storage of rank r for blocks in transit is member 2 P + r. The block
/// from rank s to rank s + w (modulo P) takes one step for each one bit of w, the lowest bit first.
/// In each round every member sends C messages, which hold the blocks with that bit, at most P / 2
/// blocks. Blocks are copied together before a message and out of it afterwards: P + n copies,
/// where n is the number of blocks in all messages of a member. With one chunk the time without
/// copies is k a + n m / (P b), and n = k P / 2 if P = 2^k.
void bruck_all_to_all(Team& team);

/// Appends to `members` the storage for blocks in transit that bruck_all_to_all() needs: for each
/// rank a transient buffer of role "scratch". Each block has `chunks` parts.
void keep_for_bruck(Builder& builder, std::vector<Use>& members, std::uint32_t,
                    std::uint32_t chunks);

// Gather and scatter along a binomial tree. Ranks with children store the blocks of their subtrees
// and forward them.

/// Gather up a binomial tree. Member P is the root's output. A rank with children copies its own
/// block next to their blocks, and sends the blocks of its subtree together. C messages travel over
/// each of P - 1 edges, or 2 C to the root if the blocks wrap around the end of its output. There
/// are ceil(log2 P) rounds after the copies.
void binomial_gather(Team& team);

/// Scatter down a binomial tree: the reverse of the gather. Member 0 is the root's input. The
/// outputs are the members after it.
void binomial_scatter(Team& team);

/// Appends to `members` the storage for blocks in transit that binomial_gather() needs: transient
/// buffers of role "scratch". Each block has `chunks` parts.
void keep_gathered(Builder& builder, std::vector<Use>& members, std::uint32_t root,
                   std::uint32_t chunks);

/// Appends to `members` the storage for blocks in transit that binomial_scatter() needs.
void keep_scattered(Builder& builder, std::vector<Use>& members, std::uint32_t root,
                    std::uint32_t chunks);

// Scans: every member ends with the merge of all members up to it, or before it. Recursive
// doubling suits little data, a chain suits much data. All algorithms merge members in their
// order.

/// Inclusive scan by recursive doubling (Hillis and Steele, CACM 29 (1986)). At each distance d =
/// 1, 2, 4, ... below P, all members except the last d send C messages of m bytes in total. With
/// one chunk, if links do not share a port, the time is at most k (a + m / b), with k = ceil(log2
/// P).
void recursive_doubling_inclusive_scan(Team& team);

/// Inclusive scan down a chain. All members except the last send C messages, of m bytes in total.
/// With x = m / (C b) the time is (P-1)(a + x) + (C-1) x.
void chain_inclusive_scan(Team& team);

/// Exclusive scan by recursive doubling. Compared to the inclusive scan, all members except the
/// last send C more messages, and make C copies of m bytes in total. With one chunk the time
/// without copies is at most (1 + k) (a + m / b), with k = ceil(log2 (P-1)). Member 0 is not
/// written.
void recursive_doubling_exclusive_scan(Team& team);

/// Exclusive scan down a chain, with the same additional messages and copies. With one chunk the
/// time without copies is (P-1)(a + m / b).
void chain_exclusive_scan(Team& team);

/// Appends to `members` the storage for intermediate results of an exclusive scan: transient
/// buffers of role "scratch".
void keep_scanned(Builder& builder, std::vector<Use>& members, std::uint32_t, std::uint32_t);

/// Changes the rounds of an all-gather in place, of `ranks` ranks with `each` blocks each, such
/// that the members are the inputs of all ranks, then their outputs. A message with only the
/// sender's own blocks reads them from its input. No action writes inputs, so such a message waits
/// for no copy. The copies of own blocks to the outputs follow the messages of the first round.
void read_inputs(Rounds& rounds, std::uint32_t ranks, std::uint32_t each);

}  // namespace heddle::inline v0::schedule::impl

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/impl/binomial_tree.ipp>
#include <heddle/schedule/collective/impl/bruck.ipp>
#include <heddle/schedule/collective/impl/bruck_all_to_all.ipp>
#include <heddle/schedule/collective/impl/direct.ipp>
#include <heddle/schedule/collective/impl/double_tree.ipp>
#include <heddle/schedule/collective/impl/read_inputs.ipp>
#include <heddle/schedule/collective/impl/recursive.ipp>
#include <heddle/schedule/collective/impl/ring.ipp>
#include <heddle/schedule/collective/impl/scan.ipp>
#include <heddle/schedule/collective/impl/star.ipp>
#include <heddle/schedule/collective/impl/store_and_forward.ipp>
#endif
