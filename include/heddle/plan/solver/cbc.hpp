// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// CbcSolver: a ProgramSolver on COIN-OR's Clp and Cbc. The header is empty without the target
/// heddle::cbc, which defines HEDDLE_HAS_CBC, and no umbrella header includes it.

#if defined(HEDDLE_HAS_CBC)

#include <algorithm>
#include <cmath>
#include <coin/Cbc_C_Interface.h>
#include <coin/Clp_C_Interface.h>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/solver/integer_program.hpp>
#include <heddle/plan/solver/linear_program.hpp>

namespace heddle::inline v0::plan {

namespace impl {

/// A LinearProgram in the form that Clp and Cbc load: sparse columns, and two bounds for each
/// column and each row.
struct CoinProgram {
  std::vector<int> start, index;
  std::vector<double> factor, lower, upper, cost, row_lower, row_upper;
  double largest = 0;  ///< the greatest magnitude of all finite numbers

  explicit CoinProgram(const LinearProgram<double>& program) {
    constexpr double none = std::numeric_limits<double>::infinity();
    std::vector<std::vector<std::pair<int, double>>> columns(program.variables().size());
    for (std::size_t r = 0; r < program.constraints().size(); ++r) {
      const auto& row = program.constraints()[r];
      row_lower.push_back(row.relation == Relation::at_most ? -none : row.side);
      row_upper.push_back(row.relation == Relation::at_least ? none : row.side);
      see(row.side);
      for (const auto& [variable, part] : row.terms) {
        auto& column = columns[variable];
        if (!column.empty() && column.back().first == static_cast<int>(r))
          column.back().second += part;
        else
          column.emplace_back(static_cast<int>(r), part);
      }
    }
    for (std::size_t v = 0; v < columns.size(); ++v) {
      const auto& variable = program.variables()[v];
      cost.push_back(variable.cost);
      lower.push_back(variable.lower.value_or(-none));
      upper.push_back(variable.upper.value_or(none));
      see(variable.cost);
      see(variable.lower.value_or(0));
      see(variable.upper.value_or(0));
      start.push_back(static_cast<int>(index.size()));
      for (const auto& [row, part] : columns[v]) {
        index.push_back(row);
        factor.push_back(part);
        see(part);
      }
    }
    start.push_back(static_cast<int>(index.size()));
  }

  [[nodiscard]] std::size_t columns() const { return cost.size(); }
  [[nodiscard]] std::size_t rows() const { return row_lower.size(); }
  /// Returns true if every number is far from those that Clp takes as infinite.
  [[nodiscard]] bool is_moderate() const { return largest < 1e20; }

