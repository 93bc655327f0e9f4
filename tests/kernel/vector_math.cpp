// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// optimised: yes

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <Kokkos_Core.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core/random.hpp>
#include <heddle/kernel/vector_math.hpp>

namespace test_vector_math {

namespace hk = heddle::kernel;

namespace {

using HostExec = Kokkos::DefaultHostExecutionSpace;

struct Exp {
  static constexpr double bound = 1.1;  // ulp, as vector_math.hpp states
  template <class Real>
  static Real ours(Real x) {
    return hk::vector_exp(x);
  }
  template <class Wide>
  static Wide exact(Wide x) {
    return std::exp(x);
  }
};

/// The distance from |x|, finite, to the next number away from zero.
template <class Real>
Real last_place(Real x) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  constexpr auto infinity = std::bit_cast<Bits>(std::numeric_limits<Real>::infinity());
  const auto power = std::bit_cast<Real>(std::bit_cast<Bits>(x) & infinity);  // of two, at most |x|
  return std::max(power * std::numeric_limits<Real>::epsilon(),
                  std::numeric_limits<Real>::denorm_min());
}

/// |got - exact| in units of the last place of `exact`; infinite where one is not finite, unless
/// both are the same once `exact` is rounded.
template <class Real, class Wide>
double ulp_between(Real got, Wide exact) {
  constexpr double far = std::numeric_limits<double>::infinity();
  const auto rounded = static_cast<Real>(exact);
  if (std::isnan(exact)) return std::isnan(got) ? 0 : far;
  if (!std::isfinite(rounded) || !std::isfinite(got)) return got == rounded ? 0 : far;
  return static_cast<double>(std::abs(static_cast<Wide>(got) - exact) /
                             static_cast<Wide>(last_place(rounded)));
}

/// The largest error over the floats with bits [first, first + count) of one sign, every stride-th.
template <class Function>
struct WorstFloat {
  std::uint32_t sign, stride;
  void operator()(std::size_t i, double& worst) const {
    const auto bits = sign | static_cast<std::uint32_t>(i * stride);
    const auto x = std::bit_cast<float>(bits);
    worst = std::max(worst, ulp_between(Function::ours(x), Function::exact(double{x})));
  }
};

#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint32_t stride = 4099;  // a prime: the sanitizers make a step twenty times as dear
#else
constexpr std::uint32_t stride = 1;
#endif

template <class Function>
double worst_float(float from, float to, std::uint32_t every) {
  double worst = 0;
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    double found = 0;
    Kokkos::parallel_reduce(
        "heddle::test::worst_float",
        Kokkos::RangePolicy<HostExec>(std::bit_cast<std::uint32_t>(from) / every,
                                      std::bit_cast<std::uint32_t>(to) / every + 1),
        WorstFloat<Function>{sign, every}, Kokkos::Max<double>(found));
    worst = std::max(worst, found);
  }
  return worst;
}

}  // namespace

TEMPLATE_TEST_CASE("float: the stated error holds for every number", "", Exp) {
  // Between 2^-14 and 128 all of them; nearer to zero, where the functions are 1 + x and x, and
  // beyond, where they no longer change, every 509th.
  constexpr float small = 0x1p-14f, large = 128;
  const double inner = worst_float<TestType>(small, large, stride);
  const double below = worst_float<TestType>(0, small, 509 * stride);
  const double above =
      worst_float<TestType>(large, std::numeric_limits<float>::infinity(), 509 * stride);
  INFO("worst error in ulp: " << inner << ", near zero " << below << ", far out " << above);
  CHECK(inner <= TestType::bound);
  CHECK(inner > 0.5);  // no function of this kind rounds correctly everywhere: the measure measures
  CHECK(below <= TestType::bound);
  CHECK(above <= TestType::bound);
}

TEMPLATE_TEST_CASE("double: the stated error holds on two million numbers of every size", "", Exp) {
  if constexpr (std::numeric_limits<long double>::digits <= std::numeric_limits<double>::digits)
    SKIP("long double is no wider than double here: there is nothing to compare with");
  const heddle::Random random(5, "vector math");
  double worst = 0;
  const auto measure = [&](double x) {
    const double error =
        ulp_between(TestType::ours(x), TestType::exact(static_cast<long double>(x)));
    worst = std::max(worst, error);
  };
  constexpr std::uint64_t count = stride == 1 ? 1'000'000 : 20'000;
  for (std::uint64_t i = 0; i < count; ++i) {
    measure((2 * random.uniform(2 * i) - 1) * 750);  // where exp is neither 0 nor infinite
    // Sizes from 2^-60 to 2^6, evenly in their logarithm.
    const double size = std::exp2(66 * random.uniform(2 * i + 1) - 60);
    measure(i % 2 == 0 ? size : -size);
  }
  INFO("worst error in ulp: " << worst);
  CHECK(worst <= TestType::bound);
  CHECK(worst > 0.5);
}

TEMPLATE_TEST_CASE("zeros, infinities, NaN and the ends of the range are what they should be", "",
                   float, double) {
  using Limits = std::numeric_limits<TestType>;
  constexpr TestType inf = Limits::infinity();
  CHECK(hk::vector_exp(TestType(0)) == 1);
  CHECK(hk::vector_exp(TestType(-0.0)) == 1);
  CHECK(hk::vector_exp(inf) == inf);
  CHECK(hk::vector_exp(-inf) == 0);
  CHECK(hk::vector_exp(Limits::max()) == inf);
  CHECK(hk::vector_exp(Limits::lowest()) == 0);
  CHECK(hk::vector_exp(Limits::denorm_min()) == 1);
  CHECK(std::isnan(hk::vector_exp(Limits::quiet_NaN())));
  CHECK(std::isnan(hk::vector_exp(-Limits::quiet_NaN())));

  // Just inside the largest result and just outside it; the smallest denormal, and half of it.
  const TestType top = std::log(Limits::max());
  CHECK(hk::vector_exp(std::nextafter(top, TestType(0))) < inf);
  CHECK(hk::vector_exp(std::nextafter(top, inf) + TestType(0.01)) == inf);
  const TestType bottom = std::log(Limits::denorm_min());
  CHECK(hk::vector_exp(bottom) == Limits::denorm_min());
  CHECK(hk::vector_exp(bottom - TestType(0.7)) == 0);
}

}  // namespace test_vector_math
