// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// find_recipe(): finds the function that performs a collective by an algorithm, and its number of
/// blocks.

#include <cstdint>
#include <vector>

#include <heddle/schedule/action.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/impl/algorithms.hpp>
#include <heddle/schedule/collective/impl/team.hpp>

namespace heddle::inline v0::schedule::impl {

/// The implementation of one algorithm for one collective.
struct Recipe {
  void (*play)(Team&) = nullptr;  ///< appends the rounds; null if there is no such algorithm
  std::uint32_t per_rank = 0;  ///< blocks for each rank; 0 if the number does not depend on ranks
  std::uint32_t blocks = 1;    ///< blocks in total if per_rank is 0
  /// Appends members for the scratch storage that ranks need, for a collective with root `root` and
  /// blocks of `chunks` parts. Null if they need none.
  void (*keep)(Builder& builder, std::vector<Use>& members, std::uint32_t root,
               std::uint32_t chunks) = nullptr;

  /// The total number of blocks for a team of `ranks` members.
  [[nodiscard]] constexpr std::uint32_t blocks_of(std::uint32_t ranks) const {
    return per_rank == 0 ? blocks : per_rank * ranks;
  }
};

/// Performs an all-reduce as a reduction (or reduce-scatter) and a broadcast (or all-gather).
template <void (*reduce_scatter)(Team&), void (*all_gather)(Team&)>
void in_two(Team& team) {
  reduce_scatter(team);
  all_gather(team);
}

/// Returns the recipe of a collective by an algorithm. Its `play` is null if the algorithm does not
/// perform the collective.
[[nodiscard]] constexpr Recipe find_recipe(Collective collective, Algorithm algorithm) {
  const Recipe none;
  switch (collective) {
    case Collective::all_reduce:
      switch (algorithm) {
        case Algorithm::ring: return {in_two<ring_reduce_scatter, ring_all_gather>, 1};
        case Algorithm::bidirectional_ring:
          return {in_two<bidirectional_ring_reduce_scatter, bidirectional_ring_all_gather>, 2};
        case Algorithm::recursive_doubling: return {recursive_doubling_all_reduce};
        case Algorithm::recursive_halving: return {recursive_halving_all_reduce, 1};
        case Algorithm::binomial_tree: return {in_two<binomial_reduce, binomial_broadcast>};
        case Algorithm::double_tree: return {double_tree_all_reduce, 0, 2};
        case Algorithm::star: return {in_two<star_reduce, star_broadcast>};
        case Algorithm::direct: return {in_two<direct_reduce_scatter, direct_all_gather>, 1};
        case Algorithm::bruck: return {in_two<bruck_reduce_scatter, bruck_all_gather>, 1};
        default: return none;
      }
    case Collective::reduce_scatter:
      switch (algorithm) {
        case Algorithm::ring: return {ring_reduce_scatter, 1};
        case Algorithm::bidirectional_ring: return {bidirectional_ring_reduce_scatter, 2};
        case Algorithm::recursive_halving: return {recursive_halving_reduce_scatter, 1};
        case Algorithm::direct: return {direct_reduce_scatter, 1};
        case Algorithm::bruck: return {bruck_reduce_scatter, 1};
        default: return none;
      }
    case Collective::all_gather:
      switch (algorithm) {
        case Algorithm::ring: return {ring_all_gather, 1};
        case Algorithm::bidirectional_ring: return {bidirectional_ring_all_gather, 2};
        case Algorithm::recursive_doubling: return {recursive_doubling_all_gather, 1};
        case Algorithm::recursive_halving: return {recursive_doubling_all_gather, 1};
        case Algorithm::direct: return {direct_all_gather, 1};
        case Algorithm::bruck: return {bruck_all_gather, 1};
        default: return none;
      }
    case Collective::all_to_all:
      switch (algorithm) {
        case Algorithm::direct: return {direct_all_to_all};
        case Algorithm::bruck: return {.play = bruck_all_to_all, .keep = keep_for_bruck};
        default: return none;
      }
    case Collective::broadcast:
      switch (algorithm) {
        case Algorithm::ring: return {ring_broadcast};
        case Algorithm::binomial_tree: return {binomial_broadcast};
        case Algorithm::double_tree: return {double_tree_broadcast, 0, 2};
        case Algorithm::star: return {star_broadcast};
        default: return none;
      }
    case Collective::reduce:
      switch (algorithm) {
        case Algorithm::ring: return {ring_reduce};
        case Algorithm::binomial_tree: return {binomial_reduce};
        case Algorithm::star: return {star_reduce};
        default: return none;
      }
    case Collective::gather:
      switch (algorithm) {
        case Algorithm::binomial_tree: return {.play = binomial_gather, .keep = keep_gathered};
        case Algorithm::direct: return {direct_gather};
        default: return none;
      }
    case Collective::scatter:
      switch (algorithm) {
        case Algorithm::binomial_tree: return {.play = binomial_scatter, .keep = keep_scattered};
        case Algorithm::direct: return {direct_scatter};
        default: return none;
      }
    case Collective::barrier:
      return algorithm == Algorithm::bruck ? Recipe{bruck_barrier, 1} : none;
    case Collective::inclusive_scan:
      switch (algorithm) {
        case Algorithm::ring: return {chain_inclusive_scan};
        case Algorithm::recursive_doubling: return {recursive_doubling_inclusive_scan};
        default: return none;
      }
    case Collective::exclusive_scan:
      switch (algorithm) {
        case Algorithm::ring: return {.play = chain_exclusive_scan, .keep = keep_scanned};
        case Algorithm::recursive_doubling:
          return {.play = recursive_doubling_exclusive_scan, .keep = keep_scanned};
        default: return none;
      }
  }
  return none;
}

}  // namespace heddle::inline v0::schedule::impl
