// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of sequence_groups.hpp.

#include <cstddef>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/flexsp/aligned_groups.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_groups.hpp>

namespace heddle::inline v0::systems {

HEDDLE_FULL_INLINE SequenceGroups::SequenceGroups(const Communicator& comm)
    : m_ranks(static_cast<std::size_t>(comm.size())), m_rank(comm.rank()) {
  comm.expect_not_empty(where);
  for (int level = 0; level < group_levels(comm.size()); ++level)
    m_levels.push_back(comm.split(static_cast<int>(+m_rank >> level), static_cast<int>(+m_rank)));
}

HEDDLE_FULL_INLINE const Communicator& SequenceGroups::level(int level) const {
  expects(level >= 0 && level < levels(), [&] {
    return ErrorInfo{where, "there is no group of so many ranks",
                     text("level ", level, ", the ", m_ranks, " ranks have ", levels(), " levels")};
  });
  const Communicator& group = m_levels[static_cast<std::size_t>(level)];
  expects(group.size() == 1 << level, [&] {
    return ErrorInfo{where, "the last group of a level is not complete",
                     text("level ", level, ", rank ", m_rank, " of ", m_ranks),
                     "choose a smaller degree for the last ranks"};
  });
  return group;
}

HEDDLE_FULL_INLINE std::size_t SequenceGroups::number_of(
    const SequenceMicrobatch& microbatch) const {
  std::vector<int> sizes;
  for (const SequenceGroup& group : microbatch.groups) sizes.push_back(group.degree);
  const auto groups = aligned_groups(sizes);
  expects(groups.size() == m_ranks, [&] {
    return ErrorInfo{
        where, "the plan of a microbatch is for another number of ranks",
        text("its groups have ", groups.size(), " ranks, the communicator has ", m_ranks),
        "plan with the number of ranks of the communicator"};
  });
  for (std::size_t g = 0, begin = 0; g < sizes.size(); ++g) {
    const SequenceGroup& group = microbatch.groups[g];
    expects(group.first == begin, [&] {
      return ErrorInfo{where, "the groups of a microbatch are not those of consecutive ranks",
                       text("groups[", g, "].first is rank ", group.first, ", expected ", begin)};
    });
    begin += static_cast<std::size_t>(group.degree);
  }
  std::size_t number = 0;
  for (std::size_t end = 0; number < sizes.size(); ++number) {
    end += static_cast<std::size_t>(sizes[number]);
    if (+m_rank < end) break;
  }
  return number;
}

HEDDLE_FULL_INLINE const Communicator& SequenceGroups::group(
    const SequenceMicrobatch& microbatch) const {
  const int degree = microbatch.groups[number_of(microbatch)].degree;
  return level(group_levels(degree) - 1);
}

}  // namespace heddle::inline v0::systems
