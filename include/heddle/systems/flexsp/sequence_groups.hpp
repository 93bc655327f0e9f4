// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SequenceGroups: the communicators of all groups that plans of FlexSP may have, made once.

#include <cstddef>
#include <vector>

#include <heddle/comm/communicator.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>

namespace heddle::inline v0::systems {

/// The communicators of all aligned groups of 2^level ranks that this rank is in, one for each of
/// the log2(N) + 1 levels. They serve the groups of every microbatch of every plan, see
/// systems::plan_sequence_groups(), because the sizes of these fall.
class SequenceGroups {
 public:
  /// Makes the communicators. All ranks of `comm` call it together.
  explicit SequenceGroups(const Communicator& comm);

  /// Number of levels.
  [[nodiscard]] int levels() const noexcept { return static_cast<int>(m_levels.size()); }

  /// Returns the communicator of this rank's group of 2^`level` ranks, in the order of the ranks.
  /// @throws contract_error if there is no such level, or if the ranks are no power of two and the
  ///         last group of the level, which this rank is in, is not complete.
  [[nodiscard]] const Communicator& level(int level) const;

  /// Returns which group of `microbatch` this rank is in.
  /// @throws contract_error if the groups do not have as many ranks as there are, if their sizes
  ///         are not falling powers of two, or if a group does not begin behind the one before it.
  [[nodiscard]] std::size_t number_of(const SequenceMicrobatch& microbatch) const;
  /// Returns the communicator of the group of `microbatch` that this rank is in.
  /// @throws contract_error as number_of().
  [[nodiscard]] const Communicator& group(const SequenceMicrobatch& microbatch) const;

 private:
  static constexpr const char* where = "heddle::systems::SequenceGroups";

  std::size_t m_ranks;
  Rank m_rank;
  std::vector<Communicator> m_levels;
};

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_FULL_SYSTEMS
#include <heddle/systems/flexsp/sequence_groups.ipp>
#endif
