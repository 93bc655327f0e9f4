// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LinearProgram: a linear objective under linear constraints, and its solution by the simplex
/// method. For the small programs of planners; it stores a dense table.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan/impl/simplex.hpp>

namespace heddle::inline v0::plan {

/// The relation between the two sides of a constraint.
enum class Relation : std::uint8_t { at_most, equal, at_least };

/// How the search for a solution ended.
enum class Outcome : std::uint8_t {
  optimal,     ///< the solution has the least cost
  infeasible,  ///< no values fulfil all constraints
  unbounded,   ///< the cost has no least value
  /// Rounding errors grew too large, so nothing is known. Does not happen with exact numbers.
  inaccurate,
};

/// Prints the name of the enumerator, such as "optimal".
inline std::ostream& operator<<(std::ostream& out, Outcome outcome) {
  constexpr const char* names[] = {"optimal", "infeasible", "unbounded", "inaccurate"};
  return out << heddle::impl::enumerator_name(names, outcome);
}

/// A linear program: the least cost x over all x >= lower bounds that fulfil the constraints.
/// `Number` is double, or an exact type with +, -, *, /, <, == and conversion from integers.
template <class Number = double>
class LinearProgram {
 public:
  /// One coefficient: the number of a variable and its factor.
  using Term = std::pair<std::size_t, Number>;

  /// A variable.
  struct Variable {
    std::string name;             ///< shown to people
    Number cost = {};             ///< cost per unit
    std::optional<Number> lower;  ///< the least value; nothing: it has none
    std::optional<Number> upper;  ///< the greatest value; nothing: it has none
  };
  /// A constraint: sum(factor * variable) `relation` `side`.
  struct Constraint {
    std::string name;         ///< shown to people
    std::vector<Term> terms;  ///< a variable may stand in several; their factors are added
    Relation relation = Relation::at_most;  ///< between the sum and the side
    Number side = {};                       ///< the right side
  };

  /// Adds a variable and returns its number, counted from 0.
  /// @throws contract_error if a bound or the cost is not finite, or if lower > upper.
  std::size_t add_variable(std::string name, Number cost, std::optional<Number> lower = Number{},
                           std::optional<Number> upper = {}) {
    const bool ordered = !lower || !upper || !(*upper < *lower);
    expects(ordered && finite(cost) && (!lower || finite(*lower)) && (!upper || finite(*upper)),
            [&] {
              return ErrorInfo{where, "a variable needs a finite cost and finite bounds in order",
                               text("variable '", name, "', cost ", cost,
                                    lower ? text(", lower ", *lower) : std::string(),
                                    upper ? text(", upper ", *upper) : std::string()),
                               "leave a bound out where there is none"};
            });
    m_variables.push_back({std::move(name), cost, std::move(lower), std::move(upper)});
    return m_variables.size() - 1;
  }
  /// Adds a constraint and returns its number, counted from 0.
  /// @throws contract_error if it names a variable that does not exist, if a number is not
  ///         finite, or if the relation is unknown.
  std::size_t add_constraint(std::string name, std::vector<Term> terms, Relation relation,
                             Number side) {
    heddle::impl::expect_enumerator(where, "relation", relation, Relation::at_least);
    expects(finite(side), [&] {
      return ErrorInfo{where, "a constraint needs a finite side",
                       text("constraint '", name, "', side ", side)};
    });
    for (const Term& term : terms)
      expects(term.first < m_variables.size() && finite(term.second), [&] {
        return ErrorInfo{where, "a constraint needs finite factors and variables that exist",
                         text("constraint '", name, "', factor ", term.second, " of variable ",
                              term.first, " of ", m_variables.size()),
                         "add its variables first"};
      });
    m_constraints.push_back({std::move(name), std::move(terms), relation, side});
    return m_constraints.size() - 1;
  }
  /// Replaces the bounds of a variable. @throws contract_error as add_variable().
  void set_bounds(std::size_t variable, std::optional<Number> lower, std::optional<Number> upper) {
    expects(variable < m_variables.size() && (!lower || finite(*lower)) &&
                (!upper || finite(*upper)) && (!lower || !upper || !(*upper < *lower)),
            [&] {
              return ErrorInfo{where,
                               "bounds need a variable that exists, and finite lower <= upper",
                               text("variable ", variable, " of ", m_variables.size(),
                                    lower ? text(", lower ", *lower) : std::string(),
                                    upper ? text(", upper ", *upper) : std::string())};
            });
    m_variables[variable].lower = std::move(lower);
    m_variables[variable].upper = std::move(upper);
  }

  /// Returns the variables, by number.
  [[nodiscard]] const std::vector<Variable>& variables() const noexcept { return m_variables; }
  /// Returns the constraints, by number.
  [[nodiscard]] const std::vector<Constraint>& constraints() const noexcept {
    return m_constraints;
  }

 private:
  static constexpr const char* where = "heddle::plan::LinearProgram";

