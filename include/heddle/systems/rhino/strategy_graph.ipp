// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of strategy_graph.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/plan/solver/linear_program.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/rhino/impl/strategy_program.hpp>
#include <heddle/systems/rhino/strategy_graph.hpp>

namespace heddle::inline v0::systems {

namespace impl {

inline void check_costs(const std::vector<Seconds>& costs, std::size_t expected,
                        const std::string& whose) {
  expects(costs.size() == expected, [&] {
    return ErrorInfo{"heddle::systems::choose_strategies",
                     "a cost is needed for every strategy or pair",
                     text(whose, ": ", costs.size(), " costs for ", expected)};
  });
  for (std::size_t c = 0; c < costs.size(); ++c)
    expects(costs[c] >= 0, [&] {  // false for NaN
      return ErrorInfo{"heddle::systems::choose_strategies", "a cost is below 0 or not a number",
                       text(whose, ": number ", c, " is ", costs[c]),
                       "forbid a pair with a cost of infinity"};
    });
}

inline void check(const StrategyGraph& graph) {
  double sum = 0;  // of the greatest costs that forbid nothing
  const auto add_most = [&](const std::vector<Seconds>& costs) {
    double most = 0;
    for (const Seconds cost : costs)
      if (std::isfinite(cost)) most = std::max(most, cost);
    sum += most;
  };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const StrategyGraph::Node& node = graph.nodes[n];
    expects(!node.costs.empty(), [&] {
      return ErrorInfo{"heddle::systems::choose_strategies", "a node needs a strategy",
                       text("node ", n, " '", node.name, "'")};
    });
    check_costs(node.costs, node.costs.size(), text("node ", n, " '", node.name, "'"));
    add_most(node.costs);
    if (!node.bytes.empty())
      check_costs(node.bytes, node.costs.size(), text("bytes of node ", n, " '", node.name, "'"));
  }
  for (const StrategyGraph::Edge& edge : graph.edges) {
    const std::size_t nodes = graph.nodes.size();
    expects(edge.from < nodes && edge.to < nodes && edge.from != edge.to, [&] {
      return ErrorInfo{"heddle::systems::choose_strategies", "an edge joins two different nodes",
                       text("edge ", edge.from, " - ", edge.to, " of ", nodes, " nodes")};
    });
    check_costs(edge.costs, graph.nodes[edge.from].costs.size() * graph.nodes[edge.to].costs.size(),
                text("edge ", edge.from, " - ", edge.to));
    add_most(edge.costs);
  }
  heddle::impl::expect_sum(
      "heddle::systems::choose_strategies", sum,
      [&] { return text(graph.nodes.size(), " nodes, ", graph.edges.size(), " edges"); },
      "divide all costs by the same number");
}

// A node that was eliminated, and its best strategies by those of its neighbours.
struct Eliminated {
  std::size_t node;
  std::vector<std::size_t> neighbours;  // at most two
  std::vector<std::size_t> best;        // [first's strategy * strategies of the second + second's]
};

// Returns whether strategy `s` of a node costs at least as much as `other`, whatever its neighbours
// choose.
inline bool is_dominated(const PairCosts& pairs, std::size_t node, std::size_t s,
                         std::size_t other) {
  Seconds more = pairs.costs(node)[s] - pairs.costs(node)[other];
  for (const auto& [neighbour, table] : pairs.neighbours(node)) {
    Seconds least = forbidden;
    for (std::size_t t = 0; t < pairs.strategies(neighbour); ++t)
      if (pairs.costs(neighbour)[t] != forbidden && table[s][t] != forbidden)
        least = std::min(least, table[s][t] - table[other][t]);
    more += least;  // infinite if s is impossible, minus infinity if only `other` is
    if (!(more > -forbidden)) return false;
  }
  return more >= 0;
}

// Forbids dominated strategies, and fixes nodes that have one strategy left. Returns whether it
// changed anything.
inline bool dominate(PairCosts& pairs, std::vector<bool>& alive, std::vector<Eliminated>& done) {
  bool changed = false;
  for (std::size_t n = 0; n < pairs.nodes(); ++n) {
    if (!alive[n]) continue;
    std::vector<Seconds>& costs = pairs.costs(n);
    std::size_t left = 0, last = 0;
    for (std::size_t s = 0; s < costs.size(); ++s) {
      for (std::size_t other = 0; other < costs.size() && costs[s] != forbidden; ++other)
        if (other != s && costs[other] != forbidden && is_dominated(pairs, n, s, other))
          costs[s] = forbidden;
      if (costs[s] == forbidden) continue;
      ++left;
      last = s;
    }
    if (left > 1) continue;
    changed = true;
    alive[n] = false;
    const std::map<std::size_t, PairCosts::Table> neighbours = pairs.neighbours(n);
    for (const auto& [other, table] : neighbours)
      for (std::size_t t = 0; t < table[last].size(); ++t)
        pairs.costs(other)[t] += left == 0 ? forbidden : table[last][t];
    pairs.separate(n);
    done.push_back({n, {}, {last}});
  }
  return changed;
}

// Eliminates nodes that have one strategy that is not dominated, or at most two neighbours, until
// none is left. Their costs go to their neighbours and to the edges between them.
inline std::vector<Eliminated> reduce(PairCosts& pairs, std::vector<bool>& alive) {
  std::vector<Eliminated> done;
  for (bool changed = true; changed;) {
    changed = dominate(pairs, alive, done);
    for (std::size_t n = 0; n < pairs.nodes(); ++n) {
      if (!alive[n] || pairs.neighbours(n).size() > 2) continue;
      changed = true;
      alive[n] = false;
      Eliminated gone{n, {}, {}};
      std::vector<PairCosts::Table> tables;
      for (const auto& [other, table] : pairs.neighbours(n)) {
        gone.neighbours.push_back(other);
        tables.push_back(table);
      }
      const std::size_t rows = tables.empty() ? 1 : pairs.strategies(gone.neighbours[0]);
      const std::size_t columns = tables.size() < 2 ? 1 : pairs.strategies(gone.neighbours[1]);
      std::vector<Seconds> least(rows * columns, forbidden);
      gone.best.resize(rows * columns);
      for (std::size_t a = 0; a < rows; ++a)
        for (std::size_t b = 0; b < columns; ++b)
          for (std::size_t s = 0; s < pairs.strategies(n); ++s) {
            Seconds cost = pairs.costs(n)[s];
            if (!tables.empty()) cost += tables[0][s][a];
            if (tables.size() == 2) cost += tables[1][s][b];
            if (cost >= least[a * columns + b]) continue;
            least[a * columns + b] = cost;
            gone.best[a * columns + b] = s;
          }
      pairs.separate(n);
      if (gone.neighbours.size() == 1)
        for (std::size_t a = 0; a < rows; ++a) pairs.costs(gone.neighbours[0])[a] += least[a];
      else if (gone.neighbours.size() == 2)
        pairs.add(gone.neighbours[0], gone.neighbours[1],
                  [&](std::size_t a, std::size_t b) { return least[a * columns + b]; });
      done.push_back(std::move(gone));
    }
  }
  return done;
}

// Improves a greedy choice for `nodes` by integer programs for windows of them.
inline std::size_t choose_by_windows(const PairCosts& pairs, const std::vector<std::size_t>& nodes,
                                     const StrategyOptions& options,
                                     std::vector<std::size_t>& choice) {
  std::size_t programs = 0;
  std::vector<bool> known(pairs.nodes());
  for (const std::size_t node : nodes) {  // greedy: each node beside those before it
    Seconds least = forbidden;
    for (std::size_t s = 0; s < pairs.strategies(node); ++s) {
      Seconds cost = pairs.costs(node)[s];
      for (const auto& [other, table] : pairs.neighbours(node))
        if (known[other])
          cost += table[s][choice[other]];
        else
          cost += std::ranges::min(table[s]);
      if (cost < least) {
        least = cost;
        choice[node] = s;
      }
    }
    known[node] = true;
  }
  const std::size_t length = options.nodes;
  const std::size_t step = std::max<std::size_t>(1, length / 2);
  for (bool better = true; better;) {
    better = false;
    for (std::size_t first = 0; first < nodes.size(); first += step) {
      const std::vector<std::size_t> window(
          nodes.begin() + static_cast<std::ptrdiff_t>(first),
          nodes.begin() + static_cast<std::ptrdiff_t>(std::min(first + length, nodes.size())));
      StrategyProgram program(pairs, window);
      std::vector<bool> inside(pairs.nodes());
      for (const std::size_t node : window) inside[node] = true;
      for (const std::size_t node : window) {
        std::vector<Seconds> costs = pairs.costs(node);
        for (const auto& [other, table] : pairs.neighbours(node))
          if (!inside[other])
            for (std::size_t s = 0; s < costs.size(); ++s) costs[s] += table[s][choice[other]];
        program.set_costs(node, std::move(costs));
      }
      const auto price = [&](const std::vector<std::size_t>& at) {
        Seconds sum = 0;
        for (const std::size_t node : window)
          for (const auto& [other, table] : pairs.neighbours(node))
            if (!inside[other] || node < other) sum += table[at[node]][at[other]];
        for (const std::size_t node : window) sum += pairs.costs(node)[at[node]];
        return sum;
      };
      std::vector<std::size_t> changed = choice;
      programs += program.solve(changed, {}, options.programs, options.solver).second;
      const Seconds before = price(choice);
      if (price(changed) < before - 1e-9 * before ||
          (before == forbidden && price(changed) < forbidden)) {
        choice = std::move(changed);
        better = true;
      }
      if (first + length >= nodes.size()) break;
    }
  }
  return programs;
}

// Returns the choice without a capacity; bytes cost `per_byte` each.
inline StrategyChoice choose_freely(const StrategyGraph& graph, const StrategyOptions& options,
                                    Seconds per_byte) {
  PairCosts pairs(graph, per_byte);
  std::vector<bool> alive(pairs.nodes(), true);
  std::vector<Eliminated> gone;
  if (options.reduce) gone = reduce(pairs, alive);
  std::vector<std::size_t> left;
  for (std::size_t n = 0; n < pairs.nodes(); ++n)
    if (alive[n]) left.push_back(n);
  StrategyChoice found{.optimal = true};
  std::vector<std::size_t> choice(pairs.nodes());
  bool windows = left.size() > options.nodes;
  if (!windows && !left.empty()) {
    const auto [outcome, programs] =
        StrategyProgram(pairs, left).solve(choice, {}, options.programs, options.solver);
    found.programs += programs;
    if (outcome == plan::Outcome::infeasible) return found;
    found.optimal = outcome == plan::Outcome::optimal;
    windows = outcome == plan::Outcome::unbounded;  // no choice was found in time
  }
  if (windows) {
    found.optimal = false;
    found.programs += choose_by_windows(pairs, left, options, choice);
  }
  for (auto each = gone.rbegin(); each != gone.rend(); ++each) {
    std::size_t at = 0;
    if (!each->neighbours.empty()) at = choice[each->neighbours[0]];
    if (each->neighbours.size() == 2)
      at = at * pairs.strategies(each->neighbours[1]) + choice[each->neighbours[1]];
    choice[each->node] = each->best[at];
  }
  found.cost = graph.cost(choice);
  if (found.cost != forbidden) found.strategies = std::move(choice);
  return found;
}

// Raises the price of bytes until the choice fits.
inline StrategyChoice choose_by_price(const StrategyGraph& graph, const StrategyOptions& options) {
  StrategyChoice best;
  const auto attempt = [&](Seconds per_byte) {
    StrategyChoice found = choose_freely(graph, options, options.per_byte + per_byte);
    best.programs += found.programs;
    if (!found.strategies || graph.bytes(*found.strategies) > *graph.capacity) return false;
    if (!best.strategies || found.cost < best.cost) {
      best.strategies = std::move(found.strategies);
      best.cost = found.cost;
      best.optimal = found.optimal && per_byte == 0;
    }
    return true;
  };
  if (attempt(0)) return best;
  Seconds largest = 0;
  for (const StrategyGraph::Node& node : graph.nodes)
    for (const Seconds cost : node.costs)
      if (cost != forbidden) largest = std::max(largest, cost);
  double high = std::max(largest, 1e-9) / std::max(*graph.capacity, 1.0);
  double low = 0;
  int doublings = 0;
  while (!attempt(high)) {
    if (++doublings == 40) return best;
    low = high;
    high *= 4;
  }
  for (int step = 0; step < 12; ++step) {
    const double middle = (low + high) / 2;
    (attempt(middle) ? high : low) = middle;
  }
  return best;
}

/// Checks the strategy of each node.
inline void check_choice(const StrategyGraph& graph, const std::vector<std::size_t>& choice) {
  expects(choice.size() == graph.nodes.size(), [&] {
    return ErrorInfo{"heddle::systems::StrategyGraph", "every node needs its strategy",
                     text(choice.size(), " strategies for ", graph.nodes.size(), " nodes")};
  });
  for (std::size_t n = 0; n < choice.size(); ++n)
    expects(choice[n] < graph.nodes[n].costs.size(), [&] {
      return ErrorInfo{"heddle::systems::StrategyGraph", "a node does not have a strategy",
                       text("choice[", n, "] = ", choice[n], ", node '", graph.nodes[n].name,
                            "' has ", graph.nodes[n].costs.size())};
    });
}

}  // namespace impl

