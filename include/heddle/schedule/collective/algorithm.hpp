// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Collective and Algorithm: the names of collectives, and of the algorithms that perform them.

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::schedule {

/// A collective operation, described by its result. Block r is rank r's share of a buffer.
enum class Collective : std::uint8_t {
  all_reduce,      ///< every rank's data is the merge of all ranks' data
  reduce_scatter,  ///< block r of rank r's data is the merge of all ranks' blocks r
  all_gather,      ///< every rank's data has block r of rank r, for all r
  all_to_all,      ///< block q of rank r's input is block r of rank q's output
  broadcast,       ///< every rank's data is that of the root
  reduce,          ///< the root's data is the merge of all ranks' data
  gather,          ///< block r of the root's output is rank r's input
  scatter,         ///< rank r's output is block r of the root's input
  barrier,         ///< no rank continues before all ranks have arrived; no bytes
  inclusive_scan,  ///< rank r's data is the merge of the data of ranks 0 to r, in rank order
  exclusive_scan,  ///< the same for ranks 0 to r - 1; rank 0's data stays unchanged
};

/// Number of collectives.
inline constexpr std::size_t collective_count = 11;

/// Returns the name of the collective: `all_reduce`.
[[nodiscard]] constexpr std::string_view to_string(Collective collective) noexcept {
  constexpr std::array<std::string_view, collective_count> names = {
      "all_reduce", "reduce_scatter", "all_gather", "all_to_all",     "broadcast",     "reduce",
      "gather",     "scatter",        "barrier",    "inclusive_scan", "exclusive_scan"};
  return heddle::impl::enumerator_name(names, collective);
}
/// Prints the name of the collective.
std::ostream& operator<<(std::ostream& out, Collective collective);

namespace impl {

/// Returns true if the collective is a scan. All algorithms for scans merge ranks in rank order.
[[nodiscard]] constexpr bool is_scan(Collective collective) {
  return collective == Collective::inclusive_scan || collective == Collective::exclusive_scan;
}

/// Returns true if the collective works in place, on one buffer of each rank. Such a collective can
/// run in segments, one after another.
[[nodiscard]] constexpr bool works_in_place(Collective collective) {
  using enum Collective;
  return collective == all_reduce || collective == reduce_scatter || collective == all_gather ||
         collective == broadcast || collective == reduce;
}

}  // namespace impl

/// An algorithm for collectives of P ranks. why_not() tells why it does not perform a collective.
enum class Algorithm : std::uint8_t {
  ring,                ///< passes blocks from neighbour to neighbour; P - 1 steps
  bidirectional_ring,  ///< passes half of each block around the ring in each direction
  recursive_doubling,  ///< partners at distance 1, 2, 4, ... exchange all of their data
  recursive_halving,   ///< partners exchange half of the remaining data (Rabenseifner)
  binomial_tree,       ///< ranks that have the data pass it on along a tree; log P steps
  double_tree,         ///< two trees with half of the data each; no rank is an inner node of both
  star,                ///< all ranks send to the root, or the root to all
  direct,              ///< every block goes directly from its source to its destination
  bruck,               ///< log P steps for any P: ranks pass on the blocks they have received
  hierarchical,        ///< inside of groups, across groups, and inside again, level by level
};

/// Number of algorithms.
inline constexpr std::size_t algorithm_count = 10;

/// Returns the name of the algorithm: `recursive_doubling`.
[[nodiscard]] constexpr std::string_view to_string(Algorithm algorithm) noexcept {
  constexpr std::array<std::string_view, algorithm_count> names = {"ring",
                                                                   "bidirectional_ring",
                                                                   "recursive_doubling",
                                                                   "recursive_halving",
                                                                   "binomial_tree",
                                                                   "double_tree",
                                                                   "star",
                                                                   "direct",
                                                                   "bruck",
                                                                   "hierarchical"};
  return heddle::impl::enumerator_name(names, algorithm);
}
/// Prints the name of the algorithm.
std::ostream& operator<<(std::ostream& out, Algorithm algorithm);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/algorithm.ipp>
#endif
