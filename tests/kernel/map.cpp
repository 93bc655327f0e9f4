// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

#include <cstddef>
#include <cstdint>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/kernel/reduce.hpp>

#include "support/patterns.hpp"

namespace test_map {

using namespace pattern_test;
using Catch::Matchers::ContainsSubstring;
namespace hk = heddle::kernel;

namespace {

struct Axpy {
  KOKKOS_FUNCTION double operator()(double x, float y) const { return 2 * x + double(y); }
};
struct Next {
  template <class T>
  KOKKOS_FUNCTION T operator()(T x) const {
    return static_cast<T>(x + 1);
  }
};
/// Looks up in a table of its own, which takes 4 KB of a core's local memory.
struct LookUp {
  double table[512];
  KOKKOS_FUNCTION double operator()(double x) const { return table[x < 0 ? 0 : 511]; }
};
struct Seven {
  KOKKOS_FUNCTION int operator()() const { return 7; }
};

double expected_axpy(std::size_t i) { return 2.0 * pattern(i) + pattern(i + 3); }

/// z = 2 x + y on Views of the given types and shape.
template <class Z, class X, class Y>
void check_axpy(const Z& z, const X& x, const Y& y) {
  fill(x, [](std::size_t i) { return pattern(i); });
  fill(y, [](std::size_t i) { return pattern(i + 3); });
  fill(z, [](std::size_t) { return -1; });
  hk::map(Exec{}, Axpy{}, z, x, y);
  Exec{}.fence("heddle::test::map");
  const auto result = list(z);
  REQUIRE(result.size() == z.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] != expected_axpy(i)) {
      INFO("element " << i);
      REQUIRE(result[i] == expected_axpy(i));
    }
  }
}

}  // namespace

TEST_CASE("map writes a function of every element", "[map]") {
  for (const std::size_t n : {0, 1, 2, 63, 64, 127, 1009, 40'009})
    check_axpy(Kokkos::View<double*, Memory>("z", n), Kokkos::View<double*, Memory>("x", n),
               Kokkos::View<float*, Memory>("y", n));
  check_axpy(Kokkos::View<double, Memory>("z"), Kokkos::View<double, Memory>("x"),
             Kokkos::View<float, Memory>("y"));
}

TEST_CASE("map takes every layout, and several at once", "[map]") {
  using Right = Kokkos::LayoutRight;
  using Left = Kokkos::LayoutLeft;
  const auto all = Kokkos::ALL;
  for (const std::size_t n : {1, 5, 131}) {
    const std::size_t m = 2 * n + 1;
    check_axpy(Kokkos::View<double**, Right, Memory>("z", n, m),
               Kokkos::View<double**, Right, Memory>("x", n, m),
               Kokkos::View<float**, Left, Memory>("y", n, m));
    check_axpy(Kokkos::View<double***, Left, Memory>("z", n, 3, 7),
               Kokkos::View<double***, Right, Memory>("x", n, 3, 7),
               Kokkos::View<float***, Left, Memory>("y", n, 3, 7));
    // The inner part of a larger matrix: its rows lie apart.
    const Kokkos::View<double**, Right, Memory> wide("wide", n + 2, m + 5);
    const auto inner = Kokkos::subview(wide, Kokkos::pair<std::size_t, std::size_t>(1, n + 1),
                                       Kokkos::pair<std::size_t, std::size_t>(2, m + 2));
    check_axpy(Kokkos::View<double**, Right, Memory>("z", n, m), inner,
               Kokkos::View<float**, Right, Memory>("y", n, m));
    // A column: no two elements are adjacent.
    const Kokkos::View<double**, Right, Memory> columns("columns", m, 3);
    check_axpy(Kokkos::subview(columns, all, 1), Kokkos::View<double*, Memory>("x", m),
               Kokkos::View<float*, Memory>("y", m));
  }
}

TEST_CASE("map leaves what lies between the rows alone", "[map]") {
  const Kokkos::View<int**, Kokkos::LayoutRight, Memory> wide("wide", 7, 9);
  fill(wide, [](std::size_t) { return 3; });
  hk::map(Exec{}, Seven{},
          Kokkos::subview(wide, Kokkos::pair<int, int>(1, 5), Kokkos::pair<int, int>(2, 7)));
  Exec{}.fence("heddle::test::map");
  const auto result = list(wide);
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t j = 0; j < 9; ++j)
      REQUIRE(result[i * 9 + j] == (i >= 1 && i < 5 && j >= 2 && j < 7 ? 7 : 3));
}

TEST_CASE("map works in place, on elements of one byte too", "[map]") {
  for (const std::size_t n : {1, 3, 4, 1021, 8195}) {
    const Kokkos::View<std::int8_t*, Memory> bytes("bytes", n);
    fill(bytes, pattern);
    hk::map(Exec{}, Next{}, bytes, bytes);
    // From the second element on, no address is a multiple of four.
    const auto rest = Kokkos::subview(bytes, Kokkos::pair<std::size_t, std::size_t>(1, n));
    hk::map(Exec{}, Next{}, rest, rest);
    Exec{}.fence("heddle::test::map");
    const auto result = list(bytes);
    for (std::size_t i = 0; i < n; ++i) REQUIRE(int(result[i]) == pattern(i) + (i == 0 ? 1 : 2));
  }
}

TEST_CASE("map refuses Views of different shapes", "[map]") {
  const Kokkos::View<float*, Memory> five("five", 5), six("six", 6);
  REQUIRE_THROWS_WITH(hk::map(Exec{}, Next{}, five, six),
                      ContainsSubstring("heddle::kernel::map: the Views have different shapes") &&
                          ContainsSubstring("5 and 6"));
}

TEST_CASE("the functions of map and reduce may be large", "[map]") {
  const std::size_t n = 1 << 19;  // the tiles of a core group are as large as its cores hold
  const Kokkos::View<double*, Memory> x("x", n), y("y", n);
  fill(x, pattern);
  LookUp look_up{};
  look_up.table[0] = -1;
  look_up.table[511] = 1;
  hk::map(Exec{}, look_up, y, x);
  Exec{}.fence("heddle::test::map");
  const auto result = list(y);
  double expected = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double sign = pattern(i) < 0 ? -1 : 1;
    if (result[i] != sign) REQUIRE(result[i] == sign);
    expected += sign;
  }
  double sum = 0;
  hk::reduce(Exec{}, Kokkos::Sum<double>(sum), look_up, x);
  REQUIRE(sum == expected);
}

}  // namespace test_map
