// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// StrategyProgram: the integer program of the nodes of a StrategyGraph. PairCosts: the graph with
/// one edge between two nodes, from both ends.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/units.hpp>
#include <heddle/plan/solver/integer_program.hpp>
#include <heddle/plan/solver/linear_program.hpp>
#include <heddle/plan/solver/program_solver.hpp>

namespace heddle::inline v0::systems::impl {

/// The cost of a strategy or of a pair that cannot be chosen.
inline constexpr Seconds forbidden = std::numeric_limits<Seconds>::infinity();

/// A StrategyGraph that has at most one edge between two nodes, found from both ends.
class PairCosts {
 public:
  using Table = std::vector<std::vector<Seconds>>;  // [own strategy][the neighbour's]

  /// `Graph` is StrategyGraph, whose header includes this one.
  template <class Graph>
  explicit PairCosts(const Graph& graph, Seconds per_byte = 0) : m_neighbours(graph.nodes.size()) {
    for (const auto& node : graph.nodes) {
      m_costs.push_back(node.costs);
      m_bytes.push_back(node.bytes.empty() ? std::vector<double>(node.costs.size()) : node.bytes);
      for (std::size_t s = 0; s < node.costs.size(); ++s)
        m_costs.back()[s] += per_byte * m_bytes.back()[s];
    }
    for (const auto& edge : graph.edges) {
      const std::size_t columns = graph.nodes[edge.to].costs.size();
      add(edge.from, edge.to,
          [&](std::size_t s, std::size_t t) { return edge.costs[s * columns + t]; });
    }
  }

  [[nodiscard]] std::size_t nodes() const { return m_costs.size(); }
  [[nodiscard]] std::size_t strategies(std::size_t node) const { return m_costs[node].size(); }
  [[nodiscard]] std::vector<Seconds>& costs(std::size_t node) { return m_costs[node]; }
  [[nodiscard]] const std::vector<Seconds>& costs(std::size_t node) const { return m_costs[node]; }
  [[nodiscard]] const std::vector<double>& bytes(std::size_t node) const { return m_bytes[node]; }
  [[nodiscard]] const std::map<std::size_t, Table>& neighbours(std::size_t node) const {
    return m_neighbours[node];
  }

  template <class Cost>
  void add(std::size_t a, std::size_t b, Cost&& cost) {
    Table& ab = m_neighbours[a][b];
    Table& ba = m_neighbours[b][a];
    if (ab.empty()) {
      ab.assign(strategies(a), std::vector<Seconds>(strategies(b)));
      ba.assign(strategies(b), std::vector<Seconds>(strategies(a)));
    }
    for (std::size_t s = 0; s < strategies(a); ++s)
      for (std::size_t t = 0; t < strategies(b); ++t) ba[t][s] = ab[s][t] += cost(s, t);
  }
  void separate(std::size_t node) {
    for (const auto& each : m_neighbours[node]) m_neighbours[each.first].erase(node);
    m_neighbours[node].clear();
  }

  /// Returns the cost of a strategy of one node if its neighbours have `choice`.
  [[nodiscard]] Seconds local(std::size_t node, std::size_t strategy,
                              const std::vector<std::size_t>& choice) const {
    Seconds sum = m_costs[node][strategy];
    for (const auto& [other, table] : m_neighbours[node]) sum += table[strategy][choice[other]];
    return sum;
  }

 private:
  std::vector<std::vector<Seconds>> m_costs;
  std::vector<std::vector<double>> m_bytes;
  std::vector<std::map<std::size_t, Table>> m_neighbours;
};

/// The integer program of some nodes of a PairCosts. The other nodes are not in it.
class StrategyProgram {
 public:
  StrategyProgram(const PairCosts& pairs, const std::vector<std::size_t>& nodes)
      : m_pairs(&pairs), m_nodes(nodes), m_place(pairs.nodes(), pairs.nodes()) {
    for (std::size_t i = 0; i < nodes.size(); ++i) m_place[nodes[i]] = i;
  }

  /// Replaces the costs of a node, such as by those with fixed neighbours.
  void set_costs(std::size_t node, std::vector<Seconds> costs) { m_own[node] = std::move(costs); }

