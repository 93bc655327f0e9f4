// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// For the tests of stencils: a stencil in integers, the same point by point, and the comparison of
/// the two for every boundary.

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/kernel/stencil.hpp>

#include "support/patterns.hpp"

namespace stencil_test {

using namespace pattern_test;
namespace hk = heddle::kernel;
using hk::Boundary;

/// Different factors for all neighbours within `radius`, corners and all.
template <int Rank>
struct Weighted {
  int radius;

  KOKKOS_FUNCTION static int weight(int i, int j, int k) { return 1 + 3 * i + 5 * j * j + 7 * k; }

  template <class Neighbourhood>
  KOKKOS_FUNCTION int operator()(const Neighbourhood& u) const {
    int sum = 0;
    for (int i = -radius; i <= radius; ++i) {
      if constexpr (Rank == 1) {
        sum += weight(i, 0, 0) * u(i);
      } else {
        for (int j = -radius; j <= radius; ++j) {
          if constexpr (Rank == 2)
            sum += weight(i, j, 0) * u(i, j);
          else
            for (int k = -radius; k <= radius; ++k) sum += weight(i, j, k) * u(i, j, k);
        }
      }
    }
    return sum;
  }
};

constexpr int outside = 4, untouched = 777;

/// The same, point by point, on the elements in the order of list(). Shapes have three axes, those
/// in front of the Rank last are 1.
template <int Rank>
[[nodiscard]] std::vector<int> reference(const std::array<int, 3>& n, int radius,
                                         Boundary boundary) {
  const auto element = [&](std::array<int, 3> at) -> std::optional<int> {
    for (std::size_t a = 0; a < 3; ++a) {
      if (at[a] >= 0 && at[a] < n[a]) continue;
      if (boundary == Boundary::interior) return std::nullopt;
      if (boundary == Boundary::constant) return outside;
      at[a] = (at[a] % n[a] + n[a]) % n[a];
    }
    return pattern(static_cast<std::size_t>((at[0] * n[1] + at[1]) * n[2] + at[2]));
  };
  std::vector<int> result;
  const std::array<int, 3> reach{Rank == 3 ? radius : 0, Rank >= 2 ? radius : 0, radius};
  for (int i = 0; i < n[0]; ++i)
    for (int j = 0; j < n[1]; ++j)
      for (int k = 0; k < n[2]; ++k) {
        std::optional<int> sum = 0;
        for (int a = -reach[0]; a <= reach[0]; ++a)
          for (int b = -reach[1]; b <= reach[1]; ++b)
            for (int c = -reach[2]; c <= reach[2]; ++c) {
              const auto u = element({i + a, j + b, k + c});
              const int weight = Rank == 1   ? Weighted<1>::weight(c, 0, 0)
                                 : Rank == 2 ? Weighted<2>::weight(b, c, 0)
                                             : Weighted<3>::weight(a, b, c);
              sum = sum && u ? std::optional(*sum + weight * *u) : std::nullopt;
            }
        result.push_back(sum.value_or(untouched));
      }
  return result;
}

/// The shape of a View of rank 1 to 3 as three axes.
template <class View>
[[nodiscard]] std::array<int, 3> shape(const View& view) {
  std::array<int, 3> n{1, 1, 1};
  for (std::size_t a = 0; a < View::rank; ++a)
    n[3 - View::rank + a] = static_cast<int>(view.extent(a));
  return n;
}

/// Compares with the reference, for every boundary; tiles as chosen, and one of this size.
template <class In, class Out>
void check(const In& in, const Out& out, int radius,
           const std::array<std::size_t, In::rank>& tile) {
  constexpr int rank = static_cast<int>(In::rank);
  fill(in, pattern);
  for (const Boundary boundary : {Boundary::interior, Boundary::constant, Boundary::periodic}) {
    const auto expected = reference<rank>(shape(in), radius, boundary);
    for (const auto& points : {std::array<std::size_t, In::rank>{}, tile}) {
      fill(out, [](std::size_t) { return untouched; });
      hk::stencil(Exec{}, static_cast<std::size_t>(radius), Weighted<rank>{radius}, out, in,
                  {.boundary = boundary, .outside = outside, .tile = points});
      Exec{}.fence("heddle::test::stencil");
      const auto result = list(out);
      INFO("boundary " << static_cast<int>(boundary) << ", radius " << radius << ", tile "
                       << points[0] << " along the first axis");
      REQUIRE(result == expected);
    }
  }
}

}  // namespace stencil_test
