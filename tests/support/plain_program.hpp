// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Plain: linear programs of small whole numbers, made at random, as plain arrays.

#include <cstddef>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <heddle/plan/solver/linear_program.hpp>

namespace heddle::test {

/// A program in plain arrays: minimise cost * x under rows and 0 <= x <= upper.
struct Plain {
  std::vector<int> cost;
  std::vector<std::vector<int>> rows;
  std::vector<plan::Relation> relations;
  std::vector<int> sides;
  std::vector<std::optional<int>> upper;

  [[nodiscard]] std::size_t size() const { return cost.size(); }
};

/// Returns the program in the form of the library.
template <class Number>
[[nodiscard]] plan::LinearProgram<Number> program_of(const Plain& plain) {
  plan::LinearProgram<Number> program;
  for (std::size_t v = 0; v < plain.size(); ++v)
    program.add_variable("x", Number(plain.cost[v]), Number{},
                         plain.upper[v] ? std::optional<Number>(*plain.upper[v]) : std::nullopt);
  for (std::size_t r = 0; r < plain.rows.size(); ++r) {
    std::vector<std::pair<std::size_t, Number>> terms;
    for (std::size_t v = 0; v < plain.size(); ++v) terms.push_back({v, Number(plain.rows[r][v])});
    program.add_constraint("row", terms, plain.relations[r], Number(plain.sides[r]));
  }
  return program;
}

/// Returns a program of up to 4 rows and so many variables; `boxed`: all have an upper bound.
[[nodiscard]] inline Plain random_plain(std::mt19937_64& random, int most_variables, bool boxed) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Plain plain;
  const int n = draw(1, most_variables);
  const int rows = draw(0, 4);
  for (int v = 0; v < n; ++v) {
    plain.cost.push_back(draw(-3, 3));
    plain.upper.push_back(boxed || draw(0, 3) == 0 ? std::optional<int>(draw(0, 3)) : std::nullopt);
  }
  for (int r = 0; r < rows; ++r) {
    plain.rows.emplace_back();
    for (int v = 0; v < n; ++v) plain.rows.back().push_back(draw(0, 2) == 0 ? 0 : draw(-3, 3));
    plain.relations.push_back(static_cast<plan::Relation>(draw(0, 2)));
    plain.sides.push_back(draw(0, 2) == 0 ? 0 : draw(-6, 6));  // degenerate ones are among them
  }
  return plain;
}

}  // namespace heddle::test
