// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceExplanation: the methods for attention over a sharded sequence, with their bytes,
/// messages and predicted times.

#include <iosfwd>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/sequence_choice.hpp>

namespace heddle::inline v0 {

/// The result of SequenceLine::explain(). Candidates that can be used come first in both lists, the
/// least time first.
struct SequenceExplanation {
  int heads_ranks = 1;                              ///< ranks of the line's heads axis
  int ring_ranks = 1;                               ///< ranks of the line's ring axis
  std::vector<plan::SequenceCandidate> here = {};   ///< the methods for these axes
  std::vector<plan::SequenceCandidate> other = {};  ///< methods for other axes of as many ranks
  std::string note = {};  ///< what the options of the line do not gain; empty: nothing to say

  /// Prints a line for each method: the bytes and messages of a rank, the predicted times in
  /// seconds, or why the method is refused. The note comes last.
  friend std::ostream& operator<<(std::ostream& out, const SequenceExplanation& explanation);
};

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SEQUENCE
#include <heddle/sequence/sequence_explanation.ipp>
#endif
