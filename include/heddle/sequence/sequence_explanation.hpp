// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceExplanation: the methods for attention over a sharded sequence, with their bytes,
/// messages and predicted times.

#include <ostream>
#include <string>
#include <vector>

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
  friend std::ostream& operator<<(std::ostream& out, const SequenceExplanation& explanation) {
    out << "with " << explanation.heads_ranks << " heads ranks x " << explanation.ring_ranks
        << " ring ranks:\n"
        << plan::to_table(explanation.here);
    if (!explanation.other.empty())
      out << "with other axes of as many ranks:\n" << plan::to_table(explanation.other);
    if (!explanation.note.empty()) out << "note: " << explanation.note << '\n';
    return out;
  }
};

}  // namespace heddle::inline v0
