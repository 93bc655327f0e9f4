// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CollectiveForm: a collective by an algorithm, as a generator that expand() takes.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/hierarchical.hpp>

namespace heddle::inline v0 {

class Builder;

}  // namespace heddle::inline v0

namespace heddle::inline v0::schedule {

/// Which collective, by which algorithm. The members of a group action that it takes the place of
/// are
/// - of all_reduce, reduce_scatter, all_gather, broadcast, reduce, barrier and the scans one range
///   per rank, which is changed in place;
/// - of an all_gather whose inputs lie apart the inputs of all ranks, a block each, then their
///   outputs;
/// - of all_to_all the inputs of all ranks, then their outputs, each of P blocks;
/// - of gather the inputs of all ranks, then the root's output of P blocks; of scatter the root's
///   input of P blocks, then the outputs of all ranks.
///
/// The result of a merge is the same on all ranks and in all runs; what is merged must be
/// associative, and commutative but in scans, and by star and binomial_tree with root 0, or levels
/// of these whose groups are ranks that follow one another, which merge members in their order. The
/// other algorithms say in which order they merge.
struct CollectiveForm {
  Collective collective = Collective::all_reduce;  ///< what
  Algorithm algorithm = Algorithm::ring;           ///< how
  int chunks = 1;                       ///< messages that a block travels in, one behind the other
  Rank root = {};                       ///< member that has everything before, or after
  std::vector<GroupLevel> levels = {};  ///< of the hierarchical algorithm, innermost first
  bool apart = false;                   ///< of all_gather: inputs are no parts of the outputs

  /// Number of members of so many ranks.
  [[nodiscard]] std::size_t members(std::size_t ranks) const;
  /// Number of ranks that have so many members.
  [[nodiscard]] std::size_t ranks(std::size_t members) const;

  /// In how many parts a range must be cut; of one that has P blocks, each block.
  [[nodiscard]] std::uint32_t parts(std::size_t members) const;

  /// Appends the actions.
  /// @throws infeasible where the algorithm does not perform the collective.
  void operator()(Builder& builder, std::span<const Use> members, Stage stage) const;

  /// Why so many ranks cannot do it; empty where they can.
  [[nodiscard]] std::string why_not(std::uint32_t ranks) const;

 private:
  /// Whether parts() is of each block of member `i`.
  [[nodiscard]] bool has_all_blocks(std::size_t i, std::size_t ranks) const;

  /// Any algorithm is a hierarchy of one level.
  [[nodiscard]] std::vector<GroupLevel> hierarchy(std::uint32_t ranks) const;
  [[nodiscard]] std::uint32_t blocks(std::uint32_t ranks) const;
};

}  // namespace heddle::inline v0::schedule

#if HEDDLE_HEADER_ONLY
#include <heddle/schedule/collective/form.ipp>
#endif
