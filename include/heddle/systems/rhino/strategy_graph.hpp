// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StrategyGraph: nodes that each need one of several strategies, with costs of nodes and of pairs
/// of neighbours. choose_strategies() finds the choice of the least cost.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/solver/program_solver.hpp>

namespace heddle::inline v0::systems {

/// A graph of choices. Each node takes one strategy; a choice costs the sum of its nodes' and its
/// edges' costs. A cost of infinity forbids a strategy or a pair.
struct StrategyGraph {
  /// A node, such as a group of operations that are divided in one way.
  struct Node {
    std::string name = {};            ///< shown to people
    std::vector<Seconds> costs = {};  ///< by strategy
    std::vector<double> bytes = {};   ///< memory of a rank, by strategy; empty: none
  };
  /// The costs between two nodes, such as those of a message.
  struct Edge {
    std::size_t from = 0;             ///< a node
    std::size_t to = 0;               ///< another node
    std::vector<Seconds> costs = {};  ///< at [strategy of from * strategies of to + that of to]
  };

  std::vector<Node> nodes = {};         ///< the nodes
  std::vector<Edge> edges = {};         ///< two nodes may have several edges
  std::optional<double> capacity = {};  ///< the most bytes of all nodes together

  /// Returns the cost of a choice: the strategy of each node.
  [[nodiscard]] Seconds cost(const std::vector<std::size_t>& choice) const;
  /// Returns the bytes of a choice.
  [[nodiscard]] double bytes(const std::vector<std::size_t>& choice) const;
};

/// How choose_strategies() searches.
struct StrategyOptions {
  std::size_t nodes = 14;       ///< nodes of one integer program at most
  std::size_t programs = 400;   ///< linear programs for one integer program at most
  bool reduce = true;           ///< whether nodes are eliminated before the integer program
  Seconds per_byte = 0;         ///< added to costs in the search, to prefer choices of fewer bytes
  plan::AnySolver solver = {};  ///< solves the integer programs
};

/// A choice of strategies.
struct StrategyChoice {
  std::optional<std::vector<std::size_t>> strategies = {};  ///< by node; nothing: none is allowed
  Seconds cost = 0;                                         ///< the cost of all nodes and edges
  bool optimal = false;                                     ///< whether no other choice costs less
  std::size_t programs = 0;                                 ///< linear programs that were solved
};

/// Returns the choice of the least cost.
///
/// A node with at most two neighbours is eliminated: for each pair of its neighbours' strategies
/// its best one is known. This is dynamic programming over chains and parallel branches. A strategy
/// is dropped if another one costs no more whatever its neighbours choose. The rest is an integer
/// program with a binary for each strategy of a node and a variable for each
/// pair of strategies at an edge: the former sum to 1 at a node, the latter to the binaries of both
/// ends. If more than `StrategyOptions::nodes` nodes are left, integer programs for windows of that
/// many nodes, with the others fixed, improve a greedy choice until none does; `optimal` is false
/// then.
///
/// A capacity is a constraint of the integer program, and no node is eliminated. If there are too
/// many nodes for one program, bytes get a price that is raised until the choice fits.
/// @throws contract_error if a node has no strategy, if an edge does not join two nodes, if numbers
///         of costs do not match, or if a cost is not a number or below 0.
[[nodiscard]] StrategyChoice choose_strategies(const StrategyGraph& graph,
                                               const StrategyOptions& options = {});

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/rhino/strategy_graph.ipp>
#endif
