// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

#include <cstddef>
#include <utility>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include "support/stencil_reference.hpp"

namespace test_stencil {

using namespace stencil_test;

TEST_CASE("stencil on rank 1", "[stencil]") {
  using View = Kokkos::View<int*, Memory>;
  for (const std::size_t n : {0, 1, 2, 3, 64, 67, 1009})
    for (const int radius : {0, 1, 2, 5}) {
      const View in("in", n), out("out", n);
      check(in, out, radius, {7});
    }
}

TEST_CASE("stencil on rank 2", "[stencil]") {
  using View = Kokkos::View<int**, Kokkos::LayoutRight, Memory>;
  for (const auto& [n, m] : {std::pair{0, 5}, {1, 1}, {1, 70}, {13, 3}, {37, 131}})
    for (const int radius : {0, 1, 3}) {
      const View in("in", n, m), out("out", n, m);
      check(in, out, radius, {5, 33});
    }
}

TEST_CASE("stencil on rank 2, column-major", "[stencil]") {
  using View = Kokkos::View<int**, Kokkos::LayoutLeft, Memory>;
  for (const auto& [n, m] : {std::pair{1, 1}, {70, 3}, {37, 131}}) {
    const View in("in", n, m), out("out", n, m);
    check(in, out, 2, {33, 5});
  }
}

}  // namespace test_stencil
