// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// park(): moves activations that a rank has no memory for to another rank or to a slower memory,
/// and back before their backward pass.

#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// The place for the activations that a rank has no memory for.
struct Parking {
  Rank from;       ///< the rank whose memory is limited
  Rank to;         ///< the rank that parks them: another one, or `from` itself
  Tier tier = {};  ///< the memory level of `to`; above 0 if `to` is `from`
  int limit = 2;   ///< the saved values that `from` keeps at once

  /// Returns the parking of BPipe for 1F1B on `ranks` ranks: rank r of the first half parks on rank
  /// P - 1 - r, and each rank keeps at most ceil((P + 2) / 2) values.
  /// @throws contract_error if `ranks` is less than 1.
  [[nodiscard]] static std::vector<Parking> bpipe(int ranks);
};

namespace schedule {

/// Returns `schedule` with moves of saved activations (role::saved), so that each rank of `parking`
/// keeps at most its limit. When the rank needs room for a new value, the kept value whose next use
/// is farthest in its list moves out (Belady's rule). It moves back when the rank has room again
/// and no other parked value is needed earlier, so that transfers overlap with computations. The
/// parked values are in buffers with role::parked. Moves to other ranks have a lane of their own
/// and do not delay messages of the pipeline. Moves to a tier of the same rank have a lane for each
/// direction, which a Mover executes.
///
/// A rank with a limit has as many parts for the saved values of each of its stages. A value waits
/// for a part that is free, also where ranks and moves run ahead of each other. If a rank has
/// several stages, their values together stay within the limit, but each stage has its own parts.
///
/// Source of parking on another rank: Kim et al., "BPipe" (ICML'23), see Parking::bpipe(). Source
/// of parking in a slower memory: Wan et al., "PipeOffload" (2025).
/// @throws contract_error if a rank does not exist or is named twice, if a limit is below 1, or if
///         a rank would park in the memory where its values are.
/// @throws infeasible if an action and the action fused with it use more values at once than the
///         limit, or if the saved values of a stage have different sizes.
[[nodiscard]] Schedule park(const Schedule& schedule, std::span<const Parking> parking);

}  // namespace schedule

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/park.ipp>
#endif
