// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// OperationGraph: operations and their messages as a graph, and cut_stages(), which divides it
/// into stages of a pipeline without putting it into a line first.

#include <cstddef>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/plan/solver/program_solver.hpp>

namespace heddle::inline v0::systems {

/// A graph of vertices that are divided over stages.
struct OperationGraph {
  /// Two vertices in order: `last` is in the stage of `first` or in a later one.
  struct Order {
    std::size_t first = 0;  ///< a vertex
    std::size_t last = 0;   ///< another vertex
  };
  /// Data that several vertices have: the one that makes it and those that use it. It is sent from
  /// stage to stage, so it costs its bytes for each cut between the least and the greatest stage of
  /// its vertices.
  struct Data {
    std::vector<std::size_t> vertices = {};  ///< the maker and the users
    double bytes = 0;                        ///< a cut
  };

  std::vector<double> work = {};   ///< by vertex, such as flops
  std::vector<Order> orders = {};  ///< without a cycle
  std::vector<Data> data = {};     ///< what vertices share

  /// Returns the bytes over all cuts if vertex v is in stage `stages[v]`.
  [[nodiscard]] double bytes(const std::vector<int>& stages) const;
};

/// How cut_stages() searches.
struct StageCutOptions {
  double tolerance = 0.1;       ///< a stage has at most 1 + tolerance times its share of the work
  std::size_t binaries = 48;    ///< binaries of the integer program at most
  std::size_t programs = 400;   ///< linear programs of its search at most
  plan::AnySolver solver = {};  ///< solves the integer program
};

/// A division into stages.
struct StageCut {
  std::vector<int> stages = {};  ///< by vertex; empty: no division that was found is balanced
  double bytes = 0;              ///< over all cuts
  bool optimal = false;          ///< whether no balanced division has fewer bytes
  std::size_t programs = 0;      ///< linear programs that were solved
};

/// Returns the balanced division of a graph into `stages` stages with the fewest bytes over its
/// cuts.
///
/// Every stage k > 0 and vertex v have a binary: v is in stage k or a later one. Data has a
/// variable for each cut that is at least the greatest of its vertices' binaries minus the least.
/// If there are more than `binaries` of them, or if the search does not end in time, the best of
/// several linear orders is taken, cut by dynamic programming; `optimal` is false then.
/// @throws contract_error if `stages` < 1, if a vertex does not exist, or if the orders have a
///         cycle.
[[nodiscard]] StageCut cut_stages(const OperationGraph& graph, int stages,
                                  const StageCutOptions& options = {});

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/rhino/stage_cut.ipp>
#endif
