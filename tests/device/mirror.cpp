// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cmath>
#include <cstddef>
#include <cstdint>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/device/mirror.hpp>

namespace test_mirror {

namespace {

using Space = Kokkos::DefaultExecutionSpace;
template <class Value>
using Device = Kokkos::View<Value, Space::memory_space>;

/// Doubles an element: the work between the two copies of a round trip.
template <class T>
struct Double {
  Device<T*> values;
  KOKKOS_FUNCTION void operator()(std::size_t i) const { values(i) *= 2; }
};

/// A round trip as users write it; `forget` leaves out one of its copies. Returns the sum of what
/// the host sees at the end.
enum class Forget { nothing, to_device, to_host };
template <class T, class Mirror>
T round_trip(std::size_t size, Forget forget, const Mirror& mirror_of) {
  const Device<T*> values("values", size);
  const auto mirror = mirror_of(values);
  for (std::size_t i = 0; i < size; ++i) mirror(i) = static_cast<T>(i);
  if (forget != Forget::to_device) Kokkos::deep_copy(values, mirror);
  Kokkos::parallel_for("heddle::test::double", Kokkos::RangePolicy<Space>(0, size),
                       Double<T>{values});
  Kokkos::fence("heddle::test::round_trip");
  if (forget != Forget::to_host) Kokkos::deep_copy(mirror, values);
  T sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += mirror(i);
  return sum;
}

}  // namespace

TEMPLATE_TEST_CASE("a round trip through a host mirror gives the same in every mode", "", float,
                   double, std::int32_t, std::int64_t) {
  for (const std::size_t size : {0, 1, 7, 97}) {
    const auto expected = static_cast<TestType>(size * (size - (size > 0)));
    const auto usual = [](const auto& view) { return heddle::host_mirror(view); };
    const auto distinct = [](const auto& view) { return heddle::impl::distinct_mirror(view); };
    CHECK(round_trip<TestType>(size, Forget::nothing, usual) == expected);
    CHECK(round_trip<TestType>(size, Forget::nothing, distinct) == expected);
  }
}

TEMPLATE_TEST_CASE("with distinct mirrors a forgotten copy shows on the host", "", float, double,
                   std::int32_t, std::int64_t) {
  const auto distinct = [](const auto& view) { return heddle::impl::distinct_mirror(view); };
  constexpr TestType expected = 97 * 96;
  CHECK(round_trip<TestType>(97, Forget::to_device, distinct) != expected);
  CHECK(round_trip<TestType>(97, Forget::to_host, distinct) != expected);
}

TEST_CASE("distinct mirrors keep the shape, share nothing and hold no number at first") {
  const Device<double***> values("values", 2, 3, 5);
  const auto mirror = heddle::impl::distinct_mirror(values);
  CHECK(mirror.extent(0) == 2);
  CHECK(mirror.extent(1) == 3);
  CHECK(mirror.extent(2) == 5);
  CHECK(static_cast<const void*>(mirror.data()) != static_cast<const void*>(values.data()));
  CHECK(std::isnan(mirror(1, 2, 4)));
  const Device<double> scalar("scalar");
  CHECK(std::isnan(heddle::impl::distinct_mirror(scalar)()));
}

TEST_CASE("host_mirror follows the mode of the build") {
  const Device<int*> values("values", 3);
  const auto mirror = heddle::host_mirror(values);
  const bool same = static_cast<const void*>(mirror.data()) == values.data();
#ifdef HEDDLE_DISTINCT_MIRRORS
  CHECK_FALSE(same);
#else
  CHECK(same == Kokkos::SpaceAccessibility<Kokkos::HostSpace, Space::memory_space>::accessible);
#endif
}

}  // namespace test_mirror
