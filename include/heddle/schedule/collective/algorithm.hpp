// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Names: the collectives that there are, and the algorithms that perform them.

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::schedule {

/// What a collective leaves behind. Block r is rank r's share of a buffer.
enum class Collective : std::uint8_t {
  all_reduce,      ///< every rank's data is the merge of all ranks' data
  reduce_scatter,  ///< block r of rank r's data is the merge of all ranks' blocks r
  all_gather,      ///< every rank's data has block r of rank r, for all r
  all_to_all,      ///< block q of rank r's input is block r of rank q's output
  broadcast,       ///< every rank's data is that of the root
  reduce,          ///< the root's data is the merge of all ranks' data
  gather,          ///< block r of the root's output is rank r's input
  scatter,         ///< rank r's output is block r of the root's input
  barrier,         ///< no rank goes on before all have come; no bytes
  inclusive_scan,  ///< rank r's data is the merge of the data of ranks 0 to r, in their order
  exclusive_scan,  ///< the same of ranks 0 to r - 1; that of rank 0 stays as it is
};

/// Number of collectives.
inline constexpr std::size_t collective_count = 11;

/// As it is written: `all_reduce`.
[[nodiscard]] constexpr std::string_view to_string(Collective collective) noexcept {
  constexpr std::array<std::string_view, collective_count> names = {
      "all_reduce", "reduce_scatter", "all_gather", "all_to_all",     "broadcast",     "reduce",
      "gather",     "scatter",        "barrier",    "inclusive_scan", "exclusive_scan"};
  return names[static_cast<std::size_t>(collective)];
}
/// As it is written.
std::ostream& operator<<(std::ostream& out, Collective collective);

/// Whether every algorithm for it merges ranks in their order.
[[nodiscard]] constexpr bool is_scan(Collective collective) {
  return collective == Collective::inclusive_scan || collective == Collective::exclusive_scan;
}

/// Whether all of it happens in the data of the ranks, one buffer of each: it can be done in
/// segments, one after another.
[[nodiscard]] constexpr bool works_in_place(Collective collective) {
  using enum Collective;
  return collective == all_reduce || collective == reduce_scatter || collective == all_gather ||
         collective == broadcast || collective == reduce;
}

/// How it gets there. P ranks, m bytes in all; which collectives each performs says applicable().
enum class Algorithm : std::uint8_t {
  ring,                ///< blocks go round from neighbour to neighbour; P - 1 steps
  bidirectional_ring,  ///< half of each block goes round each way
  recursive_doubling,  ///< partners at distance 1, 2, 4, ... exchange all they have
  recursive_halving,   ///< partners exchange half of what is left (Rabenseifner)
  binomial_tree,       ///< whoever has it passes it on; log P steps
  double_tree,         ///< two trees with half of the data each, no rank inside both
  star,                ///< all to one, one to all
  direct,              ///< every block straight from its source to its destination
  bruck,               ///< log P steps for any P: each passes on what has come to it
  hierarchical,        ///< inside of groups, across them, and inside again, level by level
};

/// Number of algorithms.
inline constexpr std::size_t algorithm_count = 10;

/// As it is written: `recursive_doubling`.
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
  return names[static_cast<std::size_t>(algorithm)];
}
/// As it is written.
std::ostream& operator<<(std::ostream& out, Algorithm algorithm);

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/algorithm.ipp>
#endif
