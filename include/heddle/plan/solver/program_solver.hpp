// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ProgramSolver: the concept of a solver of linear and integer programs. SimplexSolver is Heddle's
/// own, AnySolver holds any, and CbcSolver is one of another library (see cbc.hpp).

#include <concepts>
#include <cstddef>
#include <functional>
#include <vector>

#include <heddle/plan/solver/integer_program.hpp>
#include <heddle/plan/solver/linear_program.hpp>

namespace heddle::inline v0::plan {

/// A solver of linear and integer programs. `solve` means what plan::solve() means, and
/// `solve_integer` what plan::solve_integer() means: an outcome `optimal` is a promise, and a
/// solver that cannot keep it returns `inaccurate`. The last argument is the most sub-programs that
/// its search solves.
template <class S>
concept ProgramSolver = requires(const S& solver, const LinearProgram<double>& program,
                                 const std::vector<std::size_t>& whole, std::size_t most_programs) {
  { solver.solve(program) } -> std::same_as<LinearSolution<double>>;
  { solver.solve_integer(program, whole, most_programs) } -> std::same_as<IntegerSolution<double>>;
};

/// Heddle's own solver: the simplex method, and branch and bound on it. It also takes exact
/// numbers.
struct SimplexSolver {
  /// Returns the solution of plan::solve().
  template <class Number>
  [[nodiscard]] LinearSolution<Number> solve(const LinearProgram<Number>& program) const {
    return plan::solve(program);
  }
  /// Returns the solution of plan::solve_integer().
  template <class Number>
  [[nodiscard]] IntegerSolution<Number> solve_integer(const LinearProgram<Number>& program,
                                                      const std::vector<std::size_t>& whole,
                                                      std::size_t most_programs = 1'000'000) const {
    return plan::solve_integer(program, whole, most_programs);
  }
};

/// A solver whose type is known at run time only, for the options of planners. It is a
/// SimplexSolver unless it was made from another one.
class AnySolver {
 public:
  /// Constructs Heddle's own solver.
  AnySolver() = default;
  /// Constructs a copy of `solver`.
  template <ProgramSolver S>
  requires(!std::same_as<S, AnySolver> && std::copy_constructible<S>) AnySolver(S solver)
      : m_solve([solver](const LinearProgram<double>& program) { return solver.solve(program); }),
        m_solve_integer(
            [solver](const LinearProgram<double>& program, const std::vector<std::size_t>& whole,
                     std::size_t most) { return solver.solve_integer(program, whole, most); }) {}

  /// Returns the solution of a linear program.
  [[nodiscard]] LinearSolution<double> solve(const LinearProgram<double>& program) const {
    return m_solve ? m_solve(program) : plan::solve(program);
  }
  /// Returns the solution of an integer program.
  [[nodiscard]] IntegerSolution<double> solve_integer(const LinearProgram<double>& program,
                                                      const std::vector<std::size_t>& whole,
                                                      std::size_t most_programs = 1'000'000) const {
    return m_solve_integer ? m_solve_integer(program, whole, most_programs)
                           : plan::solve_integer(program, whole, most_programs);
  }

 private:
  std::function<LinearSolution<double>(const LinearProgram<double>&)> m_solve;
  std::function<IntegerSolution<double>(const LinearProgram<double>&,
                                        const std::vector<std::size_t>&, std::size_t)>
      m_solve_integer;
};

}  // namespace heddle::inline v0::plan