  /// Solves the program. `choice` gets the strategies of its nodes if the outcome is optimal or, as
  /// the best that was found, inaccurate. Returns the outcome and the number of linear programs.
  std::pair<plan::Outcome, std::size_t> solve(std::vector<std::size_t>& choice,
                                              std::optional<double> capacity, std::size_t most,
                                              const plan::AnySolver& solver) const {
    plan::LinearProgram<double> program;
    std::vector<std::size_t> whole;
    std::vector<std::vector<std::optional<std::size_t>>> picks;
    const double scale = scaled();
    for (const std::size_t node : m_nodes) {
      const std::vector<Seconds>& costs = own(node);
      std::vector<std::optional<std::size_t>>& row = picks.emplace_back(costs.size());
      std::vector<plan::LinearProgram<double>::Term> one;
      for (std::size_t s = 0; s < costs.size(); ++s) {
        if (costs[s] == forbidden) continue;
        row[s] = program.add_variable({}, costs[s] / scale);
        whole.push_back(*row[s]);
        one.emplace_back(*row[s], 1.0);
      }
      if (one.empty()) return {plan::Outcome::infeasible, 0};
      program.add_constraint({}, std::move(one), plan::Relation::equal, 1);
    }
    for (std::size_t i = 0; i < m_nodes.size(); ++i)
      for (const auto& [other, table] : m_pairs->neighbours(m_nodes[i])) {
        const std::size_t j = m_place[other];
        if (j != m_pairs->nodes() && i < j) add_edge(program, picks[i], picks[j], table, scale);
      }
    if (capacity) {
      std::vector<plan::LinearProgram<double>::Term> sum;
      for (std::size_t i = 0; i < m_nodes.size(); ++i)
        for (std::size_t s = 0; s < picks[i].size(); ++s)
          if (picks[i][s])
            sum.emplace_back(*picks[i][s],
                             m_pairs->bytes(m_nodes[i])[s] / std::max(*capacity, 1.0));
      program.add_constraint({}, std::move(sum), plan::Relation::at_most,
                             *capacity >= 1 ? 1 : *capacity);
    }
    const plan::IntegerSolution<double> solution = solver.solve_integer(program, whole, most);
    if (!solution.values.empty())
      for (std::size_t i = 0; i < m_nodes.size(); ++i)
        for (std::size_t s = 0; s < picks[i].size(); ++s)
          if (picks[i][s] && solution.values[*picks[i][s]] > 0.5) choice[m_nodes[i]] = s;
    plan::Outcome outcome = solution.outcome;
    if (outcome == plan::Outcome::inaccurate && solution.values.empty())
      outcome = plan::Outcome::unbounded;
    return {outcome, solution.programs};
  }

 private:
  [[nodiscard]] const std::vector<Seconds>& own(std::size_t node) const {
    const auto found = m_own.find(node);
    return found == m_own.end() ? m_pairs->costs(node) : found->second;
  }
  /// Returns the largest cost that is not forbidden, so that costs of the program are at most 1.
  [[nodiscard]] double scaled() const {
    double largest = 0;
    const auto see = [&](Seconds cost) {
      if (cost != forbidden) largest = std::max(largest, cost);
    };
    for (const std::size_t node : m_nodes) {
      for (const Seconds cost : own(node)) see(cost);
      for (const auto& [other, table] : m_pairs->neighbours(node))
        if (m_place[other] != m_pairs->nodes())
          for (const auto& row : table)
            for (const Seconds cost : row) see(cost);
    }
    return largest > 0 ? largest : 1;
  }
  static void add_edge(plan::LinearProgram<double>& program,
                       const std::vector<std::optional<std::size_t>>& from,
                       const std::vector<std::optional<std::size_t>>& to,
                       const PairCosts::Table& table, double scale) {
    std::vector<std::vector<plan::LinearProgram<double>::Term>> rows(from.size()),
        columns(to.size());
    for (std::size_t s = 0; s < from.size(); ++s)
      for (std::size_t t = 0; t < to.size(); ++t) {
        if (!from[s] || !to[t] || table[s][t] == forbidden) continue;
        const std::size_t pair = program.add_variable({}, table[s][t] / scale);
        rows[s].emplace_back(pair, 1.0);
        columns[t].emplace_back(pair, 1.0);
      }
    const auto join = [&](auto& lines, const auto& picks) {
      for (std::size_t s = 0; s < picks.size(); ++s) {
        if (!picks[s]) continue;
        lines[s].emplace_back(*picks[s], -1.0);
        program.add_constraint({}, std::move(lines[s]), plan::Relation::equal, 0);
      }
    };
    join(rows, from);
    join(columns, to);
  }

  const PairCosts* m_pairs;
  std::vector<std::size_t> m_nodes;
  std::vector<std::size_t> m_place;  // by node: its position in m_nodes, or the number of all nodes
  std::map<std::size_t, std::vector<Seconds>> m_own;
};

}  // namespace heddle::inline v0::systems::impl