  /// Calls `load` with the arguments that Clp and Cbc have in common.
  template <class Load>
  void load(const Load& load) const {
    load(static_cast<int>(columns()), static_cast<int>(rows()), start.data(), index.data(),
         factor.data(), lower.data(), upper.data(), cost.data(), row_lower.data(),
         row_upper.data());
  }
  [[nodiscard]] double cost_of(const std::vector<double>& x) const {
    double sum = 0;
    for (std::size_t v = 0; v < columns(); ++v) sum += cost[v] * x[v];
    return sum;
  }
  /// Returns true if x keeps all bounds, up to 1e-7 of the largest number of each.
  [[nodiscard]] bool is_kept_by(const std::vector<double>& x) const {
    std::vector<double> sum(rows()), size(rows(), 1.0);
    const auto within = [](double value, double low, double high, double scale) {
      return value >= low - 1e-7 * scale && value <= high + 1e-7 * scale;
    };
    for (std::size_t v = 0; v < columns(); ++v) {
      if (!within(x[v], lower[v], upper[v], std::max(1.0, std::abs(x[v])))) return false;
      for (auto k = static_cast<std::size_t>(start[v]); k < static_cast<std::size_t>(start[v + 1]);
           ++k) {
        const auto r = static_cast<std::size_t>(index[k]);
        sum[r] += factor[k] * x[v];
        size[r] = std::max(size[r], std::abs(factor[k] * x[v]));
      }
    }
    for (std::size_t r = 0; r < rows(); ++r)
      if (!within(sum[r], row_lower[r], row_upper[r], size[r])) return false;
    return true;
  }
  /// Returns the bound that dual prices prove: no solution costs less. Minus infinity: they prove
  /// none.
  [[nodiscard]] double proved_by(const std::vector<double>& prices) const {
    double bound = 0, dearest = 1;
    for (const double each : cost) dearest = std::max(dearest, std::abs(each));
    // The least value of price * amount over [low, high]. A price of rounding counts as 0 if there
    // is no bound.
    const auto add = [&](double price, double low, double high) {
      const double at = price > 0 ? low : high;
      if (std::isfinite(at))
        bound += price * at;
      else if (!(std::abs(price) <= 1e-7 * dearest))
        bound = -std::numeric_limits<double>::infinity();
    };
    for (std::size_t r = 0; r < rows(); ++r) add(prices[r], row_lower[r], row_upper[r]);
    for (std::size_t v = 0; v < columns(); ++v) {
      double reduced = cost[v];
      for (auto k = static_cast<std::size_t>(start[v]); k < static_cast<std::size_t>(start[v + 1]);
           ++k)
        reduced -= factor[k] * prices[static_cast<std::size_t>(index[k])];
      add(reduced, lower[v], upper[v]);
    }
    return bound;
  }
  /// Returns the program of the directions in which this one has no end, of length 1 at most.
  [[nodiscard]] CoinProgram directions() const {
    CoinProgram result = *this;
    const auto open = [](std::vector<double>& bounds, double end) {
      for (double& each : bounds) each = std::isfinite(each) ? 0 : end;
    };
    constexpr double none = std::numeric_limits<double>::infinity();
    open(result.lower, -1);
    open(result.upper, 1);
    open(result.row_lower, -none);
    open(result.row_upper, none);
    return result;
  }

 private:
  void see(double number) { largest = std::max(largest, std::abs(number)); }
};

}  // namespace impl

/// A ProgramSolver on COIN-OR's Clp, for linear programs, and Cbc, for integer programs. Both print
/// nothing and use one thread. Every optimum is checked here before it is returned: it keeps all
/// constraints and bounds, and dual prices prove the cost of a linear program, up to 1e-7. An
/// outcome `unbounded` has a solution and a direction in which the cost falls without an end.
/// Otherwise the outcome is `inaccurate`. So it is for a program with numbers from 1e20 on, which
/// Clp takes as infinite. Solves on several threads at once are not supported by Cbc.
class CbcSolver {
 public:
  /// Returns the solution of a linear program.
  [[nodiscard]] LinearSolution<double> solve(const LinearProgram<double>& program) const {
    return solved(impl::CoinProgram(program));
  }

