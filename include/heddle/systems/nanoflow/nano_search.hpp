// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// search_nano_plan(): chooses the pieces of a layer, their order and their units by local search
/// with the simulator in the loop.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/systems/nanoflow/nano_batches.hpp>

namespace heddle::inline v0::systems {

/// The options of search_nano_plan().
struct NanoSearchOptions {
  /// The divisions of the batch to try: the samples of each piece. A division cuts all operations.
  std::vector<std::vector<std::int64_t>> divisions = {};
  /// By resource: the numbers of units to try, which always include the whole device. If empty,
  /// every number of units of every resource is tried.
  std::vector<std::vector<int>> units = {};
  int restarts = 8;        ///< random starts of the local search in each division
  std::uint64_t seed = 0;  ///< seed of the random starts
};

/// The result of search_nano_plan().
struct FoundNanoPlan {
  NanoPlan plan;              ///< the best plan
  Seconds makespan = 0;       ///< its makespan by simulate()
  std::size_t simulated = 0;  ///< the number of plans that were simulated
};

/// Returns the plan of least makespan that a local search finds. The plan without pieces
/// (serial_nano_plan() with one share) is a candidate, so the result is never slower than it.
/// Pieces of an operation run in the order of the batch.
///
/// The search starts in each division from the orders "operation by operation" and "piece by piece"
/// and from random ones, with random units. A step changes the units of one piece, the units of two
/// pieces that share the device between them, or the order of two neighbours. The search takes
/// steps while one of them shortens the simulated makespan. NanoFlow solves two integer programs
/// instead, the first without interference. Equal arguments give equal results.
/// @throws contract_error as nano_schedule() does, also for divisions of other sums than the
///         samples; if units to try are not within the device, or if their rows are not those of
///         the resources; or if the number of restarts is negative.
[[nodiscard]] FoundNanoPlan search_nano_plan(const NanoLayer& layer,
                                             const NanoSearchOptions& options);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/nanoflow/nano_search.ipp>
#endif
