// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sequence_explanation.hpp.

#include <ostream>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/sequence_choice.hpp>
#include <heddle/sequence/sequence_explanation.hpp>

namespace heddle::inline v0 {

HEDDLE_FULL_INLINE std::ostream& operator<<(std::ostream& out,
                                            const SequenceExplanation& explanation) {
  out << "with " << explanation.heads_ranks << " heads ranks x " << explanation.ring_ranks
      << " ring ranks:\n"
      << plan::to_table(explanation.here);
  if (!explanation.other.empty())
    out << "with other axes of as many ranks:\n" << plan::to_table(explanation.other);
  if (!explanation.note.empty()) out << "note: " << explanation.note << '\n';
  return out;
}

}  // namespace heddle::inline v0
