// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Equations: a chain of equations, of which each reads the values before it.

#include <concepts>
#include <type_traits>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

namespace pattern {

/// The values before an equation's own.
template <class Value>
class ValuesBefore {
 public:
  /// Refers to `last` below index `first`, and to `current` from there up to `size`. Values below
  /// `lowest` are not known.
  ValuesBefore(const Value* last, const Value* current, int first, int size,
               int lowest = 0) noexcept
      : m_last(last), m_current(current), m_first(first), m_size(size), m_lowest(lowest) {}

  /// Returns the number of values, which is the index of the equation.
  [[nodiscard]] int size() const noexcept { return m_size; }

  /// Returns value `i`.
  /// @throws contract_error if `i` is not below size(): then the equations are no chain. Also if it
  ///         is farther back than the `reach` of fixed_point() over ranks.
  const Value& operator[](int i) const {
    expects(i >= m_lowest && i < m_size, [&] {
      if (i >= 0 && i < m_lowest)
        return ErrorInfo{
            "heddle::pattern::fixed_point", "an equation reads farther back than options.reach",
            text("equation ", m_size, " reads value ", i, ", reach = ", m_size - m_lowest),
            "set reach to the largest distance, or to 0"};
      return ErrorInfo{"heddle::pattern::fixed_point",
                       "an equation may only read the values before its own",
                       text("equation ", m_size, " reads value ", i),
                       "number the equations so that each reads lower ones"};
    });
    return (i < m_first ? m_last : m_current)[i];
  }

 private:
  const Value* m_last;
  const Value* m_current;
  int m_first;
  int m_size;
  int m_lowest;
};

}  // namespace pattern

/// A chain of equations. Equation i computes value i as `rule(i, before)`, with the values 0 to
/// i - 1 in `before`.
template <class Value, class Rule>
requires std::is_invocable_r_v < Value, const Rule&, int, const pattern::ValuesBefore<Value>
& > class Equations {
 public:
  using value_type = Value;  ///< the type of the values

  /// Constructs `count` equations. Several threads may call `rule` at once. `start` is what every
  /// value is taken for before the first sweep; the result does not depend on it, but the number of
  /// sweeps may. @throws contract_error if `count` is negative.
  Equations(int count, Value start, Rule rule)
      : m_count(count), m_start(std::move(start)), m_rule(std::move(rule)) {
    expects(count >= 0, [&] {
      return ErrorInfo{"heddle::Equations", "the number of equations must not be negative",
                       text("count = ", count)};
    });
  }

  /// Returns the number of equations.
  [[nodiscard]] int size() const noexcept { return m_count; }
  /// Returns the start value.
  [[nodiscard]] const Value& start() const noexcept { return m_start; }
  /// Computes value `i`.
  [[nodiscard]] Value operator()(int i, const pattern::ValuesBefore<Value>& before) const {
    return m_rule(i, before);
  }

 private:
  int m_count;
  Value m_start;
  Rule m_rule;
};

}  // namespace heddle::inline v0
