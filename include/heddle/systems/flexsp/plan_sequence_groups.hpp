// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// plan_sequence_groups(): assigns the sequences of a batch to groups of ranks of several sizes, so
/// that short sequences do not take part in the all-to-alls of long ones (FlexSP).

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/systems/flexsp/sequence_costs.hpp>

namespace heddle::inline v0::systems {

/// Consecutive ranks that compute some sequences. Each sequence is sharded over all of them.
struct SequenceGroup {
  Rank first = 0;                      ///< the first rank, a multiple of `degree`
  int degree = 1;                      ///< number of ranks, a power of two
  std::vector<std::size_t> sequences;  ///< indices of the sequences in the batch, longest first
  std::int64_t tokens = 0;  ///< sum of their tokens, which is the weight of the gradients
  Seconds time = 0;         ///< predicted time; 0 without sequences
};

/// Groups that compute at the same time and contain all ranks together. The largest group comes
/// first.
struct SequenceMicrobatch {
  std::vector<SequenceGroup> groups;  ///< by rank
  Seconds time = 0;                   ///< the time of the slowest group
};

/// An assignment of the sequences of a batch to groups of ranks, one microbatch after another.
struct SequencePlan {
  std::vector<std::int64_t> lengths;             ///< tokens of each sequence, in the given order
  std::vector<SequenceMicrobatch> microbatches;  ///< one after the other
  int ranks = 1;                                 ///< ranks of every microbatch
  Seconds time = 0;                              ///< the sum over the microbatches

  /// Returns the tokens of the batch.
  [[nodiscard]] std::int64_t tokens() const;
  /// Prints one line per microbatch: its time, and for each group the ranks, the number of
  /// sequences, their tokens and the group's time.
  friend std::ostream& operator<<(std::ostream& out, const SequencePlan& plan);
};

/// Returns the weight of a mean over `own` tokens in the mean over `all` tokens: own / all. If each
/// rank multiplies the mean loss of its tokens in a microbatch by this weight, with `all` the
/// tokens of the batch, then the sum of the gradients over all ranks and microbatches is the
/// gradient of the mean loss of the batch. Without tokens the weight is 0.
/// @throws contract_error if `own` is negative or above `all`.
[[nodiscard]] double token_weight(std::int64_t own, std::int64_t all);

/// How plan_sequence_groups() searches.
struct SequenceGroupOptions {
  /// How many numbers of microbatches are tried, starting with the least that memory allows.
  int counts = 5;
  /// The size of all groups, as in methods with one static degree. If 0, the sizes are planned.
  int degree = 0;
  /// The number of nodes of a branch and bound search, which improves the greedy assignment of each
  /// microbatch with at most 32 sequences. If 0, there is no search. In longer microbatches the
  /// greedy assignment is balanced without it.
  std::int64_t nodes = 20'000;
};

/// Returns all multisets of `degrees` with the sum `ranks`, each in descending order. For 64 ranks
/// and the degrees 2, 4, ..., 64 there are 202.
/// @throws contract_error if `degrees` are not ascending powers of two, or if there are more than
///         2^20 ranks or 10^6 multisets.
[[nodiscard]] std::vector<std::vector<int>> group_compositions(int ranks,
                                                               std::span<const int> degrees);

/// Divides `lengths`, which must be in descending order, into `count` consecutive ranges. The
/// largest sum of a range is as small as possible. Returns the ends of the ranges. If there are
/// more ranges than lengths, the last ranges are empty.
/// @throws contract_error if `count` is 0, if a length is negative, or if their sum does not fit in
///         62 bits.
[[nodiscard]] std::vector<std::size_t> divide_evenly(std::span<const std::int64_t> lengths,
                                                     std::size_t count);

/// Returns a plan for sequences with the given numbers of tokens. It tries several numbers of
/// microbatches. For each number, divide_evenly() divides the sequences, longest first, into
/// microbatches of similar numbers of tokens. Each microbatch gets the composition of groups whose
/// slowest group ends first. Sequences are assigned longest first, each to the group that would end
/// first with it. Afterwards sequences are moved or exchanged as long as this makes the slowest
/// group faster. The plan is not always optimal; tests measure the difference.
///
/// Sizes fall from the first group to the last, and are powers of two, so that every group begins
/// at a multiple of its size. log2(N) + 1 splits of a communicator, made once, serve all plans; see
/// aligned_groups().
///
/// Source: Y. Wang et al., "FlexSP: Accelerating Large Language Model Training via Flexible
/// Sequence Parallelism", ASPLOS 2025, which solves a mixed integer programme for each microbatch.
/// @throws contract_error if a length is below 1, if there are more than 2^53 tokens in the batch
///         or in the memory of all ranks, if the costs have no degrees, ranks or tokens, if
///         degrees are not ascending powers of two, if a cost is negative or not finite, if the
///         costs of the batch add up to infinity, or if an option is out of range.
/// @throws infeasible if no group can hold a sequence; the error names its length and the degree
///         that it needs. Also if no composition of the degrees has that many ranks.
[[nodiscard]] SequencePlan plan_sequence_groups(std::vector<std::int64_t> lengths,
                                                const SequenceCosts& costs,
                                                const SequenceGroupOptions& options = {});

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/flexsp/plan_sequence_groups.ipp>
#endif
