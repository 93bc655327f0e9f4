// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// For the tests of stencils: a stencil in integers, the same point by point, and the comparison of
/// the two for every boundary.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/kernel/stencil.hpp>

#include "support/patterns.hpp"

namespace stencil_test {

using namespace pattern_test;
namespace hk = heddle::kernel;
using hk::Boundary;

/// Moves `at` to the next index of a box, the last axis fastest. Returns false after the last
/// index.
template <std::size_t Rank>
KOKKOS_FUNCTION bool next(Kokkos::Array<int, Rank>& at, const Kokkos::Array<int, Rank>& begin,
                          const Kokkos::Array<int, Rank>& end) {
  for (std::size_t a = Rank; a-- > 0;) {
    if (++at[a] < end[a]) return true;
    at[a] = begin[a];
  }
  return false;
}

/// Different factors for all neighbours within `radius`, corners and all.
template <std::size_t Rank>
struct Weighted {
  int radius;

  KOKKOS_FUNCTION static int weight(const Kokkos::Array<int, Rank>& d) {
    int sum = 1;
    for (std::size_t a = 0; a < Rank; ++a)
      sum += static_cast<int>(3 + 2 * a) * (a % 2 == 0 ? d[a] : d[a] * d[a]);
    return sum;
  }

  template <class Neighbourhood>
  KOKKOS_FUNCTION int operator()(const Neighbourhood& u) const {
    Kokkos::Array<int, Rank> begin, end;
    for (std::size_t a = 0; a < Rank; ++a) begin[a] = -radius, end[a] = radius + 1;
    int sum = 0;
    const auto neighbour = [&]<std::size_t... A>(const auto& d, std::index_sequence<A...>) {
      return u(d[A]...);
    };
    auto d = begin;
    do {
      sum += weight(d) * neighbour(d, std::make_index_sequence<Rank>{});
    } while (next(d, begin, end));
    return sum;
  }
};

constexpr int outside = 4, untouched = 777;

/// The same, point by point, on the elements in the order of list().
template <std::size_t Rank>
[[nodiscard]] std::vector<int> reference(const Kokkos::Array<int, Rank>& n, int radius,
                                         Boundary boundary) {
  using Indices = Kokkos::Array<int, Rank>;
  const auto element = [&](Indices at) -> std::optional<int> {
    std::size_t number = 0;
    for (std::size_t a = 0; a < Rank; ++a) {
      if (at[a] < 0 || at[a] >= n[a]) {
        if (boundary == Boundary::interior) return std::nullopt;
        if (boundary == Boundary::constant) return outside;
        at[a] = (at[a] % n[a] + n[a]) % n[a];
      }
      number = number * static_cast<std::size_t>(n[a]) + static_cast<std::size_t>(at[a]);
    }
    return pattern(number);
  };
  std::vector<int> result;
  if (std::any_of(n.data(), n.data() + Rank, [](int extent) { return extent == 0; })) return result;
  Indices at{}, begin, end;
  for (std::size_t a = 0; a < Rank; ++a) begin[a] = -radius, end[a] = radius + 1;
  do {
    std::optional<int> sum = 0;
    auto d = begin;
    do {
      Indices there;
      for (std::size_t a = 0; a < Rank; ++a) there[a] = at[a] + d[a];
      const auto u = element(there);
      sum = sum && u ? std::optional(*sum + Weighted<Rank>::weight(d) * *u) : std::nullopt;
    } while (next(d, begin, end));
    result.push_back(sum.value_or(untouched));
  } while (next(at, Indices{}, n));
  return result;
}

/// Compares with the reference, for every boundary; tiles as chosen, and one of this size.
template <class In, class Out>
void check(const In& in, const Out& out, int radius,
           const std::array<std::size_t, In::rank>& tile) {
  constexpr std::size_t rank = In::rank;
  Kokkos::Array<int, rank> shape;
  for (std::size_t a = 0; a < rank; ++a) shape[a] = static_cast<int>(in.extent(a));
  fill(in, pattern);
  for (const Boundary boundary : {Boundary::interior, Boundary::constant, Boundary::periodic}) {
    const auto expected = reference(shape, radius, boundary);
    for (const auto& points : {std::array<std::size_t, rank>{}, tile}) {
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
