// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Planted 3-SAT and WalkSAT (Selman, Kautz, Cohen, "Noise strategies for improving local search",
/// AAAI'94): a random search without restarts, whose run times races are about.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <heddle/core/random.hpp>

namespace heddle::test {

/// A formula of clauses of three literals. A literal is 2 * variable, plus 1 if it is negated.
struct Formula {
  using Clause = std::array<std::uint32_t, 3>;
  std::uint32_t variables = 0;
  std::vector<Clause> clauses;

  [[nodiscard]] bool is_satisfied(const std::vector<bool>& values) const {
    for (const Clause& clause : clauses) {
      bool satisfied = false;
      for (const std::uint32_t literal : clause)
        satisfied = satisfied || values[literal / 2] != (literal % 2 == 1);
      if (!satisfied) return false;
    }
    return true;
  }
};

/// Returns a random formula that the assignment of a seed satisfies.
inline Formula planted_formula(std::uint32_t variables, std::uint32_t clauses, std::uint64_t seed) {
  const Random random(seed, "planted formula");
  std::uint64_t drawn = 0;
  std::vector<bool> planted(variables);
  for (std::uint32_t v = 0; v < variables; ++v) planted[v] = random.below(drawn++, 2) == 1;
  Formula formula{variables, {}};
  while (formula.clauses.size() < clauses) {
    Formula::Clause clause{};
    for (std::uint32_t& literal : clause)
      literal = static_cast<std::uint32_t>(random.below(drawn++, 2 * std::uint64_t{variables}));
    if (clause[0] / 2 == clause[1] / 2 || clause[0] / 2 == clause[2] / 2 ||
        clause[1] / 2 == clause[2] / 2)
      continue;
    if (Formula{variables, {clause}}.is_satisfied(planted)) formula.clauses.push_back(clause);
  }
  return formula;
}

/// One run of WalkSAT on a formula.
class WalkSat {
 public:
  WalkSat(const Formula& formula, std::uint64_t seed)
      : m_formula(formula),
        m_random(seed, "WalkSAT"),
        m_values(formula.variables),
        m_clauses_of(2 * std::size_t{formula.variables}),
        m_satisfied(formula.clauses.size(), 0),
        m_place(formula.clauses.size(), 0) {
    for (std::uint32_t v = 0; v < formula.variables; ++v)
      m_values[v] = m_random.below(m_drawn++, 2) == 1;
    for (std::uint32_t c = 0; c < formula.clauses.size(); ++c)
      for (const std::uint32_t literal : formula.clauses[c]) {
        m_clauses_of[literal].push_back(c);
        if (is_true(literal)) ++m_satisfied[c];
      }
    for (std::uint32_t c = 0; c < formula.clauses.size(); ++c)
      if (m_satisfied[c] == 0) add(c);
  }

  [[nodiscard]] bool is_solved() const { return m_open.empty(); }
  [[nodiscard]] const std::vector<bool>& values() const { return m_values; }

  /// Flips one variable of an unsatisfied clause.
  void flip() {
    const Formula::Clause& clause =
        m_formula.clauses[m_open[m_random.below(m_drawn++, m_open.size())]];
    std::size_t best = 0;
    std::uint32_t least = ~0u;
    for (std::size_t k = 0; k < 3; ++k) {
      std::uint32_t breaks = 0;
      for (const std::uint32_t c : m_clauses_of[clause[k] ^ 1u])
        breaks += m_satisfied[c] == 1 ? 1u : 0u;
      if (breaks < least) {
        least = breaks;
        best = k;
      }
    }
    if (least > 0 && m_random.below(m_drawn++, 2) == 0) best = m_random.below(m_drawn++, 3);
    const std::uint32_t literal = clause[best];  // is false, and becomes true
    m_values[literal / 2] = !m_values[literal / 2];
    for (const std::uint32_t c : m_clauses_of[literal])
      if (m_satisfied[c]++ == 0) remove(c);
    for (const std::uint32_t c : m_clauses_of[literal ^ 1u])
      if (--m_satisfied[c] == 0) add(c);
  }

 private:
  [[nodiscard]] bool is_true(std::uint32_t literal) const {
    return m_values[literal / 2] != (literal % 2 == 1);
  }
  void add(std::uint32_t clause) {
    m_place[clause] = m_open.size();
    m_open.push_back(clause);
  }
  void remove(std::uint32_t clause) {
    m_open[m_place[clause]] = m_open.back();
    m_place[m_open.back()] = m_place[clause];
    m_open.pop_back();
  }

  const Formula& m_formula;
  Random m_random;
  std::uint64_t m_drawn = 0;
  std::vector<bool> m_values;
  std::vector<std::vector<std::uint32_t>> m_clauses_of;  ///< by literal
  std::vector<std::uint32_t> m_satisfied;                ///< by clause: its literals that are true
  std::vector<std::size_t> m_place;                      ///< by clause: its place in m_open
  std::vector<std::uint32_t> m_open;                     ///< the unsatisfied clauses
};

/// Returns the number of flips until a run finds a model.
inline double flips_of_run(const Formula& formula, std::uint64_t seed) {
  WalkSat run(formula, seed);
  double flips = 1;  // reading the first assignment counts, so that no run takes no time
  for (; !run.is_solved(); ++flips) run.flip();
  return flips;
}

}  // namespace heddle::test