  /// Returns the solution of `program` in which the variables `whole` are whole numbers. The other
  /// variables are solved once more with these fixed, so that they fit exactly whole ones. An
  /// outcome `unbounded` or `infeasible` may be the one of the program without the condition.
  /// `IntegerSolution::programs` counts nodes of the search, and `most_programs` limits them.
  /// @throws contract_error if `whole` names a variable that does not exist.
  [[nodiscard]] IntegerSolution<double> solve_integer(const LinearProgram<double>& program,
                                                      const std::vector<std::size_t>& whole,
                                                      std::size_t most_programs = 1'000'000) const {
    for (const std::size_t variable : whole)
      expects(variable < program.variables().size(), [&] {
        return ErrorInfo{"heddle::plan::CbcSolver", "there is no such variable",
                         text("variable ", variable, " of ", program.variables().size())};
      });
    impl::CoinProgram coin(program);
    const LinearSolution<double> relaxed = solved(coin);
    IntegerSolution<double> found;
    found.outcome = relaxed.outcome;
    found.bound = relaxed.cost;
    found.programs = 1;
    if (relaxed.outcome != Outcome::optimal || coin.columns() == 0) return found;

    const std::unique_ptr<void, void (*)(void*)> model(Cbc_newModel(), Cbc_deleteModel);
    coin.load([&](auto... all) { Cbc_loadProblem(model.get(), all...); });
    for (const std::size_t variable : whole)
      Cbc_setInteger(model.get(), static_cast<int>(variable));
    Cbc_setLogLevel(model.get(), 0);
    // Cbc ignores improvements below its increment, which is 1e-5 by default.
    Cbc_setParameter(model.get(), "increment", "1e-9");
    Cbc_setMaximumNodes(model.get(),
                        static_cast<int>(std::min<std::size_t>(most_programs, 1u << 30)));
    Cbc_solve(model.get());
    found.programs += static_cast<std::size_t>(std::max(0, Cbc_getNodeCount(model.get())));
    found.outcome = Outcome::inaccurate;
    if (Cbc_isProvenInfeasible(model.get())) {
      found.outcome = Outcome::infeasible;
      return found;
    }
    const double* const best = Cbc_bestSolution(model.get());
    if (best == nullptr) return found;
    for (const std::size_t variable : whole)
      coin.lower[variable] = coin.upper[variable] = std::round(best[variable]);
    LinearSolution<double> fixed = solved(coin);
    if (fixed.outcome != Outcome::optimal || !impl::CoinProgram(program).is_kept_by(fixed.values))
      return found;
    for (const std::size_t variable : whole) fixed.values[variable] = coin.lower[variable];
    found.cost = fixed.cost;
    found.values = std::move(fixed.values);
    const double claimed = Cbc_getObjValue(model.get());
    const bool is_same =
        std::abs(claimed - found.cost) <= 1e-6 * std::max(1.0, std::abs(found.cost));
    if (Cbc_isProvenOptimal(model.get()) && is_same) {
      found.outcome = Outcome::optimal;
      found.bound = found.cost;
    } else {
      found.bound = std::max(found.bound, Cbc_getBestPossibleObjValue(model.get()));
    }
    return found;
  }

 private:
  /// Runs Clp. Returns whether it found an optimum, or that the program is infeasible; otherwise
  /// nothing is known.
  static Outcome run(const impl::CoinProgram& coin, bool dual, LinearSolution<double>& found) {
    const std::unique_ptr<void, void (*)(void*)> model(Clp_newModel(), Clp_deleteModel);
    Clp_setLogLevel(model.get(), 0);
    coin.load([&](auto... all) { Clp_loadProblem(model.get(), all...); });
    if (dual)
      Clp_dual(model.get(), 0);
    else
      Clp_primal(model.get(), 0);
    found.pivots += static_cast<std::size_t>(std::max(0, Clp_numberIterations(model.get())));
    const double* const values = Clp_primalColumnSolution(model.get());
    const double* const prices = Clp_dualRowSolution(model.get());
    found.values.assign(values, values + coin.columns());
    found.prices.assign(prices, prices + coin.rows());
    const int status = Clp_status(model.get());
    if (status == 1) return Outcome::infeasible;
    return status == 0 && coin.is_kept_by(found.values) ? Outcome::optimal : Outcome::inaccurate;
  }
  static LinearSolution<double> solved(const impl::CoinProgram& coin) {
    LinearSolution<double> found;
    found.outcome = Outcome::inaccurate;
    if (!coin.is_moderate()) return found;
    for (const bool dual : {false, true}) {
      if (run(coin, dual, found) != Outcome::optimal) continue;
      found.cost = coin.cost_of(found.values);
      const double bound = coin.proved_by(found.prices);
      if (std::abs(found.cost - bound) <=
          1e-7 * std::max({1.0, std::abs(found.cost), std::abs(bound)})) {
        found.outcome = Outcome::optimal;
        return found;
      }
    }
    // Clp may take an unbounded program as infeasible. So ask whether there is any solution, and
    // then whether there is a direction without an end in which the cost falls.
    impl::CoinProgram any = coin;
    std::ranges::fill(any.cost, 0.0);
    const Outcome solution = run(any, true, found);
    if (solution == Outcome::infeasible) found.outcome = solution;
    if (solution == Outcome::optimal) {
      const impl::CoinProgram directions = coin.directions();
      if (run(directions, false, found) == Outcome::optimal &&
          directions.cost_of(found.values) < -1e-7)
        found.outcome = Outcome::unbounded;
    }
    found.cost = 0;
    found.values.clear();
    found.prices.clear();
    return found;
  }
};

}  // namespace heddle::inline v0::plan

#endif  // HEDDLE_HAS_CBC
