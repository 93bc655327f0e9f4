// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SerialStep: the step of a model on one rank, with which a Schedule is compared.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/mesh_shape.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/order/stage_shares.hpp>
#include <heddle/schedule/pass/tie_parameters.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::schedule {

/// The step of a model on one rank: every stage computes every microbatch forward and backward, and
/// applies the sum of all gradients to its parameters once. It also says which part of the step
/// each rank of a Schedule computes, because the actions of a Schedule do not.
struct SerialStep {
  /// The place of a rank in the step.
  struct Place {
    Rank rank = {};           ///< its number in the pipeline; shares are in the order of these
    std::uint32_t line = 0;   ///< the copy of the pipeline; each has microbatches of its own
    std::uint32_t shard = 0;  ///< the part of the parameters that the line holds

    friend bool operator==(const Place&, const Place&) = default;
  };

  StageGraph graph = {};    ///< the stages, and which of them use which outputs
  int microbatches = 1;     ///< in a step; those of each line
  bool trains = true;       ///< whether there are backward passes and updates
  StageShares shares = {};  ///< how the ranks of a stage divide the samples
  /// By stage, the ranks of a pipeline that have its shares, in the order of the shares. Used only
  /// if there are shares.
  std::vector<std::vector<Rank>> ranks = {};
  /// By stage and microbatch: the number of updates of the stage that its passes see. Empty: none,
  /// and each stage has one update, with the gradients of all microbatches.
  std::vector<std::vector<std::uint32_t>> versions = {};
  std::vector<Place> places = {};     ///< by rank; empty: all ranks are in one line
  std::vector<TiedRanges> ties = {};  ///< parameters whose gradients are summed over two stages
  bool rounds = false;  ///< whether values may be rounded in messages, see cast_at_cut()
};

/// Returns the step of `orders`, with the microbatches, the shares and the graph that they name. If
/// they contain updates, a pass sees those that its stage has done at the forward pass of the
/// microbatch. With vertical sync it sees as many as that of the first stage.
[[nodiscard]] SerialStep serial_step(const Orders& orders);

/// Returns the step of the Schedule of `plan` on `ranks` ranks: its buckets are the stages, groups
/// divide the samples, and each part of the sequences is a line. The plan's schedule trains and is
/// synchronous.
/// @throws contract_error if check(plan) does, or if the ranks of a group divide layers.
[[nodiscard]] SerialStep serial_step(const Plan& plan, int ranks);

/// Returns `step` on the ranks of `mesh`, as data_parallel() distributes it. The lines that differ
/// in an axis of `shards` hold other parameters.
[[nodiscard]] SerialStep on_mesh(SerialStep step, const MeshShape& mesh,
                                 std::string_view pipe = "pipe",
                                 const std::vector<std::string>& shards = {});

}  // namespace heddle::inline v0::schedule

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/proof/serial_step.ipp>
#endif
