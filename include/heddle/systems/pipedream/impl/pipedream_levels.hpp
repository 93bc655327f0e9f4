// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PipeDreamLevels: the levels of a machine and the times of messages between their groups.

#include <cstddef>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>

namespace heddle::inline v0::systems::impl {

/// The levels of a machine as PipeDream sees them. The groups of level 0 are the ranks.
struct PipeDreamLevels {
  std::vector<std::vector<std::size_t>> group_of;             ///< by level and rank
  std::vector<std::vector<std::vector<std::size_t>>> inside;  ///< by level and group: those below
  std::vector<std::size_t> sizes;                             ///< ranks in the largest group
  std::vector<double> bandwidth;  ///< between groups of the level below, bytes per second

  explicit PipeDreamLevels(const Machine& machine);

  [[nodiscard]] std::size_t top() const { return sizes.size() - 1; }

  /// Adds a level above the others.
  void add(const std::vector<std::size_t>& groups);

  /// Returns the time by which the sum of gradients delays a microbatch: of `bytes` bytes over `m`
  /// groups, in `copies` places at once.
  [[nodiscard]] Seconds sum(std::size_t level, std::size_t m, std::size_t copies,
                            double bytes) const {
    const auto groups = static_cast<double>(m);
    return 4 * (groups - 1) * bytes /
           (bandwidth[level] * groups * static_cast<double>(sizes[level - 1])) /
           (groups * static_cast<double>(copies));
  }
  /// Returns the time of a microbatch's activations and their gradients at a cut.
  [[nodiscard]] Seconds transfer(std::size_t level, std::size_t replicas, double bytes) const {
    return 2 * bytes / (bandwidth[level] * static_cast<double>(replicas));
  }
};

}  // namespace heddle::inline v0::systems::impl

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/pipedream/impl/pipedream_levels.ipp>
#endif
