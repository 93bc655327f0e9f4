// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// peer_memory(): keeps some of a rank's weights in the free memory of another rank.

#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Options of peer_memory().
struct PeerMemoryOptions {
  Rank rank = 0;                 ///< the rank whose memory is too small
  Rank peer = 1;                 ///< the rank with free memory
  int slots = 2;                 ///< the weights of so many stages fit in besides the resident ones
  Lane lane = 1;                 ///< the lane of the channel peer -> rank that the weights use
  std::vector<Stage> away = {};  ///< the stages whose weights the peer holds; empty: spread evenly
};

/// Returns `schedule` with the weights of only `resident` stages in the memory of a rank. The
/// others lie in the memory of the peer, and a move brings them to a slot before each use, as in
/// EnergonAI (Du et al., "EnergonAI", 2022).
///
/// - The stages of the rank are those whose role::weights it holds. If it holds n, stage number k
///   of them, in ascending order, goes to the peer if floor((k + 1) m / n) > floor(k m / n), where
///   m = n - resident. So there are as many resident stages between any two of them as possible.
/// - Moves are in the order of use. Each is listed after the last use of the value that its slot
///   held before. Weights that are still in a slot are not moved again.
/// - The weights must be constant, as in inference.
///
/// A move needs its slot before it begins, so simulate it with Sending::rendezvous. If the ranks
/// share memory, share_memory() removes the moves, and the stages read the weights in place.
///
/// Let every stage take t and a move c <= (n / m - 1) t, with n a multiple of m. In a steady state,
/// a pass over spread stages then takes n t, also with one slot. In general it takes max(n t, m c)
/// or more. If the m stages stand together, one slot adds (m - 1) c.
///
/// @throws contract_error if `resident` is not in [0, n], if there is no slot, if the ranks are
///         equal or not in the schedule, if the rank holds no weights, if `away` does not name
///         n - resident different stages of the rank, or if an action writes the weights of a stage
///         that goes to the peer. The last error names the action.
[[nodiscard]] Schedule peer_memory(const Schedule& schedule, int resident,
                                   const PeerMemoryOptions& options = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/peer_memory.ipp>
#endif
