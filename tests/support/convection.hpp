// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// References for convection on a circle of length 2 pi: the solution of Burgers' equation before
/// its shock, upwind differences on a fixed grid, and fine central differences.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numbers>
#include <vector>

#include <heddle/execute/runner.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/schedule/schedule.hpp>

#include "characteristics.hpp"

namespace heddle::test {

/// Returns the solver that has the last join, after a run of `schedule` on threads.
[[nodiscard]] inline examples::MovingPoints solve(const examples::Convection& problem,
                                                  const Schedule& schedule) {
  examples::MovingPoints result(problem);
  run_threads(schedule.ranks(), [&](ThreadTransport& transport) {
    examples::MovingPoints solver(problem);
    Runner(solver, schedule, transport).step();
    if (!solver.grid.empty()) result = solver;  // on one rank
  });
  return result;
}

/// Returns u(x, t) of u_t + u u_x = 0 with u(x, 0) = sin x, by bisection of u = sin(x - u t).
/// There is one such u before the shock at t = 1.
[[nodiscard]] inline double burgers(double x, double t) {
  double low = -1, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (middle - std::sin(x - middle * t) < 0 ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// Returns the values at `points` points after upwind differences for u_t + speed u_x = 0, with
/// half a cell in each step.
[[nodiscard]] inline std::vector<double> upwind(int points, double speed, double time) {
  const double spacing = 2 * std::numbers::pi / points;
  const auto n = static_cast<std::size_t>(points);
  const int steps = static_cast<int>(std::ceil(speed * time / (0.5 * spacing)));
  const double cells = speed * time / steps / spacing;
  std::vector<double> u(n), next(n);
  for (std::size_t i = 0; i < n; ++i) u[i] = std::sin(static_cast<double>(i) * spacing);
  for (int s = 0; s < steps; ++s) {
    for (std::size_t i = 0; i < n; ++i) next[i] = u[i] - cells * (u[i] - u[(i + n - 1) % n]);
    u.swap(next);
  }
  return u;
}

/// Returns the values at `points` points after central differences of the second order and
/// Runge-Kutta of the fourth for u_t + u u_x = viscosity u_xx, with u = sin x at time 0.
[[nodiscard]] inline std::vector<double> viscous_burgers(int points, double viscosity,
                                                         double time) {
  const double spacing = 2 * std::numbers::pi / points;
  const auto n = static_cast<std::size_t>(points);
  const int steps = static_cast<int>(
      std::ceil(time / std::min(spacing * spacing / (2 * viscosity), spacing / 2)));
  const double step = time / steps;
  std::vector<double> u(n), stage(n), slope(n), sum(n);
  for (std::size_t i = 0; i < n; ++i) u[i] = std::sin(static_cast<double>(i) * spacing);
  for (int s = 0; s < steps; ++s) {
    stage = u;
    std::fill(sum.begin(), sum.end(), 0.0);
    for (const auto& [next, weight] :
         {std::pair{0.5, 1.0}, std::pair{0.5, 2.0}, std::pair{1.0, 2.0}, std::pair{0.0, 1.0}}) {
      for (std::size_t i = 0; i < n; ++i) {
        const double left = stage[(i + n - 1) % n], right = stage[(i + 1) % n];
        slope[i] = -(right * right - left * left) / (4 * spacing) +
                   viscosity * (right - 2 * stage[i] + left) / (spacing * spacing);
        sum[i] += weight * slope[i];
      }
      for (std::size_t i = 0; i < n; ++i) stage[i] = u[i] + next * step * slope[i];
    }
    for (std::size_t i = 0; i < n; ++i) u[i] += step / 6 * sum[i];
  }
  return u;
}

/// Returns the largest difference of values at points of the grid from `exact(x)`.
[[nodiscard]] inline double largest_error(const std::vector<double>& grid,
                                          const std::function<double(double)>& exact) {
  const double spacing = 2 * std::numbers::pi / static_cast<double>(grid.size());
  double most = 0;
  for (std::size_t i = 0; i < grid.size(); ++i)
    most = std::max(most, std::abs(grid[i] - exact(static_cast<double>(i) * spacing)));
  return most;
}

}  // namespace heddle::test
