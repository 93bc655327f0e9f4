// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Simplex: the simplex method on a dense table, for solve(LinearProgram).

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

namespace heddle::inline v0::plan::impl {

/// How the method ended. The numbers are those of Outcome.
enum class SimplexEnd { optimal, infeasible, unbounded, inaccurate };

/// The least cost * x for x >= 0 under rows. The table has a column for each x, one for the slack
/// of each row that is an inequality, one artificial column for each other start, and the right
/// side; its last row holds the reduced costs.
template <class Number>
class Simplex {
 public:
  /// Adds a column before all rows and returns its number.
  std::size_t add_column(Number cost) {
    m_cost.push_back(cost);
    return m_cost.size() - 1;
  }
  /// Adds row * x <= side if `relation` is -1, = if it is 0, >= if it is 1.
  void add_row(std::vector<Number> row, int relation, Number side) {
    m_rows.push_back({std::move(row), relation, side});
  }
  [[nodiscard]] std::size_t columns() const { return m_cost.size(); }
  [[nodiscard]] std::size_t pivots() const { return m_pivots; }

  SimplexEnd run() {
    build();
    // Phase 1: the least sum of the artificial columns.
    std::vector<Number> phase(m_width);
    for (std::size_t c = m_artificial; c < m_width; ++c) phase[c] = Number(1);
    set_costs(phase);
    if (!descend(m_width)) return SimplexEnd::inaccurate;
    if (above(Number{} - m_table.back().back(), m_scale)) return SimplexEnd::infeasible;
    leave_artificial();
    // Phase 2: the least cost. Artificial columns stay, for the prices, but never come in.
    std::vector<Number> cost(m_width);
    std::copy(m_cost.begin(), m_cost.end(), cost.begin());
    set_costs(cost);
    if (!descend(m_artificial)) return m_unbounded ? SimplexEnd::unbounded : SimplexEnd::inaccurate;
    return proved() ? SimplexEnd::optimal : SimplexEnd::inaccurate;
  }

  [[nodiscard]] Number cost() const {
    Number sum{};
    const std::vector<Number> x = values();
    for (std::size_t c = 0; c < columns(); ++c) sum = sum + m_cost[c] * x[c];
    return sum;
  }
  [[nodiscard]] std::vector<Number> values() const {
    std::vector<Number> x(columns());
    for (std::size_t r = 0; r < m_basis.size(); ++r)
      if (m_basis[r] < columns()) x[m_basis[r]] = m_table[r].back();
    return x;
  }
  /// Returns the dual price of each row: the reduced cost of the column that is a unit in it.
  [[nodiscard]] std::vector<Number> prices() const {
    std::vector<Number> prices;
    for (const Unit& unit : m_units)
      prices.push_back(unit.positive ? Number{} - m_table.back()[unit.column]
                                     : m_table.back()[unit.column]);
    return prices;
  }

 private:
  struct Row {
    std::vector<Number> factors;
    int relation;
    Number side;
  };
  /// A column that has one entry, 1 or -1, in a row as the user wrote it.
  struct Unit {
    std::size_t column;
    bool positive;
  };

  static Number magnitude(const Number& x) { return x < Number{} ? Number{} - x : x; }
  /// Whether x is above 0, by more than rounding can explain for numbers of this size.
  static bool above(const Number& x, const Number& size) {
    if constexpr (std::floating_point<Number>)
      return x > Number(1e-9) * (size < 1 ? Number(1) : size);
    else
      return Number{} < x;
  }

  void build() {
    m_artificial = columns();
    for (const Row& row : m_rows) m_artificial += row.relation != 0;
    m_width = m_artificial;
    std::size_t slack = columns();
    for (const Row& row : m_rows) {
      const bool turned = row.side < Number{};
      const Number sign = turned ? Number(-1) : Number(1);
      std::vector<Number> line(m_artificial);
      for (std::size_t c = 0; c < columns(); ++c) {
        line[c] = sign * row.factors[c];
        m_scale = std::max(m_scale, magnitude(line[c]));
      }
      m_scale = std::max(m_scale, magnitude(row.side));
      bool starts = false;
      if (row.relation != 0) {
        // The slack of <= is +1 as written, that of >= is -1; a turned row turns it.
        line[slack] = row.relation < 0 ? sign : Number{} - sign;
        starts = Number{} < line[slack];
        m_units.push_back({slack, row.relation < 0});
        if (starts) m_basis.push_back(slack);
        ++slack;
      }
      if (!starts) {
        if (row.relation == 0) m_units.push_back({m_width, !turned});
        m_basis.push_back(m_width++);
      }
      line.push_back(sign * row.side);
      m_table.push_back(std::move(line));
    }
    for (std::size_t r = 0; r < m_table.size(); ++r) {
      const Number side = m_table[r].back();
      m_table[r].back() = Number{};
      m_table[r].resize(m_width + 1);
      m_table[r].back() = side;
      if (m_basis[r] >= m_artificial) m_table[r][m_basis[r]] = Number(1);
    }
    m_table.emplace_back(m_width + 1);
  }

