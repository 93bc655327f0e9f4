// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

/// @file
/// Stencils on ranks 5 to 8.

#include <array>
#include <cstddef>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include "support/stencil_reference.hpp"

namespace test_stencil_ranks {

using namespace stencil_test;

TEST_CASE("stencil on rank 5", "[stencil]") {
  using View = Kokkos::View<int*****, Kokkos::LayoutRight, Memory>;
  const View in("in", 5, 4, 3, 2, 7), out("out", 5, 4, 3, 2, 7);
  check(in, out, 1, {2, 3, 1, 2, 4});
}

TEST_CASE("stencil on rank 6", "[stencil]") {
  using View = Kokkos::View<int******, Kokkos::LayoutRight, Memory>;
  const View in("in", 3, 4, 3, 3, 3, 5), out("out", 3, 4, 3, 3, 3, 5);
  check(in, out, 1, {2, 1, 3, 2, 1, 3});
}

TEST_CASE("stencil on rank 7", "[stencil]") {
  using View = Kokkos::View<int*******, Kokkos::LayoutRight, Memory>;
  const View in("in", 3, 3, 3, 3, 3, 3, 4), out("out", 3, 3, 3, 3, 3, 3, 4);
  check(in, out, 1, {2, 1, 1, 1, 2, 1, 2});
}

TEST_CASE("stencil on rank 8", "[stencil]") {
  using View = Kokkos::View<int********, Kokkos::LayoutRight, Memory>;
  const View flat("in", 2, 3, 1, 2, 3, 1, 2, 5), to("out", 2, 3, 1, 2, 3, 1, 2, 5);
  for (const int radius : {0, 1}) check(flat, to, radius, {2, 1, 1, 1, 1, 1, 1, 1});
  const View in("in", 3, 3, 3, 3, 3, 3, 3, 3), out("out", 3, 3, 3, 3, 3, 3, 3, 3);
  check(in, out, 1, {2, 1, 1, 1, 1, 1, 1, 1});
}

}  // namespace test_stencil_ranks
