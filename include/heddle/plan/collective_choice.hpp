// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CollectiveChoice: how a collective is performed. Lists the candidates on a Machine, predicts
/// their times, and makes the Schedule of one of them.

#include <cstdint>
#include <iosfwd>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace plan {

/// How a collective is performed, independent of its size.
struct CollectiveChoice {
  bool library = false;                                         ///< use the MPI library's own call
  schedule::Algorithm algorithm = schedule::Algorithm::direct;  ///< the algorithm otherwise
  std::vector<schedule::GroupLevel> levels =
      {};           ///< levels of the hierarchical algorithm, innermost first
  Bytes piece = 0;  ///< largest message of a block, in bytes; 0: a block is not cut
  Rank root = {};   ///< the hub of an all-reduce over a tree or star
  /// If true, the ranks of a host read each other's memory. If there are several hosts, `algorithm`
  /// is the algorithm among the hosts; see shared_algorithm().
  bool shared = false;

  friend bool operator==(const CollectiveChoice&, const CollectiveChoice&) = default;
  /// Prints the choice, such as "star by rank 2 in pieces of 16384 bytes", "hierarchical of 4 by
  /// direct, 2 by ring" or "ring over shared memory".
  friend std::ostream& operator<<(std::ostream& out, const CollectiveChoice& choice);
};

/// A choice and its predicted time.
struct CollectivePrediction {
  CollectiveChoice choice;  ///< the choice
  Seconds time = 0;         ///< from the common start of all ranks to the end of the last
};

}  // namespace plan

namespace impl {

/// Returns the Schedule of a choice over shared memory, which still has messages.
/// @throws contract_error if `domains` does not have one number per rank.
[[nodiscard]] Schedule in_domains(schedule::Collective collective, plan::CollectiveChoice choice,
                                  schedule::CollectiveOptions options,
                                  const std::vector<std::uint32_t>& domains);

}  // namespace impl

namespace plan {

/// Returns the Schedule of a collective that is performed by `choice`. Its levels, chunks and root
/// replace those of `options`. Actions are in the order of their predicted times on `machine`, so a
/// rank that walks the list comes to early actions first. `domains` has one number per rank; ranks
/// with the same number share memory. If `choice.shared` is set, data that ranks read from each
/// other is copied out first.
/// @throws contract_error if the choice is the library's own call, which has no Schedule, or if it
///         uses shared memory and `domains` does not have one number per rank. Also what
///         schedule::collective() throws.
[[nodiscard]] Schedule to_schedule(const CollectiveChoice& choice, schedule::Collective collective,
                                   const schedule::CollectiveOptions& options,
                                   const Machine& machine,
                                   const std::vector<std::uint32_t>& domains = {});

/// Returns the Schedule of a choice over shared memory if the machine is not known.
/// @throws contract_error if `domains` does not have one number per rank. Also what
///         schedule::collective() throws.
[[nodiscard]] Schedule to_shared_schedule(const CollectiveChoice& choice,
                                          schedule::Collective collective,
                                          const schedule::CollectiveOptions& options,
                                          const std::vector<std::uint32_t>& domains);

/// Returns the candidates that are equal to `choice` at the size of `options`, including `choice`.
/// They may differ in `piece`, because a short block is one message anyway.
[[nodiscard]] std::vector<CollectiveChoice> same_at(schedule::Collective collective,
                                                    const CollectiveChoice& choice,
                                                    const schedule::CollectiveOptions& options);

/// Returns the candidates for a collective on a machine:
///
/// - every algorithm that performs it, with whole blocks and in pieces, over the best hubs;
/// - hierarchical algorithms over the levels of `options`. If it has none: over near_groups(), with
///   a direct algorithm inside of the groups and every algorithm among them;
/// - algorithms over shared memory, if ranks share memory by `domains`.
///
/// The library's own call is not among them, because only a measurement can price it.
/// @throws contract_error if `domains` is not empty and does not have one number per rank.
[[nodiscard]] std::vector<CollectiveChoice> candidates(
    schedule::Collective collective, const schedule::CollectiveOptions& options,
    const Machine& machine, const std::vector<std::uint32_t>& domains = {});

/// Returns all candidates() with their simulated times, the fastest first. Candidates with equal
/// times keep their order: shared memory first, levels last, and whole blocks before pieces.
/// @throws infeasible if no algorithm performs the collective. Also what candidates() and
///         schedule::collective() throw.
[[nodiscard]] std::vector<CollectivePrediction> predict(
    schedule::Collective collective, const schedule::CollectiveOptions& options,
    const Machine& machine, const std::vector<std::uint32_t>& domains = {});

/// Returns the candidate with the shortest predicted time on `machine`. Throws what predict()
/// throws.
[[nodiscard]] CollectiveChoice choose(schedule::Collective collective,
                                      const schedule::CollectiveOptions& options,
                                      const Machine& machine,
                                      const std::vector<std::uint32_t>& domains = {});

}  // namespace plan
}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/collective_choice.ipp>
#endif
