// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// collective(): the Schedule of a single collective.

#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/collective/group_level.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// The options of collective().
struct CollectiveOptions {
  int ranks = 1;  ///< number of ranks
  /// Bytes of the complete data of a rank: the data in place, the input of each rank of all_to_all,
  /// the output of gather, or the input of scatter. 0 for barrier.
  Bytes bytes = 0;
  /// Bytes of each block if blocks are uneven. It replaces `bytes`. P values, one for each rank;
  /// for all_to_all P * P values, in the order of the sending ranks. If ranks have no blocks of
  /// their own (all_reduce, broadcast, reduce, scans), only the sum matters.
  std::vector<Bytes> blocks = {};
  Scalar type = Scalar::f64;            ///< type of the elements
  Bytes element = 0;                    ///< bytes that no cut divides; 0: one element of `type`
  int chunks = 1;                       ///< consecutive messages that carry a block
  Rank root = {};                       ///< root of broadcast, reduce, gather and scatter
  std::vector<GroupLevel> levels = {};  ///< levels of the hierarchical algorithm, innermost first
  /// True if an all_gather reads the ranks' own blocks from separate input buffers.
  bool apart = false;
};

/// Returns why the algorithm does not perform the collective with these options, or an empty string
/// if it does.
[[nodiscard]] std::string why_not(Collective collective, Algorithm algorithm,
                                  const CollectiveOptions& options);

/// Returns the Schedule of a collective. Its buffers are not transient and are numbered by rank.
/// For all_to_all, gather, scatter, and all_gather with `apart`, they are the buffers of role
/// "input", then those of role "output". Otherwise each rank has one buffer of role "data", and the
/// collective works in place. Block r of it belongs to rank r.
///
/// If blocks do not divide the bytes evenly, the first blocks get one element more. A block of no
/// bytes is not sent. Data to be merged arrives in transient buffers of role "scratch".
///
/// @throws infeasible if the algorithm does not perform the collective. The message says why.
/// @throws contract_error if sizes are not whole elements, or their number is not that of the
/// blocks.
[[nodiscard]] Schedule collective(Collective collective, Algorithm algorithm,
                                  const CollectiveOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/collective.ipp>
#endif
