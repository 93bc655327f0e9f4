// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// IslandOptions and IslandCounts: how an Island serves its clients, and what it did.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <heddle/execute/execute_options.hpp>
#include <heddle/systems/pathways/gang_order.hpp>

namespace heddle::inline v0::systems {

/// Options of an Island. The policy and `ahead` of rank 0 count.
struct IslandOptions {
  GangPolicy policy = GangPolicy::fifo;  ///< how the clients take turns
  /// The number of programs that may be dispatched before all ranks have run them. 1: a program is
  /// dispatched when the one before it has run everywhere.
  std::size_t ahead = 16;
  ExecuteOptions wait = {};  ///< how a rank waits for the others
  bool record = false;       ///< keeps what record() returns
  /// Replaces the common order by a choice of each rank, for tests. It gets the clients of the
  /// programs that have arrived, and returns the position of the next program, or nullopt to wait.
  /// Programs that communicate can then wait for one another for ever.
  std::function<std::optional<std::size_t>(std::span<const std::uint32_t>)> pick = {};
};

/// The work of an island in a call of serve().
struct IslandCounts {
  std::uint64_t programs = 0;  ///< programs with calls; only rank 0 counts them
  /// Dispatch messages of these programs to all ranks; only rank 0 counts them.
  std::uint64_t dispatches = 0;
  std::uint64_t posted_early = 0;  ///< transfers whose receives this rank posted ahead of its calls
  /// Calls that this rank could not prepare when their program arrived, because sizes in front of
  /// them were not known yet, see Island::add_unsized().
  std::uint64_t prepared_late = 0;
  /// The number of the client of each program, in the order in which this rank ran the programs.
  std::vector<std::uint32_t> order = {};
};

}  // namespace heddle::inline v0::systems
