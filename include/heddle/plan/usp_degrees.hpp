// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// usp_degrees(): how many ranks of a line take the heads axis and how many the ring axis, by a
/// closed form on a machine of two levels.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/schedule/attention/form.hpp>

namespace heddle::inline v0::plan {

/// Nodes of `node` consecutive ranks. A rank sends to ranks of its node through a port of
/// `inside` bytes per second, and to other nodes through its share of the node's network cards, of
/// `outside` bytes per second.
struct TwoLevelNetwork {
  int node = 1;        ///< ranks of a node
  double inside = 1;   ///< bytes per second of a rank within its node
  double outside = 1;  ///< bytes per second of a rank to other nodes

  /// Returns a Machine of `ranks` equal ranks with these bandwidths and without latencies.
  /// @throws contract_error if a number is not positive, `outside` is above `inside`, or the nodes
  ///         do not hold exactly `ranks` ranks.
  [[nodiscard]] Machine machine(int ranks) const;
};

/// The predicted time of a division of P = `heads` * `ring` ranks.
struct UspCost {
  int heads = 1;                    ///< ranks of the heads axis, U
  int ring = 1;                     ///< ranks of the ring axis, R
  NearAxis near = NearAxis::heads;  ///< the axis of consecutive ranks
  Seconds time = 0;                 ///< seconds
};

/// Returns the times of all divisions U R = P with at most as many heads ranks as K,V heads, the
/// least first, for one sequence and a ring of one way. With U, R > 1 each axis may be the near
/// one. A product of a (query, key) pair over all heads takes `product` seconds.
///
/// Let a and b be the bytes of Q and of K on a rank, i and o the peers of a rank on the heads axis
/// within its node and outside, and w = 2 `product` N^2 / P the work of a rank without a mask. Then
///
///     exchange = (2 a + 2 b)/U (i/inside + o/outside)
///     m = 2 b / (outside if a hop of the ring leaves a node, otherwise inside)
///     c = w/R, the time of a pair of blocks
///     forward  = exchange + max(R c, (R - 1) m + c)
///     backward = exchange + max(2.5 R c + m, 2 (R - 1) m + e) for R > 1, exchange + 2.5 c for R =
///     1
///
/// with e = 2.5 c for R = 2, when nothing is sent during the first block, and otherwise max(0, 2.5
/// c
/// - m). Under a causal mask, R c and c are halved. In contiguous order, which is not balanced, R c
/// becomes (R - 1/2) c and c stays. A query's own pair adds w/(2 N) to either. If U does not divide
/// the K,V heads, all terms grow by the share of the rank that has the most heads. With
/// `form.backward` the time is that of both passes.
///
/// Sources: the bytes are those of Fang and Zhao, "USP: A Unified Sequence Parallelism Approach for
/// Long Context Generative AI", 2024, without what a rank sends to itself. That moves hide behind
/// blocks is in Liu et al., "Ring Attention with Blockwise Transformers for Near-Infinite Context",
/// 2023. Their combination on two levels is Heddle's; tests compare it with the simulator.
/// @throws contract_error as TwoLevelNetwork::machine(), for a form without a schedule, for
///         segments and weighted orders, which the formula does not know (see sequence_choice()),
///         and for a product that is negative, infinite or not a number.
[[nodiscard]] std::vector<UspCost> usp_degrees(const schedule::AttentionForm& form,
                                               const TwoLevelNetwork& network, Seconds product);

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/usp_degrees.ipp>
#endif
