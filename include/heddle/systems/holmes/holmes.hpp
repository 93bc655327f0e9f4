// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Holmes: a planner for clusters whose nodes have different kinds of network cards.

#include <string_view>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::systems {

/// Returns the ranks of each cluster of a machine: nodes that one kind of network joins. Nodes are
/// the groups of the machine's smallest level that has groups of several ranks, unless these have
/// all ranks. Otherwise they are single ranks.
/// Two nodes belong together if a link between them has at least half of the bandwidth of the best
/// link by which either of them reaches another node, or if a chain of such pairs joins them.
/// Clusters are in the order of their first ranks.
[[nodiscard]] std::vector<std::vector<Rank>> network_clusters(const Machine& machine);

/// The planner of Holmes (Yang et al., "Holmes: Towards Distributed Training Across Clusters with
/// Heterogeneous NIC Environment", 2023). Each cluster of network_clusters() gets stages of its
/// own, so tensor and data groups never span two kinds of network, and only activations and their
/// gradients cross from one cluster to the next. A tensor group lies within a node. Stages get
/// layers in proportion to their speed S: floor(alpha * S / sum S * layers), and the last one the
/// rest. All ranks are used. Replicas divide the optimiser (`zero1`), and the gradients of a stage
/// are summed in buckets while the last backward runs (`Plan::buckets`, shard_updates()).
///
/// It tries every tensor degree, every number of stages that divides a cluster, by cluster, and
/// every number of microbatches, each with and without buckets. Plans without buckets win ties.
struct Holmes {
  static constexpr std::string_view name = "Holmes";  ///< the name that users write

  double alpha = 1.05;  ///< factor of the division of layers
  bool even = false;    ///< stages get equal numbers of layers instead; for comparisons
  int buckets = 8;      ///< the buckets of a stage, see Plan::bucket_count(); 1: none

  /// Returns the best plan by formula().
  /// @throws contract_error if `alpha` is not above 0 and finite, or if there is no bucket.
  [[nodiscard]] plan::FoundPlan search(const plan::PlanProblem& problem) const;

  /// Returns the time of a step: (M - 1) * max(t + x) + sum t + sum x + the greatest h - d of a
  /// stage, or 0. t is the forward and backward of a stage, x the longer of the two messages at the
  /// cut behind it. h is behind_backward(), the part of its sums and updates that no backward of
  /// the stage hides. d is the time from its last backward to that of stage 0: the backwards of the
  /// stages before it and the gradients between them. With one stage, and M microbatches in one
  /// after another, this is simulated_step().
  [[nodiscard]] Seconds formula(const Plan& plan, const plan::PlanProblem& problem) const;
};
static_assert(plan::Planner<Holmes>);

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/holmes/holmes.ipp>
#endif
