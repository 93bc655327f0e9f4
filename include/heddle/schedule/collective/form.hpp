// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CollectiveForm: a collective and its algorithm, as a generator for expand().

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/group_level.hpp>

namespace heddle::inline v0 {

class Builder;

}  // namespace heddle::inline v0

namespace heddle::inline v0::schedule {

/// A collective, performed by an algorithm. It replaces a group action with these members:
/// - all_reduce, reduce_scatter, all_gather, broadcast, reduce, barrier and scans: one range of
///   each rank, changed in place;
/// - all_gather with `apart`: the inputs of all ranks, one block each, then their outputs;
/// - all_to_all: the inputs of all ranks, then their outputs, P blocks each;
/// - gather: the inputs of all ranks, then the root's output of P blocks;
/// - scatter: the root's input of P blocks, then the outputs of all ranks.
///
/// The result of a merge is the same on all ranks and in all runs. The merge operation must be
/// associative. It must also be commutative unless the algorithm merges members in their order:
/// scans do, as do star and binomial_tree with root 0, and levels of these with groups of
/// consecutive ranks. The other algorithms document their order.
struct CollectiveForm {
  Collective collective = Collective::all_reduce;  ///< the collective
  Algorithm algorithm = Algorithm::ring;           ///< the algorithm
  int chunks = 1;                                  ///< consecutive messages that carry a block
  Rank root = {};                       ///< the source or the destination of a rooted collective
  std::vector<GroupLevel> levels = {};  ///< levels of the hierarchical algorithm, innermost first
  bool apart = false;                   ///< for all_gather: the inputs are not parts of the outputs

  /// The number of members for `ranks` ranks.
  [[nodiscard]] std::size_t members(std::size_t ranks) const;
  /// The number of ranks that have `members` members.
  [[nodiscard]] std::size_t ranks(std::size_t members) const;

  /// The number of parts into which a range must be cut, or each block of a range of P blocks.
  /// @throws contract_error if `chunks` is below 1.
  [[nodiscard]] std::uint32_t parts(std::size_t members) const;

  /// Appends the actions to `builder`.
  /// @throws infeasible if the algorithm does not perform the collective.
  /// @throws contract_error if a member does not have the number of parts that parts() requires.
  void operator()(Builder& builder, std::span<const Use> members, Stage stage) const;

  /// The reason why `ranks` ranks cannot perform the collective, or an empty string if they can.
  [[nodiscard]] std::string why_not(std::uint32_t ranks) const;
  /// Throws infeasible with the reason if `ranks` ranks cannot perform the collective.
  void expect_possible(std::uint32_t ranks) const;

 private:
  /// Returns true if parts() is about each block of member `i`, not about the whole range.
  [[nodiscard]] bool has_all_blocks(std::size_t i, std::size_t ranks) const;

  /// The levels of the algorithm. Any other algorithm is a hierarchy of one level.
  [[nodiscard]] std::vector<GroupLevel> hierarchy(std::uint32_t ranks) const;
  [[nodiscard]] std::uint32_t blocks(std::uint32_t ranks) const;
};

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE_COLLECTIVE
#include <heddle/schedule/collective/form.ipp>
#endif
