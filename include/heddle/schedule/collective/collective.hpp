// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// collective(): a collective on its own, as a Schedule.

#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/collective/hierarchical.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::schedule {

/// Of collective().
struct CollectiveOptions {
  int ranks = 1;  ///< that take part
  /// Of what lies on a rank where it is whole: the data; the input of each rank of all_to_all; the
  /// output of gather, the input of scatter. Of barrier: 0.
  Bytes bytes = 0;
  /// Bytes of each block where they are uneven, instead of `bytes`: P of them, one for each rank;
  /// of all_to_all P * P, those that rank 0 sends first. Where ranks have no blocks of their own
  /// (all_reduce, broadcast, reduce, scans) only their sum matters.
  std::vector<Bytes> blocks = {};
  Scalar type = Scalar::f64;            ///< of the elements
  Bytes element = 0;                    ///< bytes that stay together; 0: an element of `type`
  int chunks = 1;                       ///< messages that a block travels in, one behind the other
  Rank root = {};                       ///< of broadcast, reduce, gather and scatter
  std::vector<GroupLevel> levels = {};  ///< of the hierarchical algorithm, innermost first
  /// Of all_gather: the ranks' own blocks come from elsewhere and are not in place before.
  bool apart = false;
};

/// Whether there is such a collective.
[[nodiscard]] bool applicable(Collective collective, Algorithm algorithm,
                              const CollectiveOptions& options);

/// The Schedule of a collective. Its buffers, which are not transient: of all_to_all, gather,
/// scatter and an all_gather apart those of role "input" and then those of role "output"; else one
/// of role "data" on each rank, where the collective is done in place, rank r's block being the
/// r-th. Numbered by rank.
///
/// Bytes that blocks do not share evenly go to the first ones, an element to each. A block of no
/// bytes is not sent. What a rank merges arrives in transient buffers of role "scratch".
///
/// @throws infeasible where the algorithm does not perform the collective, and says why;
///         contract_error for sizes that are not whole elements or not as many as blocks.
[[nodiscard]] Schedule collective(Collective collective, Algorithm algorithm,
                                  const CollectiveOptions& options);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/collective.ipp>
#endif
