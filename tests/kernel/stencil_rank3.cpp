// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

#include <array>
#include <cstddef>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include "support/stencil_reference.hpp"

namespace test_stencil_rank3 {

using namespace stencil_test;

TEST_CASE("stencil on rank 3", "[stencil]") {
  using View = Kokkos::View<int***, Kokkos::LayoutRight, Memory>;
  for (const auto& n : {std::array{0, 2, 3}, {1, 1, 1}, {2, 3, 70}, {7, 11, 5}, {13, 17, 37}})
    for (const int radius : {1, 2}) {
      const View in("in", n[0], n[1], n[2]), out("out", n[0], n[1], n[2]);
      check(in, out, radius, {3, 4, 17});
    }
}

TEST_CASE("stencil on rank 3, column-major", "[stencil]") {
  using View = Kokkos::View<int***, Kokkos::LayoutLeft, Memory>;
  const View in("in", 37, 7, 11), out("out", 37, 7, 11);
  check(in, out, 1, {17, 4, 3});
}

TEST_CASE("stencil on the inner part of a larger grid", "[stencil]") {
  const Kokkos::View<int***, Kokkos::LayoutRight, Memory> large("large", 9, 8, 30);
  const Kokkos::pair<int, int> planes(2, 9), rows(1, 7), columns(3, 29);
  const auto inner = Kokkos::subview(large, planes, rows, columns);
  const Kokkos::View<int***, Kokkos::LayoutRight, Memory> out("out", 7, 6, 26);
  check(inner, out, 1, {3, 4, 17});
  // What lies around it is as it was.
  const auto all = list(large);
  REQUIRE(all[0] == 0);
  REQUIRE(all[(2 * 8 + 1) * 30 + 2] == 0);
  REQUIRE(all[(2 * 8 + 1) * 30 + 3] == pattern(0));
}

}  // namespace test_stencil_rank3
