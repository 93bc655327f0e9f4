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
  /// The most placements to compare. If there are more, only the one of longest first is made.
  std::uint64_t placements = 4096;
};

/// The result of place_branches().
template <class Time>
struct PlacedBranches {
  Orders orders;      ///< the stages of every worker in their order
  Schedule schedule;  ///< the woven orders, with the sizes of the outputs
  Time makespan;      ///< its makespan by simulate()
  bool compared_all;  ///< true if no other placement has a smaller makespan
};

/// Returns orders in which every worker computes the forwards of some branches of `graph`, for one
/// microbatch. A branch is a longest chain of stages without a fork or a fusion inside, and stays
/// on one worker. A worker computes its branches one after another, first the one from whose begin
/// the longest path leads to the end.
///
/// Longest first (LPT: Graham, "Bounds on multiprocessing timing anomalies", 1969): in that order
/// each branch goes to the worker that can begin it first; among equals, to the one that has most
/// of its inputs. For branches that begin together this takes at most 4/3 - 1/(3 workers) of the
/// least time, without messages. If there are at most `options.placements` placements, all of them
/// are simulated, and the best replaces it: first the least makespan, then the fewest bytes in
/// messages. Placements that differ only in the names of the workers count once, so the workers
/// should be alike.
///
/// If the branches between a fork and its fusion all begin together, the result of a comparison of
/// all placements has the least makespan of any schedule that does not divide branches.
/// @param graph forwards only; edges at a backward pass are not used
/// @param costs prices the stages and the messages, as in simulate()
/// @throws contract_error if there are no workers or stages, if the sizes are not one for each
///         stage, or if the graph has a cycle or an edge to no stage.
template <Costs C>
[[nodiscard]] PlacedBranches<typename C::Time> place_branches(const StageGraph& graph,
                                                              const C& costs,
                                                              const BranchOptions& options) {
  constexpr const char* where = "heddle::plan::place_branches";
  expects(options.workers >= 1 && graph.stages >= 1, [&] {
    return ErrorInfo{where, "there must be at least one worker and one stage",
                     text("workers = ", options.workers, ", stages = ", graph.stages)};
  });
  const auto stages = static_cast<std::size_t>(graph.stages);
  expects(options.outputs.empty() || options.outputs.size() == stages, [&] {
    return ErrorInfo{where, "every stage needs the size of its output",
                     text(options.outputs.size(), " sizes for ", stages, " stages")};
  });
  impl::BranchSearch<C> search(graph, costs, options.workers, options.outputs);
  search.longest_first();
  const bool all = search.placements(options.placements) <= options.placements;
  if (all) search.compare_all();
  return {search.orders(), search.schedule(), search.makespan(), all};
}

}  // namespace heddle::inline v0::plan
