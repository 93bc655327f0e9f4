// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <complex>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/device/counted.hpp>

namespace test_counted {

using heddle::Athread;
using heddle::counted;

namespace {

template <class From, class To>
struct ThreePoint {
  From from;
  To to;
  void operator()(std::size_t i) const { to(i) = (from(i - 1) + from(i) + from(i + 1)) / 3; }
};
template <class From, class To>
ThreePoint(From, To) -> ThreePoint<From, To>;

/// All ways to write to an element, on a matrix.
template <class View>
struct WriteAll {
  View view;
  void operator()(std::size_t i) const {
    view(i, 0) = 2;           // a store
    view(i, 0) += 3;          // one of each
    view(i, 0) *= 4;          // one of each
    view(i, 1) = view(i, 0);  // one of each
    view(i, 1) -= 5;          // one of each
    view(i, 1) /= 3;          // one of each
  }
};

}  // namespace

TEST_CASE("direct loads and stores of a three-point kernel are counted exactly") {
  const Athread space(heddle::CoreGroupOptions{});
  const Kokkos::View<double*, Athread> from("from", 10000), to("to", 10000);
  for (std::size_t i = 0; i < from.size(); ++i) from(i) = static_cast<double>(i * i % 101);
  const Kokkos::View<const double*, Athread> constant = from;
  Kokkos::parallel_for("heddle::test::three_point", Kokkos::RangePolicy<Athread>(space, 1, 9999),
                       ThreePoint{counted(constant), counted(to)});
  const auto launch = space.core_group().last_launch();
  REQUIRE(launch.direct_loads == 3 * 9998);
  REQUIRE(launch.direct_stores == 9998);
  for (std::size_t i = 1; i < 9999; ++i)
    REQUIRE(to(i) == (from(i - 1) + from(i) + from(i + 1)) / 3);
}

TEST_CASE("what the host touches is not counted, nor are plain Views") {
  const Athread space(heddle::CoreGroupOptions{});
  const Kokkos::View<double*, Athread> from("from", 100), to("to", 100);
  Kokkos::parallel_for("heddle::test::three_point", Kokkos::RangePolicy<Athread>(space, 1, 99),
                       ThreePoint{from, to});
  const auto seen = counted(from);
  double sum = 0;
  for (std::size_t i = 0; i < 100; ++i) sum += seen(i);
  seen(7) = sum + 1;
  REQUIRE(from(7) == 1);
  REQUIRE(space.core_group().total().direct_loads == 0);
  REQUIRE(space.core_group().total().direct_stores == 0);
}

TEST_CASE("every way to write counts, also in parts of wider elements and matrices") {
  const Athread space(heddle::CoreGroupOptions{});
  const Kokkos::View<std::complex<double>* [2], Kokkos::LayoutLeft, Kokkos::HostSpace> wide("w",
                                                                                            13);
  Kokkos::parallel_for("heddle::test::write_all", Kokkos::RangePolicy<Athread>(space, 0, 13),
                       WriteAll<decltype(counted(wide))>{counted(wide)});
  const auto launch = space.core_group().last_launch();  // 16 bytes are two words
  REQUIRE(launch.direct_loads == 2 * 5 * 13);
  REQUIRE(launch.direct_stores == 2 * 6 * 13);
  for (std::size_t i = 0; i < 13; ++i) {
    REQUIRE(wide(i, 0) == 20.0);
    REQUIRE(wide(i, 1) == 5.0);
  }
}

}  // namespace test_counted
