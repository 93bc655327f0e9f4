// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// plan::migration(): the messages by which the state of a model goes from the ranks of one
/// division to those of another. State is what lasts from step to step: weights and the optimiser's
/// memory.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::plan {

/// The elements of one array that a rank holds.
struct HeldElements {
  std::size_t array = 0;   ///< the number of the array, the same on every rank
  IndexSet elements = {};  ///< the indices in the whole array

  friend bool operator==(const HeldElements&, const HeldElements&) = default;
};

/// Elements of one array that one rank sends to another.
struct StatePiece {
  Rank from = {};          ///< a rank that held them before
  Rank to = {};            ///< a rank that lacks them
  std::size_t array = 0;   ///< the number of the array
  IndexSet elements = {};  ///< the indices in the whole array

  friend bool operator==(const StatePiece&, const StatePiece&) = default;
};

/// Returns the pieces that ranks must send so that rank r holds `after[r]` if it holds `before[r]`
/// now. Each element that a rank lacks is sent to it exactly once, so no other list sends fewer
/// bytes. If several ranks hold an element, the one that has sent the fewest bytes so far sends it;
/// of equal ones the lowest. `bytes[a]` are the bytes of an element of array a. The pieces are in
/// ascending order of sender, receiver and array. Empty pieces are left out.
/// @throws contract_error if both lists do not have one entry for each rank, if an array is named
///         twice on a rank or has no size, or if no rank holds an element that is needed. The error
///         names the rank, the array and the elements.
[[nodiscard]] std::vector<StatePiece> migration_pieces(
    std::span<const std::vector<HeldElements>> before,
    std::span<const std::vector<HeldElements>> after, std::span<const Bytes> bytes);

/// Returns the Schedule of these pieces on `ranks` ranks: one move from a rank to another that
/// takes all pieces between them, and no other action. A sender has a buffer "leaving" and a
/// receiver a buffer "arriving". Each has one part for each piece, in the order of the pieces. They
/// are not transient: the caller fills the first one and reads the second one.
/// @throws contract_error if a piece names a rank or an array that does not exist.
[[nodiscard]] Schedule migration_schedule(std::span<const StatePiece> pieces, int ranks,
                                          std::span<const Bytes> bytes);

/// Returns the bytes of the state of each layer: `per_parameter` bytes for each byte of its
/// weights. Adam in one precision has 3: the weights and two moments. Gradients do not last.
[[nodiscard]] std::vector<Bytes> state_sizes(const Profile& profile, double per_parameter = 3);

/// Returns the Schedule that takes the state of a model from the ranks of one plan to those of
/// another. `sizes` are the bytes of the state of each layer, see state_sizes(). A rank receives
/// exactly the state that it has in `after` and not in `before`, once. There is one message for
/// each pair of ranks between which state moves. The Schedule is printed, simulated and executed
/// like any other; see migration_schedule() for its buffers.
///
/// All ranks of a stage have the state of its layers, so a rank that joins the stage receives a
/// copy. If the plan has the sharding zero1, zero2 or zero3, each has its even_share() of the
/// elements of the whole stage instead, in the order of the layers. `whole` are the bytes of an
/// element, such as a parameter with the optimiser's memory for it. Weights that the ranks of a
/// stage gather from each other's shares afterwards are not part of the migration.
///
/// The Schedule has `ranks` ranks. 0 stands for all ranks up to the highest one of both plans.
/// @throws contract_error if a plan is invalid for these layers and ranks (see check(const Plan&)),
///         if a stage has a tensor degree above 1 or a plan has another sharding, because then only
///         the model knows the parts of the ranks, or if the state of a layer is no multiple of
///         `whole`. migration_pieces() moves any parts.
[[nodiscard]] Schedule migration(const Plan& before, const Plan& after,
                                 std::span<const Bytes> sizes, int ranks = 0, Bytes whole = 1);

namespace impl {

/// Checks that migration() can move the state of a plan. Errors name the function `where`, and call
/// the plan `what`.
/// @throws contract_error if a stage has a tensor degree above 1, or if the plan has a sharding
///         other than zero1, zero2 and zero3.
void check_movable(const Plan& plan, const char* where, std::string_view what);

}  // namespace impl

/// The bytes and messages of a Schedule of moves between ranks.
struct Moved {
  Bytes bytes = 0;           ///< the bytes of all moves between two ranks
  std::size_t messages = 0;  ///< the number of these moves

  friend bool operator==(const Moved&, const Moved&) = default;
};

/// Returns the bytes and messages that `schedule` sends between ranks.
[[nodiscard]] Moved moved(const Schedule& schedule);

}  // namespace heddle::inline v0::plan

#if HEDDLE_DEFINES_PLAN
#include <heddle/plan/migration.ipp>
#endif
