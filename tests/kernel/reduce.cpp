// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/kernel/reduce.hpp>

#include "support/patterns.hpp"

namespace test_reduce {

using namespace pattern_test;
using Catch::Matchers::ContainsSubstring;
namespace hk = heddle::kernel;

namespace {

struct Product {
  template <class T>
  KOKKOS_FUNCTION T operator()(T x, T y) const {
    return x * y;
  }
};
struct Same {
  template <class T>
  KOKKOS_FUNCTION T operator()(T x) const {
    return x;
  }
};
struct Wide {
  KOKKOS_FUNCTION std::int64_t operator()(std::int8_t x) const { return x; }
};
struct Both {
  KOKKOS_FUNCTION Kokkos::MinMaxScalar<int> operator()(int x) const { return {x, x}; }
};

/// The sum of `values`, one row, in the order that reduce's documentation states.
float stated_order(const std::vector<float>& values) {
  const std::size_t n = values.size();
  const std::size_t block = std::max<std::size_t>(2048, ((n + 1023) / 1024 + 127) / 128 * 128);
  float sum = 0;
  for (std::size_t first = 0; first < n; first += block) {
    float lane[8] = {};
    for (std::size_t j = 0; j < std::min(block, n - first); ++j) lane[j % 8] += values[first + j];
    sum +=
        ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  }
  return sum;
}

}  // namespace

TEST_CASE("reduce joins integers exactly", "[reduce]") {
  for (const std::size_t n : {0, 1, 7, 8, 9, 2047, 2048, 2049, 100'003}) {
    const Kokkos::View<std::int64_t*, Memory> x("x", n), y("y", n);
    fill(x, pattern);
    fill(y, [](std::size_t i) { return pattern(i + 3); });
    std::int64_t expected = 0;
    for (std::size_t i = 0; i < n; ++i) expected += std::int64_t{pattern(i)} * pattern(i + 3);
    std::int64_t sum = -1;
    hk::reduce(Exec{}, Kokkos::Sum<std::int64_t>(sum), Product{}, x, y);
    REQUIRE(sum == expected);
  }
}

TEST_CASE("reduce takes every Kokkos reducer and writes where it says", "[reduce]") {
  const Kokkos::View<int**, Kokkos::LayoutLeft, Memory> x("x", 61, 83);
  fill(x, [](std::size_t i) { return i == 4321 ? 1000 : pattern(i); });
  int most = 0;
  hk::reduce(Exec{}, Kokkos::Max<int>(most), Same{}, x);
  REQUIRE(most == 1000);
  Kokkos::MinMaxScalar<int> both{};
  hk::reduce(Exec{}, Kokkos::MinMax<int>(both), Both{}, x);
  REQUIRE(both.min_val == -50);
  REQUIRE(both.max_val == 1000);

  const Kokkos::View<int, Memory> result("result");
  hk::reduce(Exec{}, Kokkos::Min<int, Memory>(result), Same{}, x);
  REQUIRE(list(result) == std::vector{-50});

  const Kokkos::View<int*, Memory> none("none", 0);
  hk::reduce(Exec{}, Kokkos::Min<int>(most), Same{}, none);
  REQUIRE(most == std::numeric_limits<int>::max());
}

TEST_CASE("reduce walks Views whose rows lie apart", "[reduce]") {
  const Kokkos::View<std::int8_t**, Kokkos::LayoutRight, Memory> wide("wide", 300, 41);
  fill(wide, [](std::size_t i) { return pattern(i) / 2; });
  const auto part =
      Kokkos::subview(wide, Kokkos::pair<int, int>(3, 290), Kokkos::pair<int, int>(2, 39));
  std::int64_t expected = 0;
  for (std::size_t i = 3; i < 290; ++i)
    for (std::size_t j = 2; j < 39; ++j) expected += pattern(i * 41 + j) / 2;
  std::int64_t sum = 0;
  hk::reduce(Exec{}, Kokkos::Sum<std::int64_t>(sum), Wide{}, part);
  REQUIRE(sum == expected);
}

TEST_CASE("reduce adds floats in the order that it states", "[reduce]") {
  for (const std::size_t n : {5, 2049, 100'003, 2'200'007}) {
    const heddle::Random random(11, "reduce");
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(random.normal(i));
    const Kokkos::View<float*, Memory> x("x", n);
    fill(x, [&](std::size_t i) { return values[i]; });
    float sum = 0;
    hk::reduce(Exec{}, Kokkos::Sum<float>(sum), Same{}, x);
    const float expected = stated_order(values);
    if constexpr (heddle::staging<Exec>::scratch == heddle::Scratch::shared) {
      // Another order: the terms are of size 1, their error at most that of n additions.
      REQUIRE(std::abs(sum - expected) <= 1.2e-7f * static_cast<float>(n));
    } else {
      REQUIRE(sum == expected);
    }
  }
}

TEST_CASE("reduce refuses Views of different shapes", "[reduce]") {
  const Kokkos::View<float*, Memory> five("five", 5), six("six", 6);
  float sum = 0;
  REQUIRE_THROWS_WITH(
      hk::reduce(Exec{}, Kokkos::Sum<float>(sum), Product{}, five, six),
      ContainsSubstring("heddle::kernel::reduce: the Views have different shapes (5 and 6)"));
}

}  // namespace test_reduce
