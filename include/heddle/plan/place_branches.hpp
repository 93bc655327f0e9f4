// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// place_branches(): puts the branches of a StageGraph on workers, the longest first, such as the
/// streams of a network that fusions join.

#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/impl/branch_graph.hpp>
#include <heddle/plan/impl/branch_search.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/stage_graph.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>

namespace heddle::inline v0::plan {

/// The options of place_branches().
struct BranchOptions {
  int workers = 1;                  ///< number of workers, which are the ranks of the Schedule
  std::vector<Bytes> outputs = {};  ///< bytes of the output of each stage; empty: 0 bytes each
  /// The most steps of the search. A step puts a branch on a worker; a simulation counts as a step
  /// for each branch. 0: longest first alone.
  std::uint64_t steps = 20'000;
};

/// The result of place_branches().
template <class Time>
struct PlacedBranches {
  Orders orders;      ///< the stages of every worker in their order
  Schedule schedule;  ///< the woven orders, with the sizes of the outputs
  Time makespan;      ///< its makespan by simulate()
  bool optimal;       ///< true if the search is complete or a lower bound is reached
};

/// Returns orders in which every worker computes the forwards of some branches of `graph`, for one
/// microbatch. A branch is a longest chain of stages without a fork or a fusion inside. It stays on
/// one worker, which computes it without a pause for another branch.
///
/// Longest first (LPT: Graham, "Bounds on multiprocessing timing anomalies", 1969) takes the
/// branches by the longest path from their begin to the end of all work. Each goes to the worker
/// that can begin it first; among equals, to the one that has most of its inputs. For branches that
/// begin together this takes at most 4/3 - 1/(3 workers) of the least time. A search then tries all
/// workers and orders by branch and bound, as far as `options.steps` allow. The result has the
/// least makespan of those that were found, and at equal makespans the fewest bytes in messages.
///
/// If the result is `optimal` and messages take no time, no other placement and no other order of
/// the branches has a smaller makespan. Workers without branches so far count as alike.
/// @param graph forwards only; edges at a backward pass are not used
/// @param costs prices the stages and the messages, as in simulate()
/// @param options the workers, the outputs and the steps of the search
/// @throws contract_error if there are no workers, more than 2^20, or no stages, if the sizes are
///         not one for each stage, or if the graph has a cycle or an edge to no stage.
template <Costs C>
[[nodiscard]] PlacedBranches<typename C::Time> place_branches(const StageGraph& graph,
                                                              const C& costs,
                                                              const BranchOptions& options) {
  constexpr const char* where = "heddle::plan::place_branches";
  expects(options.workers >= 1 && options.workers <= 1 << 20 && graph.stages >= 1, [&] {
    return ErrorInfo{where, "there must be at least one stage, and 1 to 2^20 workers",
                     text("workers = ", options.workers, ", stages = ", graph.stages)};
  });
  const auto stages = static_cast<std::size_t>(graph.stages);
  expects(options.outputs.empty() || options.outputs.size() == stages, [&] {
    return ErrorInfo{where, "every stage needs the size of its output",
                     text(options.outputs.size(), " sizes for ", stages, " stages")};
  });
  impl::BranchSearch<C> search(graph, costs, options.workers, options.outputs);
  search.longest_first();
  const bool optimal = search.improve(options.steps);
  return {search.orders(), search.schedule(), search.makespan(), optimal};
}

}  // namespace heddle::inline v0::plan