  /// Writes the reduced costs and minus the cost of the present basis into the last row.
  void set_costs(const std::vector<Number>& cost) {
    std::vector<Number>& last = m_table.back();
    std::copy(cost.begin(), cost.end(), last.begin());
    last.back() = Number{};
    for (std::size_t r = 0; r < m_basis.size(); ++r) {
      const Number factor = cost[m_basis[r]];
      if (factor == Number{}) continue;
      for (std::size_t c = 0; c <= m_width; ++c) last[c] = last[c] - factor * m_table[r][c];
    }
  }

  void pivot(std::size_t row, std::size_t column) {
    ++m_pivots;
    std::vector<Number>& line = m_table[row];
    const Number divisor = line[column];
    for (Number& x : line) x = x / divisor;
    for (std::size_t r = 0; r < m_table.size(); ++r) {
      const Number factor = m_table[r][column];
      if (r == row || factor == Number{}) continue;
      for (std::size_t c = 0; c <= m_width; ++c)
        if (!(line[c] == Number{})) m_table[r][c] = m_table[r][c] - factor * line[c];
      m_table[r][column] = Number{};
    }
    m_basis[row] = column;
  }

  /// Descends until no column below `end` lowers the cost. False if the cost has no least value, or
  /// if the steps do not end.
  bool descend(std::size_t end) {
    const std::size_t most = 200 * (m_width + m_table.size() + 10);
    std::size_t still = 0;  // steps without progress
    m_unbounded = false;
    for (std::size_t step = 0;; ++step) {
      if (std::floating_point<Number> && step > most) return false;
      const std::vector<Number>& last = m_table.back();
      std::size_t column = end;
      for (std::size_t c = 0; c < end; ++c) {
        if (!above(Number{} - last[c], Number(1))) continue;
        if (column == end || last[c] < last[column]) column = c;
        if (still > 20) break;  // Bland: the first one
      }
      if (column == end) return true;
      std::size_t row = m_basis.size();
      for (std::size_t r = 0; r < m_basis.size(); ++r) {
        if (!above(m_table[r][column], Number(1))) continue;
        if (row == m_basis.size()) {
          row = r;
          continue;
        }
        const Number left = m_table[r].back() * m_table[row][column];
        const Number right = m_table[row].back() * m_table[r][column];
        if (left < right || (left == right && m_basis[r] < m_basis[row])) row = r;
      }
      if (row == m_basis.size()) {
        m_unbounded = true;
        return false;
      }
      still = above(m_table[row].back(), Number(1)) ? 0 : still + 1;
      pivot(row, column);
    }
  }

  /// Takes artificial columns, which are 0 now, out of the basis. A row that has no other column
  /// says nothing that other rows do not say; its artificial column stays at 0.
  void leave_artificial() {
    for (std::size_t r = 0; r < m_basis.size(); ++r) {
      if (m_basis[r] < m_artificial) continue;
      for (std::size_t c = 0; c < m_artificial; ++c)
        if (above(magnitude(m_table[r][c]), Number(1))) {
          pivot(r, c);
          break;
        }
    }
  }

  /// Whether the values fulfil the rows as the user wrote them, and the prices prove the cost.
  [[nodiscard]] bool proved() const {
    if constexpr (!std::floating_point<Number>) {
      return true;
    } else {
      const std::vector<Number> x = values();
      const std::vector<Number> y = prices();
      Number size = m_scale;
      for (const Number& each : x) size = std::max(size, magnitude(each));
      const Number slip = Number(1e-7) * std::max(size, Number(1));
      std::vector<Number> reduced = m_cost;
      Number dual{};
      for (const Number& each : x)
        if (!(each > -slip)) return false;  // also if it is not a number
      for (std::size_t r = 0; r < m_rows.size(); ++r) {
        const Row& row = m_rows[r];
        Number sum{};
        for (std::size_t c = 0; c < columns(); ++c) {
          sum += row.factors[c] * x[c];
          reduced[c] -= row.factors[c] * y[r];
        }
        dual += row.side * y[r];
        const Number over = sum - row.side;
        if (row.relation <= 0 && !(over <= slip)) return false;
        if (row.relation >= 0 && !(over >= -slip)) return false;
        if (row.relation != 0 && !(Number(row.relation) * y[r] >= -slip)) return false;
      }
      Number largest = Number(1);
      for (const Number& cost : m_cost) largest = std::max(largest, magnitude(cost));
      for (const Number& each : reduced)
        if (!(each >= -Number(1e-7) * largest)) return false;
      const Number primal = cost();
      return magnitude(primal - dual) <=
             Number(1e-7) * std::max({Number(1), magnitude(primal), magnitude(dual)});
    }
  }

  std::vector<Number> m_cost;
  std::vector<Row> m_rows;
  std::vector<std::vector<Number>> m_table;
  std::vector<std::size_t> m_basis;  ///< by row: its column
  std::vector<Unit> m_units;         ///< by row
  std::size_t m_artificial = 0;      ///< the first artificial column
  std::size_t m_width = 0;           ///< columns without the right side
  std::size_t m_pivots = 0;
  Number m_scale{};
  bool m_unbounded = false;
};

}  // namespace heddle::inline v0::plan::impl
