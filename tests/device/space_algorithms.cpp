// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include <Kokkos_Random.hpp>
#include <Kokkos_Sort.hpp>
#include <Kokkos_StdAlgorithms.hpp>

#include "support/space_battery.hpp"

namespace test_space_algorithms {

using namespace space_test;

namespace {

/// A View with numbers that repeat, in no order.
template <class Space>
[[nodiscard]] Array<int, Space> jumble(std::size_t size) {
  const Array<int, Space> view("jumble", size);
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < size; ++i) host(i) = static_cast<int>(i * 7919 % 523);
  Kokkos::deep_copy(view, host);
  return view;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Views are sorted, plainly and by key", "", Spaces) {
  for (const std::size_t size : sizes) {
    const auto view = jumble<TestType>(size), keys = jumble<TestType>(size);
    auto expected = values_of(view);
    std::ranges::sort(expected);
    Kokkos::sort(TestType(), view);
    REQUIRE(values_of(view) == expected);

    const Array<int, TestType> values("values", size);
    Kokkos::deep_copy(values, keys);
    Kokkos::Experimental::sort_by_key(TestType(), keys, values);
    REQUIRE(values_of(keys) == expected);
    REQUIRE(values_of(values) == expected);
  }
}

namespace {

template <class Pool>
struct Draw {
  Pool pool;
  KOKKOS_FUNCTION void operator()(int, double& sum) const {
    auto state = pool.get_state();
    sum += state.drand();
    pool.free_state(state);
  }
};

template <class Pool>
void check_random(std::uint64_t seed) {
  using Space = typename Pool::device_type::execution_space;
  const Pool pool(seed);
  constexpr int n = 100003;
  double sum = 0;
  Kokkos::parallel_reduce("heddle::test::draw", Kokkos::RangePolicy<Space>(0, n), Draw<Pool>{pool},
                          sum);
  // The mean of n uniform numbers lies within 5 of its standard deviations, 1 / sqrt(12 n), of 1/2
  // but for one seed in a million; the seeds are fixed.
  REQUIRE(std::abs(sum / n - 0.5) < 5 / std::sqrt(12.0 * n));
  const Kokkos::View<double*, Space> filled("filled", 1009);
  Kokkos::fill_random(Space(), filled, pool, 2.0, 3.0);
  auto values = values_of(filled);
  REQUIRE(std::ranges::all_of(values, [](double x) { return x >= 2 && x < 3; }));
  std::ranges::sort(values);
  REQUIRE(std::ranges::adjacent_find(values) == values.end());
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("random numbers are drawn by kernels", "", Spaces) {
  check_random<Kokkos::Random_XorShift64_Pool<TestType>>(12345);
  check_random<Kokkos::Random_XorShift1024_Pool<TestType>>(54321);
}

namespace {

struct Doubled {
  KOKKOS_FUNCTION int operator()(int x) const { return 2 * x; }
};
struct Even {
  KOKKOS_FUNCTION bool operator()(int x) const { return x % 2 == 0; }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("algorithms of the standard library", "", Spaces) {
  namespace KE = Kokkos::Experimental;
  const TestType space;
  for (const std::size_t size : sizes) {
    const auto view = jumble<TestType>(size);
    const auto values = values_of(view);
    const Array<int, TestType> to("to", size);

    KE::transform(space, view, to, Doubled{});
    std::vector<int> expected(size);
    std::ranges::transform(values, expected.begin(), Doubled{});
    REQUIRE(values_of(to) == expected);

    KE::inclusive_scan(space, view, to);
    std::inclusive_scan(values.begin(), values.end(), expected.begin());
    REQUIRE(values_of(to) == expected);
    KE::exclusive_scan(space, view, to, 17);
    std::exclusive_scan(values.begin(), values.end(), expected.begin(), 17);
    REQUIRE(values_of(to) == expected);

    REQUIRE(KE::count_if(space, view, Even{}) ==
            static_cast<std::ptrdiff_t>(std::ranges::count_if(values, Even{})));
    REQUIRE(KE::reduce(space, view, 3) == std::accumulate(values.begin(), values.end(), 3));
    REQUIRE(KE::is_sorted(space, view) == std::ranges::is_sorted(values));

    KE::copy(space, view, to);
    const auto end = KE::unique(space, to);
    auto unique = values;
    unique.erase(std::ranges::unique(unique).begin(), unique.end());
    auto found = values_of(to);
    found.resize(static_cast<std::size_t>(KE::distance(KE::begin(to), end)));
    REQUIRE(found == unique);

    KE::reverse(space, view);
    auto reversed = values;
    std::ranges::reverse(reversed);
    REQUIRE(values_of(view) == reversed);
  }
}

}  // namespace test_space_algorithms
