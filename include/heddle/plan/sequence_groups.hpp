// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// plan_sequence_groups(): sequences of a batch to groups of ranks of several sizes, so that short
/// sequences do not pay for the all-to-alls of long ones (FlexSP).

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/sequence_costs.hpp>

namespace heddle::inline v0::plan {

/// Consecutive ranks that compute some sequences, each sharded over all of them.
struct SequenceGroup {
  Rank first = 0;                      ///< the first rank, a multiple of `degree`
  int degree = 1;                      ///< number of ranks, a power of two
  std::vector<std::size_t> sequences;  ///< their places in the batch, longest first
  std::int64_t tokens = 0;             ///< all tokens: the weight of the gradients
  Seconds time = 0;                    ///< 0 without sequences
};

/// Groups that compute at the same time, sizes falling, on all ranks.
struct SequenceMicrobatch {
  std::vector<SequenceGroup> groups;  ///< by rank
  Seconds time = 0;                   ///< the time of the slowest group
};

/// An assignment of the sequences of a batch to groups of ranks, microbatch after microbatch.
struct SequencePlan {
  std::vector<std::int64_t> lengths;             ///< the batch, in the given order
  std::vector<SequenceMicrobatch> microbatches;  ///< one after the other
  int ranks = 1;                                 ///< ranks of every microbatch
  Seconds time = 0;                              ///< the sum over the microbatches

  /// Returns the tokens of the batch.
  [[nodiscard]] std::int64_t tokens() const;
  /// Prints one line a microbatch: its time, and for each group the ranks, the number of sequences,
  /// their tokens and the group's time.
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
  /// Numbers of microbatches that are tried, from the least that memory allows.
  int counts = 5;
  /// All groups have this size, as in methods with one static degree; 0: sizes are planned.
  int degree = 0;
  /// Nodes that a branch and bound visits in each microbatch of at most 32 sequences, behind the
  /// greedy assignment; 0: no search. In long microbatches the greedy assignment is balanced
  /// anyway.
  std::int64_t nodes = 20'000;
};

/// Returns the multisets of `degrees` that add up to `ranks`, each with sizes falling: 202 for 64
/// ranks and the degrees 2, 4, ..., 64.
/// @throws contract_error for degrees that are not ascending powers of two.
[[nodiscard]] std::vector<std::vector<int>> group_compositions(int ranks,
                                                               std::span<const int> degrees);

/// Divides `lengths`, in falling order, into `count` consecutive ranges so that the largest sum is
/// as small as possible. Returns the ends of the ranges; with more ranges than lengths, the last
/// are empty.
/// @throws contract_error for no ranges.
[[nodiscard]] std::vector<std::size_t> divide_evenly(std::span<const std::int64_t> lengths,
                                                     std::size_t count);

/// Returns a plan for sequences of so many tokens. It tries several numbers of microbatches, each
/// with balanced tokens (divide_evenly() of the sequences, longest first). Each microbatch gets the
/// composition of groups for which the slowest group ends first. Sequences go to groups longest
/// first, each to the group that ends first with it, and then move or change places while that
/// makes the slowest group faster. Not always optimal: tests measure the gap.
///
/// Sizes fall from the first group to the last, and are powers of two, so that every group begins
/// at a multiple of its size. log2(N) + 1 splits of a communicator, made once, serve all plans; see
/// aligned_groups().
///
/// Source: Y. Wang et al., "FlexSP: Accelerating Large Language Model Training via Flexible
/// Sequence Parallelism", ASPLOS 2025, which solves a mixed integer programme for each microbatch.
/// @throws contract_error for lengths below 1, more than 2^53 tokens in the batch or in the memory
///         of all ranks, costs without degrees, ranks or tokens, degrees that are not ascending
///         powers of two, costs that are negative or not finite, and options out of range.
///         infeasible for a sequence that no group holds; it names the length and the degree that
///         the sequence needs. Also if no composition of the degrees has that many ranks.
[[nodiscard]] SequencePlan plan_sequence_groups(std::vector<std::int64_t> lengths,
                                                const SequenceCosts& costs,
                                                const SequenceGroupOptions& options = {});

}  // namespace heddle::inline v0::plan

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/sequence_groups.ipp>
#endif
