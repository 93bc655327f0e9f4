// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "support/space_battery.hpp"

namespace test_space_tiles {

using namespace space_test;

namespace {

struct Tagged {};

using Index = std::int64_t;

/// Counts the visits of the points of a box, and sums their numbers, which count its points in the
/// order of the indices. Called with as many indices as the range has, and what a pattern adds.
template <class Space, std::size_t rank>
struct Points {
  Array<int, Space> visits;
  Kokkos::Array<Index, rank> lower, extents;

  KOKKOS_FUNCTION Index visit(const Kokkos::Array<Index, rank>& point) const {
    Index number = 0;
    for (std::size_t axis = 0; axis < rank; ++axis)
      number = number * extents[axis] + point[axis] - lower[axis];
    Kokkos::atomic_add(&visits(static_cast<std::size_t>(number)), 1);
    return number;
  }
};

/// The same as a functor of `rank` indices. The signatures are written out, since Kokkos finds out
/// by them what a functor adds to.
template <class Space, std::size_t rank>
struct Visit;
template <class Space>
struct Visit<Space, 2> : Points<Space, 2> {
  KOKKOS_FUNCTION void operator()(Index a, Index b) const { this->visit({a, b}); }
  KOKKOS_FUNCTION void operator()(Tagged, Index a, Index b) const { this->visit({a, b}); }
  KOKKOS_FUNCTION void operator()(Index a, Index b, Index& to) const { to += this->visit({a, b}); }
};
template <class Space>
struct Visit<Space, 3> : Points<Space, 3> {
  KOKKOS_FUNCTION void operator()(Index a, Index b, Index c) const { this->visit({a, b, c}); }
  KOKKOS_FUNCTION void operator()(Tagged, Index a, Index b, Index c) const {
    this->visit({a, b, c});
  }
  KOKKOS_FUNCTION void operator()(Index a, Index b, Index c, Index& to) const {
    to += this->visit({a, b, c});
  }
};
template <class Space>
struct Visit<Space, 4> : Points<Space, 4> {
  KOKKOS_FUNCTION void operator()(Index a, Index b, Index c, Index d) const {
    this->visit({a, b, c, d});
  }
  KOKKOS_FUNCTION void operator()(Tagged, Index a, Index b, Index c, Index d) const {
    this->visit({a, b, c, d});
  }
  KOKKOS_FUNCTION void operator()(Index a, Index b, Index c, Index d, Index& to) const {
    to += this->visit({a, b, c, d});
  }
};
template <class Space>
struct Visit<Space, 5> : Points<Space, 5> {
  KOKKOS_FUNCTION void operator()(Index a, Index b, Index c, Index d, Index e) const {
    this->visit({a, b, c, d, e});
  }
  KOKKOS_FUNCTION void operator()(Tagged, Index a, Index b, Index c, Index d, Index e) const {
    this->visit({a, b, c, d, e});
  }
  KOKKOS_FUNCTION void operator()(Index a, Index b, Index c, Index d, Index e, Index& to) const {
    to += this->visit({a, b, c, d, e});
  }
};
template <class Space>
struct Visit<Space, 6> : Points<Space, 6> {
  KOKKOS_FUNCTION void operator()(Index a, Index b, Index c, Index d, Index e, Index f) const {
    this->visit({a, b, c, d, e, f});
  }
  KOKKOS_FUNCTION void operator()(Tagged, Index a, Index b, Index c, Index d, Index e,
                                  Index f) const {
    this->visit({a, b, c, d, e, f});
  }
  KOKKOS_FUNCTION void operator()(Index a, Index b, Index c, Index d, Index e, Index f,
                                  Index& to) const {
    to += this->visit({a, b, c, d, e, f});
  }
};

/// All loops over the box of `extents` from `lower` on, in tiles of `tile` (empty: Kokkos's
/// choice).
template <class Space, class Rank, std::size_t rank = Rank::rank>
void check_box(const Kokkos::Array<Index, rank>& lower, const Kokkos::Array<Index, rank>& extents,
               const Kokkos::Array<Index, rank>& tile) {
  Kokkos::Array<Index, rank> upper = lower;
  Index points = 1;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    upper[axis] += extents[axis];
    points *= extents[axis];
  }
  const auto visits = [&] { return Array<int, Space>("visits", static_cast<std::size_t>(points)); };
  const std::vector<int> once(static_cast<std::size_t>(points), 1);

  const Visit<Space, rank> loop{{visits(), lower, extents}};
  Kokkos::parallel_for("heddle::test::points", Kokkos::MDRangePolicy<Space, Rank>(lower, upper),
                       loop);
  REQUIRE(values_of(loop.visits) == once);

  const Visit<Space, rank> tagged{{visits(), lower, extents}};
  Kokkos::parallel_for("heddle::test::tagged_points",
                       Kokkos::MDRangePolicy<Space, Rank, Tagged>(lower, upper, tile), tagged);
  REQUIRE(values_of(tagged.visits) == once);

  const Visit<Space, rank> summed{{visits(), lower, extents}};
  Index sum = -1;
  Kokkos::parallel_reduce("heddle::test::sum_of_points",
                          Kokkos::MDRangePolicy<Space, Rank>(lower, upper, tile), summed, sum);
  REQUIRE(sum == points * (points - 1) / 2);
  REQUIRE(values_of(summed.visits) == once);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("ranges of two dimensions visit each point once", "", Spaces) {
  using Kokkos::Iterate, Kokkos::Rank;
  for (const Index rows : {0, 1, 13, 131})
    for (const Index columns : {0, 1, 7, 64}) {
      check_box<TestType, Rank<2>>({0, 0}, {rows, columns}, {4, 4});
      check_box<TestType, Rank<2, Iterate::Left, Iterate::Right>>({-3, 5}, {rows, columns}, {5, 3});
    }
}

TEMPLATE_LIST_TEST_CASE("ranges of three to six dimensions visit each point once", "", Spaces) {
  using Kokkos::Rank;
  check_box<TestType, Rank<3>>({1, -2, 3}, {5, 7, 11}, {2, 3, 4});
  check_box<TestType, Rank<3>>({0, 0, 0}, {5, 0, 11}, {2, 3, 4});
  check_box<TestType, Rank<4>>({0, 1, -2, 3}, {3, 5, 2, 7}, {2, 2, 2, 2});
  check_box<TestType, Rank<5>>({0, 0, 1, 0, 4}, {3, 2, 5, 1, 7}, {2, 2, 2, 2, 2});
  check_box<TestType, Rank<6>>({0, 0, 0, 2, 0, 0}, {2, 3, 1, 5, 2, 3}, {1, 2, 1, 2, 1, 2});
}

}  // namespace test_space_tiles
