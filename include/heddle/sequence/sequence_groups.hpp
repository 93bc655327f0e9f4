// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceGroups: the communicators of all groups that plans of FlexSP may have, made once.

#include <cstddef>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/aligned_groups.hpp>
#include <heddle/plan/sequence_groups.hpp>

namespace heddle::inline v0 {

/// The communicators of all aligned groups of 2^level ranks that this rank is in, one for each of
/// the log2(N) + 1 levels. They serve the groups of every microbatch of every plan, see
/// plan::plan_sequence_groups(), because the sizes of these fall.
class SequenceGroups {
 public:
  /// Makes the communicators. All ranks of `comm` call it together.
  explicit SequenceGroups(const Communicator& comm)
      : m_ranks(static_cast<std::size_t>(comm.size())), m_rank(comm.rank()) {
    comm.expect_not_empty(where);
    for (int level = 0; level < plan::group_levels(comm.size()); ++level)
      m_levels.push_back(comm.split(static_cast<int>(+m_rank >> level), static_cast<int>(+m_rank)));
  }

  /// Number of levels.
  [[nodiscard]] int levels() const noexcept { return static_cast<int>(m_levels.size()); }

  /// Returns the communicator of this rank's group of 2^`level` ranks, in the order of the ranks.
  /// @throws contract_error if there is no such level, or if the ranks are no power of two and the
  ///         last group of the level, which this rank is in, is not complete.
  [[nodiscard]] const Communicator& level(int level) const {
    expects(level >= 0 && level < levels(), [&] {
      return ErrorInfo{
          where, "there is no group of so many ranks",
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

  /// Returns which group of `microbatch` this rank is in.
  /// @throws contract_error if the groups do not have as many ranks as there are, or if their sizes
  ///         are not falling powers of two.
  [[nodiscard]] std::size_t number_of(const plan::SequenceMicrobatch& microbatch) const {
    std::vector<int> sizes;
    for (const plan::SequenceGroup& group : microbatch.groups) sizes.push_back(group.degree);
    const auto groups = plan::aligned_groups(sizes);
    expects(groups.size() == m_ranks, [&] {
      return ErrorInfo{
          where, "the plan of a microbatch is for another number of ranks",
          text("its groups have ", groups.size(), " ranks, the communicator has ", m_ranks),
          "plan with the number of ranks of the communicator"};
    });
    std::size_t number = 0;
    for (std::size_t end = 0; number < sizes.size(); ++number) {
      end += static_cast<std::size_t>(sizes[number]);
      if (+m_rank < end) break;
    }
    return number;
  }
  /// Returns the communicator of the group of `microbatch` that this rank is in.
  /// @throws contract_error as number_of().
  [[nodiscard]] const Communicator& group(const plan::SequenceMicrobatch& microbatch) const {
    const int degree = microbatch.groups[number_of(microbatch)].degree;
    return level(plan::group_levels(degree) - 1);
  }

 private:
  static constexpr const char* where = "heddle::SequenceGroups";

  std::size_t m_ranks;
  Rank m_rank;
  std::vector<Communicator> m_levels;
};

}  // namespace heddle::inline v0