  static bool finite(const Number& number) {
    if constexpr (std::floating_point<Number>)
      return number - number == Number{};
    else
      return true;
  }

  std::vector<Variable> m_variables;
  std::vector<Constraint> m_constraints;
};

/// The solution of a LinearProgram. `cost`, `values` and `prices` are set if it is optimal.
template <class Number = double>
struct LinearSolution {
  Outcome outcome = Outcome::infeasible;  ///< how the search ended
  Number cost = {};                       ///< the least cost
  std::vector<Number> values;             ///< by variable
  /// By constraint: how much the cost grows for each unit by which the right side grows (the dual
  /// prices). 0 if the constraint is not tight.
  std::vector<Number> prices;
  std::size_t pivots = 0;  ///< steps of the simplex method
};

/// Returns the solution of a linear program by the simplex method in two phases. Steps without
/// progress follow Bland's rule (Bland, "New finite pivoting rules for the simplex method", 1977),
/// so the search ends also if the program is degenerate. With floating point, an optimal solution
/// was checked afterwards: the constraints hold, and the dual prices prove the cost, up to 1e-7 of
/// the largest number; if not, the outcome is `inaccurate`.
template <class Number>
[[nodiscard]] LinearSolution<Number> solve(const LinearProgram<Number>& program) {
  // Column of variable v: x = lower + column, x = upper - column, or for a free one x = column -
  // second column.
  struct Place {
    std::size_t column;
    Number origin;
    Number sign;
    bool free;
  };
  impl::Simplex<Number> simplex;
  std::vector<Place> places;
  Number fixed{};
  for (const auto& variable : program.variables()) {
    const bool down = !variable.lower && variable.upper;
    const bool free = !variable.lower && !variable.upper;
    const Number sign = down ? Number(-1) : Number(1);
    const Number origin = variable.lower ? *variable.lower : down ? *variable.upper : Number{};
    places.push_back({simplex.add_column(sign * variable.cost), origin, sign, free});
    if (free) simplex.add_column(Number{} - variable.cost);
    fixed = fixed + variable.cost * origin;
  }
  const auto add_term = [&](std::vector<Number>& row, Number& side, std::size_t variable,
                            const Number& factor) {
    const Place& place = places[variable];
    row[place.column] = row[place.column] + place.sign * factor;
    if (place.free) row[place.column + 1] = row[place.column + 1] - factor;
    side = side - factor * place.origin;
  };
  for (const auto& constraint : program.constraints()) {
    std::vector<Number> row(simplex.columns());
    Number side = constraint.side;
    for (const auto& [variable, factor] : constraint.terms) add_term(row, side, variable, factor);
    simplex.add_row(std::move(row), static_cast<int>(constraint.relation) - 1, side);
  }
  for (std::size_t v = 0; v < places.size(); ++v) {
    const auto& variable = program.variables()[v];
    if (!variable.lower || !variable.upper) continue;
    std::vector<Number> row(simplex.columns());
    Number side = *variable.upper;
    add_term(row, side, v, Number(1));
    simplex.add_row(std::move(row), -1, side);
  }

  LinearSolution<Number> solution;
  const impl::SimplexEnd end = simplex.run();
  solution.pivots = simplex.pivots();
  solution.outcome = static_cast<Outcome>(end);
  if (end != impl::SimplexEnd::optimal) return solution;
  const std::vector<Number> columns = simplex.values();
  solution.cost = fixed + simplex.cost();
  for (const Place& place : places)
    solution.values.push_back(place.origin + place.sign * columns[place.column] -
                              (place.free ? columns[place.column + 1] : Number{}));
  solution.prices = simplex.prices();
  solution.prices.resize(program.constraints().size());
  return solution;
}

/// Returns the optimal solution of a linear program, as solve() does.
/// @throws contract_error if there is none. If the cost has no least value, the error names a
///         variable that lacks a bound in the direction in which its cost falls.
template <class Number>
[[nodiscard]] LinearSolution<Number> optimum(const LinearProgram<Number>& program) {
  LinearSolution<Number> found = solve(program);
  expects(found.outcome == Outcome::optimal, [&] {
    std::string which = text(program.variables().size(), " variables, ",
                             program.constraints().size(), " constraints");
    const char* fix = "look for a number that is far larger than the others, and scale it";
    if (found.outcome == Outcome::infeasible)
      fix = "remove or relax a constraint: no values fulfil all of them";
    if (found.outcome == Outcome::unbounded) {
      fix = "bound the variable, or correct the sign of its cost";
      for (const auto& variable : program.variables())
        if ((variable.cost < Number{} && !variable.upper) ||
            (Number{} < variable.cost && !variable.lower)) {
          which += text("; variable '", variable.name, "'");
          break;
        }
    }
    return ErrorInfo{"heddle::plan::optimum", text("the linear program is ", found.outcome), which,
                     fix};
  });
  return found;
}

}  // namespace heddle::inline v0::plan
