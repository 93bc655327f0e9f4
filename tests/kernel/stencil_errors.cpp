// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

#include <cstddef>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/kernel/stencil.hpp>

#include "support/patterns.hpp"

namespace test_stencil_errors {

using namespace pattern_test;
using Catch::Matchers::ContainsSubstring;
namespace hk = heddle::kernel;

namespace {

struct Right {
  template <class Neighbourhood>
  KOKKOS_FUNCTION double operator()(const Neighbourhood& u) const {
    return u(0, 1);
  }
};

using Grid = Kokkos::View<double**, Kokkos::LayoutRight, Memory>;

}  // namespace

TEST_CASE("stencil refuses Views that do not fit together", "[stencil]") {
  const Grid a("a", 5, 7), b("b", 7, 5), both("both", 9, 7);
  REQUIRE_THROWS_WITH(
      hk::stencil(Exec{}, 1, Right{}, a, b),
      ContainsSubstring("heddle::kernel::stencil: input and output have different shapes") &&
          ContainsSubstring("7 x 5 and 5 x 7"));
  REQUIRE_THROWS_WITH(
      hk::stencil(Exec{}, 1, Right{}, a, a),
      ContainsSubstring("heddle::kernel::stencil: the output overlaps the input (a and a); write "
                        "to another View"));
  const auto upper = Kokkos::subview(both, Kokkos::pair<int, int>(0, 5), Kokkos::ALL);
  const auto lower = Kokkos::subview(both, Kokkos::pair<int, int>(4, 9), Kokkos::ALL);
  REQUIRE_THROWS_WITH(hk::stencil(Exec{}, 1, Right{}, upper, lower),
                      ContainsSubstring("the output overlaps the input"));
}

TEST_CASE("stencil refuses rows whose elements lie apart", "[stencil]") {
  const Kokkos::View<double***, Kokkos::LayoutRight, Memory> values("values", 5, 7, 3);
  const auto second = Kokkos::subview(values, Kokkos::ALL, Kokkos::ALL, 1);
  REQUIRE_THROWS_WITH(
      hk::stencil(Exec{}, 1, Right{}, Grid("out", 5, 7), second),
      ContainsSubstring("heddle::kernel::stencil: the elements of a row are not adjacent (values "
                        "has a stride of 3 along axis 1); copy it to a View in"));
}

TEST_CASE("stencil refuses a tile that does not fit into the scratch", "[stencil]") {
  const Grid in("in", 200, 20'000), out("out", 200, 20'000);
  // Three rows of 20,001 elements would come, and one of 19,999 go.
  REQUIRE_THROWS_WITH(
      hk::stencil(Exec{}, 1, Right{}, out, in, {.tile = {4, 20'000}}),
      ContainsSubstring(
          "heddle::kernel::stencil: the tile does not fit into level-0 scratch (with its "
          "neighbourhood it takes 640016 bytes of ") &&
          ContainsSubstring("; choose a smaller tile"));
  REQUIRE_THROWS_WITH(
      hk::stencil(Exec{}, 1, Right{}, out, in, {.tile = {4, 0}}),
      ContainsSubstring("heddle::kernel::stencil: the tile has 0 points along an axis; give the "
                        "number of points along every axis, or along none"));
}

TEST_CASE("stencil of a radius larger than the grid writes nothing", "[stencil]") {
  const Grid in("in", 6, 50), out("out", 6, 50);
  fill(out, [](std::size_t) { return 3; });
  for (const std::size_t radius :
       {std::size_t{3}, std::size_t{25}, std::size_t{1000}, ~std::size_t{0} / 2, ~std::size_t{0}}) {
    hk::stencil(Exec{}, radius, Right{}, out, in);
    Exec{}.fence("heddle::test::stencil");
    REQUIRE(list(out) == std::vector<double>(300, 3.0));
  }
}

TEST_CASE("stencil refuses a radius that is no distance, and one that no scratch holds",
          "[stencil]") {
  const Grid in("in", 6, 50), out("out", 6, 50);
  for (const std::size_t radius : {~std::size_t{0}, std::size_t{1} << 61})
    REQUIRE_THROWS_WITH(
        hk::stencil(Exec{}, radius, Right{}, out, in, {.boundary = hk::Boundary::periodic}),
        ContainsSubstring("heddle::kernel::stencil: the radius is too large (radius ") &&
            ContainsSubstring(
                "); pass the largest distance of a neighbour that the function reads"));
  // The bytes of such tiles are more than a number holds.
  for (int power = 30; power <= 60; ++power)
    REQUIRE_THROWS_WITH(hk::stencil(Exec{}, std::size_t{1} << power, Right{}, out, in,
                                    {.boundary = hk::Boundary::periodic, .tile = {1, 1}}),
                        ContainsSubstring("the tile does not fit into level-0 scratch"));
}

}  // namespace test_stencil_errors
