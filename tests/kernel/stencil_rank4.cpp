// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

#include <array>
#include <cstddef>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include "support/stencil_reference.hpp"

namespace test_stencil_rank4 {

using namespace stencil_test;

TEST_CASE("stencil on rank 4", "[stencil]") {
  using View = Kokkos::View<int****, Kokkos::LayoutRight, Memory>;
  for (const auto& n : {std::array{2, 3, 0, 4}, {1, 1, 1, 1}, {5, 2, 3, 19}, {7, 5, 6, 11}})
    for (const int radius : {0, 1, 2}) {
      const View in("in", n[0], n[1], n[2], n[3]), out("out", n[0], n[1], n[2], n[3]);
      check(in, out, radius, {3, 2, 4, 5});
    }
}

TEST_CASE("stencil on rank 4, column-major", "[stencil]") {
  using View = Kokkos::View<int****, Kokkos::LayoutLeft, Memory>;
  const View in("in", 11, 3, 5, 7), out("out", 11, 3, 5, 7);
  check(in, out, 1, {5, 2, 2, 3});
}

TEST_CASE("stencil on the inner part of a larger grid of rank 4", "[stencil]") {
  const Kokkos::View<int****, Kokkos::LayoutRight, Memory> large("large", 7, 6, 8, 9);
  const Kokkos::pair<int, int> a(1, 6), b(2, 6), c(1, 8), d(3, 8);
  const auto inner = Kokkos::subview(large, a, b, c, d);
  const Kokkos::View<int****, Kokkos::LayoutRight, Memory> out("out", 5, 4, 7, 5);
  check(inner, out, 1, {2, 3, 2, 4});
}

}  // namespace test_stencil_rank4
