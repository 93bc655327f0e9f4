// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#pragma once

/// @file
/// A solver of u_t + c u_x = nu u_xx in moving coordinates, on a circle of length 2 pi. One branch
/// moves the points, another changes their values, and a join interpolates both to the grid again.
/// The two branches are those of Mojgani, Balajewicz and Hassanzadeh, "Lagrangian PINNs", 2022,
/// without networks.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numbers>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/schedule/order/stage_graph.hpp>

namespace examples {

/// A problem and how it is divided in time.
struct Convection {
  int points = 128;      ///< on the grid
  double speed = 0;      ///< c, if it is a constant
  bool burgers = false;  ///< adds u to the speed
  double viscosity = 0;  ///< nu
  double time = 1;       ///< end
  int joins = 1;         ///< joins from the begin to the end
  int steps = 1;         ///< steps of each branch between two joins; 1 if there is viscosity
  std::function<double(double)> start = [](double x) { return std::sin(x); };  ///< u at time 0

  [[nodiscard]] double step() const { return time / (joins * steps); }
  [[nodiscard]] double spacing() const { return 2 * std::numbers::pi / points; }
  [[nodiscard]] int stages() const { return 1 + joins * (2 * steps + 1); }
};

/// What a stage of the solver computes.
enum class Moving { start, positions, values, join };

/// Returns what stage `stage` computes. Stage 0 sets the values at time 0. Behind it, the stages
/// between two joins are positions, values, positions, values, ..., join.
[[nodiscard]] inline Moving part_of(const Convection& problem, int stage) {
  if (stage == 0) return Moving::start;
  const int place = (stage - 1) % (2 * problem.steps + 1);
  if (place == 2 * problem.steps) return Moving::join;
  return place % 2 == 0 ? Moving::positions : Moving::values;
}

/// Returns the graph of the solver. The new positions depend on the positions and the values before
/// them, and the new values on the values before them.
/// @throws contract_error if there is viscosity and more than one step between two joins.
[[nodiscard]] inline heddle::StageGraph graph_of(const Convection& problem) {
  heddle::expects(problem.viscosity == 0 || problem.steps == 1, [&] {
    return heddle::ErrorInfo{"examples::graph_of", "viscosity acts on the grid alone",
                             heddle::text("steps = ", problem.steps),
                             "take one step between two joins"};
  });
  using heddle::Stage;
  heddle::StageGraph graph{problem.stages()};
  int grid = 0;  // the last join
  for (int s = 1; s < graph.stages; ++s) {
    const bool first = s - grid <= 2;
    switch (part_of(problem, s)) {
      case Moving::start: break;
      case Moving::positions:
        if (!first) graph.edges.push_back({Stage{s - 2}, Stage{s}});
        graph.edges.push_back({Stage{first ? grid : s - 1}, Stage{s}});
        break;
      case Moving::values: graph.edges.push_back({Stage{first ? grid : s - 2}, Stage{s}}); break;
      case Moving::join:
        graph.edges.push_back({Stage{s - 2}, Stage{s}});
        graph.edges.push_back({Stage{s - 1}, Stage{s}});
        grid = s;
        break;
    }
  }
  return graph;
}

/// Returns the bytes of the output of every stage.
[[nodiscard]] inline std::vector<heddle::Bytes> output_bytes(const Convection& problem) {
  return std::vector<heddle::Bytes>(static_cast<std::size_t>(problem.stages()),
                                    sizeof(double) * static_cast<heddle::Bytes>(problem.points));
}

/// Interpolates values on a circle by the cubic through the four points around `x`. The positions
/// ascend, and the first and the last are less than a circle apart.
class OnCircle {
 public:
  OnCircle(std::span<const double> positions, std::span<const double> values)
      : m_positions(positions), m_values(values) {}

