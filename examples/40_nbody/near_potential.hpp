// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The near part of Newton's potential, and its Taylor series in three dimensions.

#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>
#include <vector>

#include "particles.hpp"

namespace nbody {

/// The potential erfc(r / 2 rs) / r, which is Newton's without the part that a mesh computes.
class NearPotential {
 public:
  explicit NearPotential(double rs) : m_alpha(1 / (2 * rs)) {}

  /// Applies -1/r d/dr to the potential `times` times. Once, this is the pull over the distance:
  /// (erfc(u) + 2 u / sqrt(pi) exp(-u^2)) / r^3 with u = r / 2 rs.
  [[nodiscard]] double operator()(int times, double r) const {
    double value = std::erfc(m_alpha * r) / r;
    double bell = std::numbers::inv_sqrtpi / m_alpha * std::exp(-m_alpha * m_alpha * r * r);
    for (int n = 1; n <= times; ++n) {
      bell *= 2 * m_alpha * m_alpha;
      value = ((2 * n - 1) * value + bell) / (r * r);
    }
    return value;
  }

 private:
  double m_alpha;
};

/// The terms x^a y^b z^c / (a! b! c!) of Taylor series up to a degree.
class TaylorTerms {
 public:
  explicit TaylorTerms(int degree)
      : m_degree(degree), m_side(static_cast<std::size_t>(degree) + 1) {
    m_number.assign(m_side * m_side * m_side, m_side * m_side * m_side);
    for (std::size_t total = 0; total < m_side; ++total)
      for (std::size_t a = 0; a <= total; ++a)
        for (std::size_t b = 0; a + b <= total; ++b) {
          m_number[place({a, b, total - a - b})] = m_terms.size();
          m_terms.push_back({a, b, total - a - b});
        }
    for (const Term& one : m_terms)
      for (const Term& other : m_terms)
        m_sums.push_back(find({one[0] + other[0], one[1] + other[1], one[2] + other[2]}));
  }

  /// Returns the number of terms.
  [[nodiscard]] std::size_t size() const { return m_terms.size(); }
  /// Returns the number of the term with the sum of the exponents of two, or a number of at least
  /// size() if its degree is too high.
  [[nodiscard]] std::size_t sum(std::size_t k, std::size_t n) const {
    return m_sums[k * m_terms.size() + n];
  }
  /// Returns the number of the term with one more power of coordinate `d`.
  [[nodiscard]] std::size_t raised(std::size_t k, std::size_t d) const {
    Term term = m_terms[k];
    ++term[d];
    return find(term);
  }

  /// Computes the terms of v.
  void powers(const Vector3& v, std::vector<double>& out) const {
    out[0] = 1;
    for (std::size_t k = 1; k < m_terms.size(); ++k) {
      const auto [d, lower] = lowered(m_terms[k]);
      out[k] = out[find(lower)] * v[d] / static_cast<double>(m_terms[k][d]);
    }
  }

  /// Computes all derivatives of the potential at r, by the recursion of McMurchie and Davidson.
  void derivatives(const Vector3& r, const NearPotential& potential,
                   std::vector<double>& out) const {
    const double distance = std::sqrt(dot(r, r));
    std::vector<double> last(m_terms.size());
    out.assign(m_terms.size(), 0.0);
    for (int m = m_degree; m >= 0; --m) {
      std::swap(out, last);
      out[0] = (m % 2 == 0 ? 1 : -1) * potential(m, distance);
      for (std::size_t k = 1; k < m_terms.size(); ++k) {
        const auto [d, lower] = lowered(m_terms[k]);
        if (m_terms[k][0] + m_terms[k][1] + m_terms[k][2] > static_cast<std::size_t>(m_degree - m))
          break;
        out[k] = r[d] * last[find(lower)];
        if (lower[d] == 0) continue;
        Term lowest = lower;
        --lowest[d];
        out[k] += static_cast<double>(lower[d]) * last[find(lowest)];
      }
    }
  }

 private:
  using Term = std::array<std::size_t, 3>;

  [[nodiscard]] std::size_t place(const Term& term) const {
    return (term[0] * m_side + term[1]) * m_side + term[2];
  }
  [[nodiscard]] std::size_t find(const Term& term) const {
    for (const std::size_t exponent : term)
      if (exponent >= m_side) return m_number.size();
    return m_number[place(term)];
  }
  /// Returns a coordinate that the term has, and the term with one power less of it.
  [[nodiscard]] static std::pair<std::size_t, Term> lowered(Term term) {
    const std::size_t d = term[0] > 0 ? 0 : term[1] > 0 ? 1 : 2;
    --term[d];
    return {d, term};
  }

  int m_degree;
  std::size_t m_side;
  std::vector<Term> m_terms;
  std::vector<std::size_t> m_number;  // by exponents
  std::vector<std::size_t> m_sums;    // by pairs of terms
};

}  // namespace nbody
