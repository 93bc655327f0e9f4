// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Choosing how a collective travels: the candidates there are on a Machine, what each would take
/// there, and the Schedule of one of them.

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

/// How a collective is performed, whatever its size.
struct CollectiveChoice {
  bool library = false;                                         ///< by the MPI library's own call
  schedule::Algorithm algorithm = schedule::Algorithm::direct;  ///< by this one, otherwise
  std::vector<schedule::GroupLevel> levels = {};  ///< of the hierarchical one, innermost first
  Bytes piece = 0;  ///< most bytes of a message that carries one block; 0: a block is not cut
  Rank root = {};   ///< of an all-reduce over a tree or star: through whom it goes
  /// Ranks of one host read each other's memory, in levels where there are several hosts, among
  /// which the algorithm is this one: see shared_algorithm().
  bool shared = false;

  friend bool operator==(const CollectiveChoice&, const CollectiveChoice&) = default;
  /// "star by rank 2 in pieces of 16384 bytes", "hierarchical of 4 by direct, 2 by ring", "ring
  /// over shared memory"
  friend std::ostream& operator<<(std::ostream& out, const CollectiveChoice& choice);
};

/// What a choice would take.
struct CollectivePrediction {
  CollectiveChoice choice;  ///< what is chosen
  Seconds time = 0;         ///< from the begin of all ranks to the end of the last
};

/// The Schedule of a collective as `choice` has it, whose levels, chunks and root replace those of
/// `options`, in the order of the times that it is expected to have on `machine`: a rank that walks
/// the list finds what comes early first. Over shared memory, which ranks have as `domains` say
/// (one number per rank), what ranks read of each other is copied out: see share_copies().
/// @throws contract_error for the library's own call, which is no Schedule, and for shared memory
///         where `domains` have not one number per rank; what schedule::collective() throws.
[[nodiscard]] Schedule to_schedule(const CollectiveChoice& choice, schedule::Collective collective,
                                   const schedule::CollectiveOptions& options,
                                   const Machine& machine,
                                   const std::vector<std::uint32_t>& domains = {});

/// The Schedule of a choice over shared memory where nothing is known of the machine.
/// @throws contract_error where `domains` have not one number per rank; what schedule::collective()
///         throws.
[[nodiscard]] Schedule to_shared_schedule(const CollectiveChoice& choice,
                                          schedule::Collective collective,
                                          const schedule::CollectiveOptions& options,
                                          const std::vector<std::uint32_t>& domains);

/// The candidates that are the same as this one at that size, itself among them: a short block is
/// one message, whatever longer ones are cut in.
[[nodiscard]] std::vector<CollectiveChoice> same_at(schedule::Collective collective,
                                                    const CollectiveChoice& choice,
                                                    const schedule::CollectiveOptions& options);

/// What there is to choose from for a collective on a machine: every algorithm that performs it,
/// its blocks uncut and in pieces, over the best hubs; over levels, those of `options`, or else
/// straight inside of near_groups() and by every algorithm among them; and, where ranks share
/// memory as `domains` say, over that. Not the library's own call, which only a measurement can
/// price.
/// @throws contract_error for domains that are neither none nor one number per rank.
[[nodiscard]] std::vector<CollectiveChoice> candidates(
    schedule::Collective collective, const schedule::CollectiveOptions& options,
    const Machine& machine, const std::vector<std::uint32_t>& domains = {});

/// All candidates() with their simulated times, the fastest first; at equal times in their order,
/// those over shared memory first, levels last, and short ones before those that are cut.
/// @throws infeasible where no algorithm performs the collective; what candidates() and
///         schedule::collective() throw.
[[nodiscard]] std::vector<CollectivePrediction> predict(
    schedule::Collective collective, const schedule::CollectiveOptions& options,
    const Machine& machine, const std::vector<std::uint32_t>& domains = {});

/// The candidate that is expected to be the fastest on `machine`. @throws what predict() throws.
[[nodiscard]] CollectiveChoice choose(schedule::Collective collective,
                                      const schedule::CollectiveOptions& options,
                                      const Machine& machine,
                                      const std::vector<std::uint32_t>& domains = {});

}  // namespace heddle::inline v0

#if HEDDLE_HEADER_ONLY
#include <heddle/plan/collective_choice.ipp>
#endif
