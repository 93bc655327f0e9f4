// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CollectiveForm: a collective by an algorithm, as a generator that expand() takes.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/hierarchical.hpp>
#include <heddle/schedule/collective/read_inputs.hpp>
#include <heddle/schedule/collective/rounds.hpp>
#include <heddle/schedule/collective/team.hpp>

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
  [[nodiscard]] std::size_t members(std::size_t ranks) const {
    switch (collective) {
      case Collective::all_to_all: return 2 * ranks;
      case Collective::all_gather: return apart ? 2 * ranks : ranks;
      case Collective::gather:
      case Collective::scatter: return ranks + 1;
      default: return ranks;
    }
  }
  /// Number of ranks that have so many members.
  [[nodiscard]] std::size_t ranks(std::size_t members) const {
    switch (collective) {
      case Collective::all_to_all: return members / 2;
      case Collective::all_gather: return apart ? members / 2 : members;
      case Collective::gather:
      case Collective::scatter: return members - 1;
      default: return members;
    }
  }

  /// In how many parts a range must be cut; of one that has P blocks, each block.
  [[nodiscard]] std::uint32_t parts(std::size_t members) const {
    expects(chunks >= 1, [&] {
      return Complaint{"heddle::schedule::CollectiveForm", "a block has at least one chunk",
                       text("chunks = ", chunks)};
    });
    return blocks(static_cast<std::uint32_t>(ranks(members))) * static_cast<std::uint32_t>(chunks);
  }

  /// Appends the actions.
  /// @throws infeasible where the algorithm does not perform the collective.
  void operator()(Builder& builder, std::span<const Use> members, Stage stage) const {
    const auto p = static_cast<std::uint32_t>(ranks(members.size()));
    if (const std::string why = why_not(p); !why.empty())
      throw infeasible({"heddle::schedule::CollectiveForm",
                        text("no ", collective, " of ", p, " ranks by ", algorithm), why});
    const std::uint32_t cut = parts(members.size());
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::uint32_t expected = has_all_blocks(i, p) ? cut * p
                                     : apart && i < p     ? cut / p
                                                          : cut;
      expects(members[i].count == expected, [&] {
        return Complaint{"heddle::schedule::CollectiveForm", "a member is cut otherwise",
                         text("member ", i, " of ", members.size(), " has ", members[i].count,
                              " parts, expected ", expected)};
      });
    }
    Rounds rounds;
    play(collective, Team::of(rounds, p, blocks(p), root.value), hierarchy(p));
    if (apart) read_inputs(rounds, p, blocks(p) / p);
    std::vector<Use> all(members.begin(), members.end());
    const std::vector<GroupLevel> played = hierarchy(p);
    if (played.size() == 1)
      if (const Recipe recipe = find_recipe(collective, played[0].algorithm);
          recipe.keep != nullptr)
        recipe.keep(builder, all, root.value, cut);
    append(builder, all, stage, rounds, chunks);
  }

  /// Why so many ranks cannot do it; empty where they can.
  [[nodiscard]] std::string why_not(std::uint32_t ranks) const {
    if (root.value >= ranks) return text("the root is rank ", root);
    if (collective == Collective::barrier && chunks > 1) return "nothing is cut in chunks";
    if (collective != Collective::all_gather && apart) return "its inputs do not lie apart";
    return schedule::why_not(collective, hierarchy(ranks), ranks);
  }

 private:
  /// Whether parts() is of each block of member `i`.
  [[nodiscard]] bool has_all_blocks(std::size_t i, std::size_t ranks) const {
    return collective == Collective::all_to_all ||
           (collective == Collective::gather && i == ranks) ||
           (collective == Collective::scatter && i == 0);
  }

  /// Any algorithm is a hierarchy of one level.
  [[nodiscard]] std::vector<GroupLevel> hierarchy(std::uint32_t ranks) const {
    if (algorithm == Algorithm::hierarchical) return levels;
    return {{static_cast<int>(ranks), algorithm}};
  }
  [[nodiscard]] std::uint32_t blocks(std::uint32_t ranks) const {
    return blocks_of(collective, hierarchy(ranks), ranks);
  }
};

}  // namespace heddle::inline v0::schedule
