// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// systems::local_steps(): the Schedule of data-parallel training in which the ranks take several
/// local steps between two averages, and an average may arrive one round late.

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/collective/algorithm.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::systems {

/// The options of local_steps().
struct LocalStepsOptions {
  int ranks = 1;   ///< number of ranks
  int steps = 1;   ///< local steps of a round, tau in the paper
  int delay = 1;   ///< rounds by which an average is late: 0 or 1
  int rounds = 1;  ///< rounds that the list contains
  schedule::Algorithm algorithm = schedule::Algorithm::ring;  ///< algorithm of both halves
  int chunks = 1;             ///< consecutive messages that carry a block
  Bytes bytes = 0;            ///< the bytes of a rank's parameters
  Scalar type = Scalar::f64;  ///< the type of the parameters
};

/// Returns the Schedule of rounds of local steps. In a round every rank takes `steps` local steps,
/// which are user actions that update its buffer of role "parameters". A reduce-scatter sums the
/// ranks' buffers of role "data". An update action on every rank then moves its block of the
/// parameters that all ranks share, with the state in its buffer of role "outer", which is the
/// shared block and its momentum. An all-gather brings the new shared parameters to all ranks, and
/// a last update action puts them in the place of the rank's own. So each rank stores the momentum
/// of its block only, as with ZeRO, and sends as many bytes as in an all-reduce. LocalUpdates is
/// the model that performs these actions. The item of a user action is the number of its step.
///
/// - If `delay` is 0, an update action first copies the parameters to "data" after the last local
///   step. The sum and the other update actions follow. With one step this is data parallelism.
/// - If `delay` is 1, the sum runs beside the local steps, and "data" has the parameters at the end
///   of the round before. The update action at the end of the round exchanges the new shared
///   parameters and the present ones. This is the overlap of CO2 (Sun et al., ICLR 2024). The
///   rounds of messages are spread evenly over the local steps, so the thread that computes
///   also makes the progress of the messages. It then needs at least as many local steps as the
///   algorithm has rounds: 2 (P - 1) for a ring, 2 for Algorithm::direct.
///
/// Let c be the time of a local step, A that of the messages and u that of an update action. A
/// round takes max(steps c, A + u) + u with the delay and steps c + A + 3 u without it.
/// @throws contract_error if `ranks`, `steps` or `rounds` is below 1, if `delay` is not 0 or 1, or
///         if the bytes are not whole elements.
/// @throws infeasible if the algorithm has no reduce-scatter or no all-gather.
[[nodiscard]] Schedule local_steps(const LocalStepsOptions& options);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/co2/local_steps.ipp>
#endif