  [[nodiscard]] double operator()(double x) const {
    const auto points = static_cast<std::ptrdiff_t>(m_positions.size());
    const double turns = std::floor((x - m_positions[0]) / circle);
    x -= turns * circle;
    const auto after = std::upper_bound(m_positions.begin(), m_positions.end(), x);
    const std::ptrdiff_t left = std::max<std::ptrdiff_t>(after - m_positions.begin() - 1, 0);
    double at[4], value[4];
    for (std::ptrdiff_t k = 0; k < 4; ++k) {
      const std::ptrdiff_t i = left - 1 + k;
      const std::ptrdiff_t wrapped = (i + points) % points;
      const double lap = i < 0 ? -circle : i >= points ? circle : 0;
      at[k] = m_positions[static_cast<std::size_t>(wrapped)] + lap;
      value[k] = m_values[static_cast<std::size_t>(wrapped)];
    }
    double sum = 0;
    for (int k = 0; k < 4; ++k) {
      double weight = 1;
      for (int j = 0; j < 4; ++j)
        if (j != k) weight *= (x - at[j]) / (at[k] - at[j]);
      sum += weight * value[k];
    }
    return sum;
  }

 private:
  static constexpr double circle = 2 * std::numbers::pi;

  std::span<const double> m_positions;
  std::span<const double> m_values;
};

/// The solver as a Model of a heddle::Runner. The last join leaves its inputs and its result here.
class MovingPoints {
 public:
  explicit MovingPoints(const Convection& problem) : m_problem(problem) {}

  std::vector<double> positions;  ///< at the end; they may be outside of the circle
  std::vector<double> values;     ///< at the positions
  std::vector<double> grid;       ///< at the points of the grid

  void operator()(const heddle::Task& task) {
    const auto map = [&](std::size_t use) {
      return std::span<double>(reinterpret_cast<double*>(task.uses()[use].data),
                               static_cast<std::size_t>(m_problem.points));
    };
    const int stage = static_cast<int>(+task.stage());
    switch (part_of(m_problem, stage)) {
      case Moving::start: return begin(map(0));
      case Moving::positions:
        // The first stage behind a grid reads the values alone.
        return task.uses().size() == 4 ? move(map(0), map(1), map(2)) : leave_grid(map(0), map(1));
      case Moving::values: return diffuse(map(0), map(1));
      case Moving::join: break;
    }
    if (stage + 1 < m_problem.stages()) return join(map(0), map(1), map(2));
    positions.assign(map(0).begin(), map(0).end());
    values.assign(map(1).begin(), map(1).end());
    grid.resize(values.size());
    join(positions, values, grid);
  }

 private:
  [[nodiscard]] double point(std::size_t i) const {
    return static_cast<double>(i) * m_problem.spacing();
  }
  [[nodiscard]] double speed(double value) const {
    return m_problem.speed + (m_problem.burgers ? value : 0);
  }

  void begin(std::span<double> out) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = m_problem.start(point(i));
  }
  void leave_grid(std::span<const double> u, std::span<double> out) const {
    for (std::size_t i = 0; i < u.size(); ++i) out[i] = point(i) + m_problem.step() * speed(u[i]);
  }
  void move(std::span<const double> x, std::span<const double> u, std::span<double> out) const {
    for (std::size_t i = 0; i < u.size(); ++i) out[i] = x[i] + m_problem.step() * speed(u[i]);
  }
  /// Without viscosity a value stays as it is. Otherwise it stands on the grid.
  void diffuse(std::span<const double> u, std::span<double> out) const {
    const std::size_t n = u.size();
    const double factor =
        m_problem.viscosity * m_problem.step() / (m_problem.spacing() * m_problem.spacing());
    for (std::size_t i = 0; i < n; ++i)
      out[i] = u[i] + factor * (u[(i + 1) % n] - 2 * u[i] + u[(i + n - 1) % n]);
  }
  void join(std::span<const double> x, std::span<const double> u, std::span<double> out) const {
    const OnCircle at(x, u);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = at(point(i));
  }

  Convection m_problem;
};

}  // namespace examples
