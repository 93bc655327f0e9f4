// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stage_cut.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/solver/integer_program.hpp>
#include <heddle/plan/solver/linear_program.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/systems/rhino/stage_cut.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// Returns the most work of a stage.
inline double stage_work(const OperationGraph& graph, int stages, double tolerance) {
  double total = 0;
  for (const double work : graph.work) total += work;
  return (1 + tolerance) * total / stages * (1 + 1e-12);
}

/// Returns an order of the vertices. Of those that can come next, it takes the latest that became
/// ready if `deep`, which follows one branch to its end, and the first one otherwise.
inline std::vector<std::size_t> linear_order(const OperationGraph& graph, bool deep,
                                             bool reversed) {
  const std::size_t n = graph.work.size();
  std::vector<std::vector<std::size_t>> next(n);
  std::vector<std::size_t> missing(n);
  for (const OperationGraph::Order& order : graph.orders) {
    next[order.first].push_back(order.last);
    ++missing[order.last];
  }
  std::vector<std::size_t> ready, all;
  for (std::size_t v = n; v-- > 0;)
    if (missing[v] == 0) ready.push_back(v);
  if (reversed) std::ranges::reverse(ready);
  while (!ready.empty()) {
    const auto at = deep ? ready.end() - 1 : ready.begin();
    const std::size_t v = *at;
    ready.erase(at);
    all.push_back(v);
    if (reversed) std::ranges::reverse(next[v]);
    for (const std::size_t user : next[v])
      if (--missing[user] == 0) ready.push_back(user);
  }
  return all;
}

/// Returns the balanced division of a linear order with the fewest bytes. The bytes of a cut are
/// those of the data that have vertices on both sides of it.
inline std::vector<int> cut_order(const OperationGraph& graph,
                                  const std::vector<std::size_t>& order, int stages, double most) {
  const std::size_t n = order.size();
  std::vector<std::size_t> position(n);
  for (std::size_t i = 0; i < n; ++i) position[order[i]] = i;
  std::vector<double> bytes(n + 1), before(n + 1);
  for (std::size_t i = 0; i < n; ++i) before[i + 1] = before[i] + graph.work[order[i]];
  for (const OperationGraph::Data& data : graph.data) {
    std::size_t first = n, last = 0;
    for (const std::size_t v : data.vertices) {
      first = std::min(first, position[v]);
      last = std::max(last, position[v]);
    }
    for (std::size_t cut = first + 1; cut <= last && first < n; ++cut) bytes[cut] += data.bytes;
  }
  constexpr double none = std::numeric_limits<double>::infinity();
  const auto count = static_cast<std::size_t>(stages);
  // least[k][i]: the first i vertices in k + 1 stages.
  std::vector<std::vector<double>> least(count, std::vector<double>(n + 1, none));
  std::vector<std::vector<std::size_t>> from(count, std::vector<std::size_t>(n + 1));
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t i = 0; i <= n; ++i)
      for (std::size_t j = 0; j <= (k == 0 ? 0 : i); ++j) {
        if (before[i] - before[j] > most) continue;
        const double cost = k == 0 ? 0 : least[k - 1][j] + bytes[j];
        if (cost < least[k][i]) {
          least[k][i] = cost;
          from[k][i] = j;
        }
      }
  if (least[count - 1][n] == none) return {};
  std::vector<int> result(n);
  std::size_t end = n;
  for (std::size_t k = count; k-- > 0;) {
    for (std::size_t i = from[k][end]; i < end; ++i) result[order[i]] = static_cast<int>(k);
    end = from[k][end];
  }
  return result;
}

/// Solves the integer program of a division. Returns how its search ended.
inline plan::Outcome cut_exactly(const OperationGraph& graph, int stages, double most,
                                 const StageCutOptions& options, StageCut& cut) {
  plan::LinearProgram<double> program;
  std::vector<std::size_t> whole;
  const std::size_t n = graph.work.size();
  const auto cuts = static_cast<std::size_t>(stages - 1);
  std::vector<std::vector<std::size_t>> later(n);  // by vertex and cut
  double largest = 0;
  for (const OperationGraph::Data& data : graph.data) largest = std::max(largest, data.bytes);
  if (largest <= 0) largest = 1;
  for (std::size_t v = 0; v < n; ++v)
    for (std::size_t k = 0; k < cuts; ++k) {
      later[v].push_back(program.add_variable({}, 0, 0.0, 1.0));
      whole.push_back(later[v][k]);
      if (k > 0)
        program.add_constraint({}, {{later[v][k], 1.0}, {later[v][k - 1], -1.0}},
                               plan::Relation::at_most, 0);
    }
  for (std::size_t k = 0; k < cuts; ++k) {
    for (const OperationGraph::Order& order : graph.orders)
      program.add_constraint({}, {{later[order.first][k], 1.0}, {later[order.last][k], -1.0}},
                             plan::Relation::at_most, 0);
    for (const OperationGraph::Data& data : graph.data) {
      if (data.vertices.size() < 2 || data.bytes <= 0) continue;
      if (data.vertices.size() == 2) {  // |a - b|
        const std::size_t a = later[data.vertices[0]][k], b = later[data.vertices[1]][k];
        const std::size_t apart = program.add_variable({}, data.bytes / largest);
        program.add_constraint({}, {{a, 1.0}, {b, -1.0}, {apart, -1.0}}, plan::Relation::at_most,
                               0);
        program.add_constraint({}, {{b, 1.0}, {a, -1.0}, {apart, -1.0}}, plan::Relation::at_most,
                               0);
        continue;
      }
      const std::size_t high = program.add_variable({}, data.bytes / largest);
      const std::size_t low = program.add_variable({}, -data.bytes / largest, 0.0, 1.0);
      for (const std::size_t v : data.vertices) {
        program.add_constraint({}, {{later[v][k], 1.0}, {high, -1.0}}, plan::Relation::at_most, 0);
        program.add_constraint({}, {{low, 1.0}, {later[v][k], -1.0}}, plan::Relation::at_most, 0);
      }
    }
  }
  for (std::size_t k = 0; k <= cuts; ++k) {
    std::vector<plan::LinearProgram<double>::Term> sum;
    double fixed = 0;
    for (std::size_t v = 0; v < n; ++v) {
      const double share = most > 0 ? graph.work[v] / most : 0;
      if (share <= 0) continue;
      if (k == 0)
        fixed += share;
      else
        sum.emplace_back(later[v][k - 1], share);
      if (k < cuts) sum.emplace_back(later[v][k], -share);
    }
    if (!sum.empty())
      program.add_constraint({}, std::move(sum), plan::Relation::at_most, 1 - fixed);
  }
  const plan::IntegerSolution<double> solution =
      options.solver.solve_integer(program, whole, options.programs);
  cut.programs += solution.programs;
  if (!solution.values.empty()) {
    cut.stages.assign(n, 0);
    for (std::size_t v = 0; v < n; ++v)
      for (const std::size_t each : later[v]) cut.stages[v] += solution.values[each] > 0.5;
  }
  return solution.outcome;
}

}  // namespace impl

