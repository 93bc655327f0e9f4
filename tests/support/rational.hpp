// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Rational: a time type on which closed forms hold exactly.

#include <concepts>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <stdexcept>

namespace heddle::test {

/// A fraction of 64-bit numbers with a positive denominator. Sums of equal denominators keep it, so
/// a long simulation does not pay for reductions; every operation checks for overflow.
class Rational {
 public:
  constexpr Rational() = default;
  constexpr Rational(std::integral auto number) : m_over(static_cast<std::int64_t>(number)) {}
  constexpr Rational(std::int64_t over, std::int64_t under) : m_over(over), m_under(under) {
    if (under == 0) throw std::domain_error("Rational: division by zero");
    const std::int64_t shared = std::gcd(over, under) * (under < 0 ? -1 : 1);
    m_over /= shared;
    m_under /= shared;
  }

  friend constexpr Rational operator+(const Rational& a, const Rational& b) {
    if (a.m_under == b.m_under) return raw(sum(a.m_over, b.m_over), a.m_under);
    if (a.m_under % b.m_under == 0)
      return raw(sum(a.m_over, product(b.m_over, a.m_under / b.m_under)), a.m_under);
    return {sum(product(a.m_over, b.m_under), product(b.m_over, a.m_under)),
            product(a.m_under, b.m_under)};
  }
  friend constexpr Rational operator-(const Rational& a, const Rational& b) {
    return a + raw(-b.m_over, b.m_under);
  }
  friend constexpr Rational operator*(const Rational& a, const Rational& b) {
    const Rational left(a.m_over, b.m_under);
    const Rational right(b.m_over, a.m_under);
    return {product(left.m_over, right.m_over), product(left.m_under, right.m_under)};
  }
  friend constexpr Rational operator/(const Rational& a, const Rational& b) {
    return a * Rational(b.m_under, b.m_over);
  }
  friend constexpr bool operator<(const Rational& a, const Rational& b) {
    if (a.m_under == b.m_under) return a.m_over < b.m_over;
    return product(a.m_over, b.m_under) < product(b.m_over, a.m_under);
  }
  friend constexpr bool operator==(const Rational& a, const Rational& b) {
    return !(a < b) && !(b < a);
  }
  /// Returns the greatest whole number that is not above `a`.
  friend constexpr Rational floor(const Rational& a) {
    return {a.m_over / a.m_under - (a.m_over < 0 && a.m_over % a.m_under != 0)};
  }
  friend std::ostream& operator<<(std::ostream& out, const Rational& a) {
    return out << a.m_over << '/' << a.m_under;
  }

 private:
  static constexpr Rational raw(std::int64_t over, std::int64_t under) {
    Rational result;
    result.m_over = over;
    result.m_under = under;
    return result;
  }
  static constexpr std::int64_t sum(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_add_overflow(a, b, &result)) throw std::overflow_error("Rational: sum");
    return result;
  }
  static constexpr std::int64_t product(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result)) throw std::overflow_error("Rational: product");
    return result;
  }

  std::int64_t m_over = 0;
  std::int64_t m_under = 1;
};

static_assert(Rational(2, 7) + Rational(5, 3) == Rational(41, 21));
static_assert(Rational(1, 6) - Rational(1, 2) == Rational(-1, 3) && Rational(3, -6) < Rational(0));
static_assert(Rational(6, 4) * Rational(2, 9) == Rational(1, 3) &&
              Rational(7) / 2 == Rational(7, 2));

}  // namespace heddle::test
