// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/kernel/linalg.hpp>

#include "support.hpp"

namespace test_linalg {

using namespace kernel_test;
using hk::Transpose;

namespace {

struct Adaptor {
  template <class... Arguments>
  static void run(const Arguments&... arguments) {
    hk::gemm(Exec{}, arguments...);
  }
};
struct Team {
  template <class... Arguments>
  static void run(const Arguments&... arguments) {
    hk::team_gemm(Exec{}, arguments...);
  }
};

/// Compares with sums in long double: element by element |error| <= (k + 2) eps (|alpha| |A| |B| +
/// |beta C|), the bound that linalg.hpp states.
template <class Product, class Real>
void compare(std::size_t m, std::size_t n, std::size_t k, Transpose ta, Transpose tb, Real alpha,
             Real beta) {
  const bool a_turned = ta == Transpose::yes, b_turned = tb == Transpose::yes;
  const Tensor<Real> a(a_turned ? k : m, a_turned ? m : k, "a");
  const Tensor<Real> b(b_turned ? n : k, b_turned ? k : n, "b");
  Tensor<Real> c(m, n, "c");
  const Tensor<Real> before(m, n, "c");
  Product::run(ta, tb, alpha, a.view(), b.view(), beta, c.view());
  c.pull();
  INFO(m << " x " << n << " x " << k << " " << ta << " " << tb << " " << alpha << " " << beta);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      long double sum = 0, magnitude = 0;
      for (std::size_t l = 0; l < k; ++l) {
        const long double left = a_turned ? a.at(l, i) : a.at(i, l);
        const long double right = b_turned ? b.at(j, l) : b.at(l, j);
        sum += left * right;
        magnitude += std::abs(left * right);
      }
      const long double expected = alpha * sum + static_cast<long double>(beta) * before.at(i, j);
      magnitude = std::abs(static_cast<long double>(alpha)) * magnitude +
                  std::abs(static_cast<long double>(beta) * before.at(i, j));
      const long double bound =
          static_cast<long double>(k + 2) * std::numeric_limits<Real>::epsilon() * magnitude;
      REQUIRE(std::abs(static_cast<long double>(c.at(i, j)) - expected) <= bound);
    }
}

}  // namespace

TEMPLATE_TEST_CASE("a product stays within its error bound for every shape and transpose", "",
                   (std::pair<Adaptor, float>), (std::pair<Adaptor, double>),
                   (std::pair<Team, float>), (std::pair<Team, double>)) {
  using Product = typename TestType::first_type;
  using Real = typename TestType::second_type;
  constexpr std::size_t shapes[][3] = {{1, 1, 1},    {2, 3, 5},      {7, 1, 13},   {1, 17, 3},
                                       {5, 7, 0},    {0, 4, 3},      {4, 0, 3},    {0, 0, 0},
                                       {31, 61, 31}, {32, 64, 32},   {33, 67, 37}, {97, 5, 101},
                                       {3, 131, 70}, {193, 269, 131}};
  for (const auto& [m, n, k] : shapes)
    for (const Transpose ta : {Transpose::no, Transpose::yes})
      for (const Transpose tb : {Transpose::no, Transpose::yes}) {
        compare<Product, Real>(m, n, k, ta, tb, Real(1), Real(0));
        compare<Product, Real>(m, n, k, ta, tb, Real(-0.75), Real(1));
        compare<Product, Real>(m, n, k, ta, tb, Real(0), Real(0.5));
        compare<Product, Real>(m, n, k, ta, tb, Real(1.5), Real(-2));
      }
}

TEMPLATE_TEST_CASE("beta = 0 overwrites what C held, even a NaN", "", Adaptor, Team) {
  const auto k = static_cast<std::size_t>(GENERATE(0, 3));
  const Tensor<double> a(2, k, 1.0), b(k, 5, 1.0);
  Tensor<double> c(2, 5, std::numeric_limits<double>::quiet_NaN());
  TestType::run(Transpose::no, Transpose::no, 1.0, a.view(), b.view(), 0.0, c.view());
  c.pull();
  for (const double value : c.values()) REQUIRE(value == static_cast<double>(k));
}

TEMPLATE_TEST_CASE("a product writes its block of a wider matrix and nothing beside it", "",
                   Adaptor, Team) {
  const auto rows = static_cast<std::size_t>(GENERATE(1, 3));
  const auto columns = static_cast<std::size_t>(GENERATE(1, 7));  // one column has gaps too
  const auto depth = static_cast<std::size_t>(GENERATE(1, 5));
  const Tensor<double> wide(9, 11, "wide");
  Tensor<double> target(8, 10, "target");
  const Tensor<double> before(8, 10, "target");
  using Range = std::pair<std::size_t, std::size_t>;
  const auto a = Kokkos::subview(wide.view(), Range(1, 1 + rows), Range(2, 2 + depth));
  const auto b = Kokkos::subview(wide.view(), Range(4, 4 + depth), Range(3, 3 + columns));
  const auto c = Kokkos::subview(target.view(), Range(2, 2 + rows), Range(1, 1 + columns));
  TestType::run(Transpose::no, Transpose::no, 1.0, a, b, 1.0, c);
  target.pull();
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < 10; ++j) {
      double expected = before.at(i, j);
      if (i >= 2 && i < 2 + rows && j >= 1 && j < 1 + columns)
        for (std::size_t l = 0; l < depth; ++l)
          expected += wide.at(i - 1, l + 2) * wide.at(l + 4, j + 2);
      INFO(rows << " x " << columns << " x " << depth << " at " << i << ", " << j);
      REQUIRE(std::abs(target.at(i, j) - expected) <= 1e-14 * 20);
    }
}

TEMPLATE_TEST_CASE("shapes that do not fit are refused by name", "", Adaptor, Team) {
  const Tensor<double> a(2, 3, 0.0), b(4, 5, 0.0), c(2, 5, 0.0);
  const auto product = [&](Transpose ta, Transpose tb) {
    TestType::run(ta, tb, 1.0, a.view(), b.view(), 0.0, c.view());
  };
  REQUIRE_THROWS_AS(product(Transpose::no, Transpose::no), heddle::contract_error);
  REQUIRE_THROWS_WITH(
      product(Transpose::yes, Transpose::no),
      Catch::Matchers::ContainsSubstring("gemm: the shapes of A, B and C do not fit") &&
          Catch::Matchers::ContainsSubstring(
              "A is 2 x 3 transposed, B is 4 x 5 plain, C is 2 x 5"));
}

}  // namespace test_linalg