HEDDLE_INLINE double OperationGraph::bytes(const std::vector<int>& stages) const {
  for (std::size_t d = 0; d < data.size(); ++d)
    for (const std::size_t v : data[d].vertices)
      expects(v < stages.size(), [&] {
        return ErrorInfo{
            "heddle::systems::OperationGraph::bytes", "a vertex has no stage",
            text("data[", d, "] names vertex ", v, ", there are ", stages.size(), " stages")};
      });
  double sum = 0;
  for (const Data& each : data) {
    if (each.vertices.empty()) continue;
    int least = std::numeric_limits<int>::max(), most = 0;
    for (const std::size_t v : each.vertices) {
      least = std::min(least, stages[v]);
      most = std::max(most, stages[v]);
    }
    sum += each.bytes * (most - least);
  }
  return sum;
}

HEDDLE_INLINE StageCut cut_stages(const OperationGraph& graph, int stages,
                                  const StageCutOptions& options) {
  constexpr const char* where = "heddle::systems::cut_stages";
  const std::size_t n = graph.work.size();
  expects(stages >= 1, [&] {
    return ErrorInfo{where, "a division needs at least one stage", text("stages = ", stages)};
  });
  const auto exists = [&](std::size_t v) {
    expects(v < n, [&] {
      return ErrorInfo{where, "there is no such vertex", text("vertex ", v, " of ", n)};
    });
  };
  for (const OperationGraph::Order& order : graph.orders) {
    exists(order.first);
    exists(order.last);
  }
  for (std::size_t d = 0; d < graph.data.size(); ++d) {
    std::ranges::for_each(graph.data[d].vertices, exists);
    expects(heddle::impl::is_time(graph.data[d].bytes), [&] {
      return ErrorInfo{where, "the bytes of data are finite and at least 0",
                       text("data[", d, "].bytes = ", graph.data[d].bytes)};
    });
  }
  double all = 0;
  for (std::size_t v = 0; v < n; ++v) {
    all += graph.work[v];
    expects(heddle::impl::is_time(graph.work[v]) && std::isfinite(all), [&] {
      return ErrorInfo{where, "the work of a vertex and its sum are finite and at least 0",
                       text("work[", v, "] = ", graph.work[v], ", sum ", all)};
    });
  }
  expects(heddle::impl::is_time(options.tolerance), [&] {
    return ErrorInfo{where, "the tolerance is finite and at least 0",
                     text("tolerance = ", options.tolerance)};
  });
  std::vector<std::vector<std::size_t>> orders;
  for (const bool deep : {false, true})
    for (const bool reversed : {false, true})
      orders.push_back(impl::linear_order(graph, deep, reversed));
  expects(orders.front().size() == n, [&] {
    return ErrorInfo{where, "the orders of a graph have a cycle",
                     text(orders.front().size(), " of ", n, " vertices have a place in a line"),
                     "leave out the order that closes it"};
  });
  if (stages == 1) return {.stages = std::vector<int>(n), .optimal = true};
  const double most = impl::stage_work(graph, stages, options.tolerance);
  StageCut cut;
  if (n > 0 && std::ranges::max(graph.work) > most) {  // one vertex is too much for a stage
    cut.optimal = true;
    return cut;
  }
  if (n * static_cast<std::size_t>(stages - 1) <= options.binaries) {
    const plan::Outcome outcome = impl::cut_exactly(graph, stages, most, options, cut);
    cut.optimal = outcome == plan::Outcome::optimal || outcome == plan::Outcome::infeasible;
    if (outcome == plan::Outcome::infeasible) return cut;
    if (!cut.stages.empty()) cut.bytes = graph.bytes(cut.stages);
    if (cut.optimal) return cut;
  }
  for (const std::vector<std::size_t>& order : orders) {
    std::vector<int> line = impl::cut_order(graph, order, stages, most);
    if (line.empty()) continue;
    const double bytes = graph.bytes(line);
    if (!cut.stages.empty() && bytes >= cut.bytes) continue;
    cut.bytes = bytes;
    cut.stages = std::move(line);
  }
  return cut;
}

}  // namespace heddle::inline v0::systems