HEDDLE_INLINE Seconds StrategyGraph::cost(const std::vector<std::size_t>& choice) const {
  impl::check_choice(*this, choice);
  Seconds sum = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n) sum += nodes[n].costs[choice[n]];
  for (const Edge& edge : edges)
    sum += edge.costs[choice[edge.from] * nodes[edge.to].costs.size() + choice[edge.to]];
  return sum;
}

HEDDLE_INLINE double StrategyGraph::bytes(const std::vector<std::size_t>& choice) const {
  impl::check_choice(*this, choice);
  double sum = 0;
  for (std::size_t n = 0; n < nodes.size(); ++n)
    if (!nodes[n].bytes.empty()) sum += nodes[n].bytes[choice[n]];
  return sum;
}

HEDDLE_INLINE StrategyChoice choose_strategies(const StrategyGraph& graph,
                                               const StrategyOptions& options) {
  impl::check(graph);
  const double capacity = graph.capacity.value_or(0);
  expects(capacity >= 0 && heddle::impl::is_time(options.per_byte), [&] {
    return ErrorInfo{"heddle::systems::choose_strategies", "a number is below 0 or not a number",
                     text("capacity = ", capacity, ", per_byte = ", options.per_byte)};
  });
  if (!graph.capacity) return impl::choose_freely(graph, options, options.per_byte);
  // The best choice without the capacity is the best one also if it fits.
  StrategyChoice found = impl::choose_freely(graph, options, options.per_byte);
  if (!found.strategies || graph.bytes(*found.strategies) <= *graph.capacity) return found;
  const std::size_t before = found.programs;
  if (graph.nodes.size() <= options.nodes) {
    const impl::PairCosts pairs(graph);
    std::vector<std::size_t> all(graph.nodes.size()), choice(graph.nodes.size());
    for (std::size_t n = 0; n < all.size(); ++n) all[n] = n;
    const auto [outcome, programs] =
        impl::StrategyProgram(pairs, all)
            .solve(choice, graph.capacity, options.programs, options.solver);
    found = {.programs = before + programs};
    if (outcome == plan::Outcome::optimal || outcome == plan::Outcome::infeasible) {
      found.optimal = true;
      if (outcome == plan::Outcome::infeasible) return found;
      found.cost = graph.cost(choice);
      found.strategies = std::move(choice);
      return found;
    }
  }
  StrategyChoice priced = impl::choose_by_price(graph, options);
  priced.programs += found.programs;
  return priced;
}

}  // namespace heddle::inline v0::systems
