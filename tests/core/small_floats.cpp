// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The small floats, every pattern of each, against their definition by ldexp and nearbyint.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/core.hpp>

namespace test_small_floats {

using namespace heddle;

namespace {

/// What defines a format, apart from how it is implemented.
template <class Small>
struct Definition;
template <>
struct Definition<f16> {
  static constexpr int bits = 16, mantissa = 10, bias = 15;
  static constexpr bool infinite = true;
};
template <>
struct Definition<bf16> {
  static constexpr int bits = 16, mantissa = 7, bias = 127;
  static constexpr bool infinite = true;
};
template <>
struct Definition<f8e4m3> {
  static constexpr int bits = 8, mantissa = 3, bias = 7;
  static constexpr bool infinite = false;
};
template <>
struct Definition<f8e5m2> {
  static constexpr int bits = 8, mantissa = 2, bias = 15;
  static constexpr bool infinite = true;
};

/// The number of a pattern; NaN where it is none.
template <class Small>
double value(std::uint32_t pattern) {
  using D = Definition<Small>;
  const std::uint32_t sign = 1u << (D::bits - 1);
  const std::uint32_t magnitude = pattern % sign;
  const int exponent = static_cast<int>(magnitude >> D::mantissa);
  const std::uint32_t mantissa = magnitude % (1u << D::mantissa);
  double result = std::ldexp(exponent == 0 ? mantissa : mantissa + (1u << D::mantissa),
                             std::max(exponent, 1) - D::bias - D::mantissa);
  if (D::infinite && exponent + 1 == 1 << (D::bits - 1 - D::mantissa))
    result = mantissa == 0 ? HUGE_VAL : NAN;
  if (!D::infinite && magnitude == sign - 1) result = NAN;
  return pattern < sign ? result : -result;
}

template <class Small>
constexpr std::uint32_t largest() {
  using D = Definition<Small>;
  const std::uint32_t sign = 1u << (D::bits - 1);
  return D::infinite ? sign - (1u << D::mantissa) - 1 : sign - 2;
}

/// The pattern nearest to a number that is not NaN, by scaling it to whole numbers.
template <class Small>
std::uint32_t nearest(double number) {
  using D = Definition<Small>;
  const std::uint32_t sign = std::signbit(number) ? 1u << (D::bits - 1) : 0;
  const double magnitude = std::abs(number);
  const double top = value<Small>(largest<Small>());
  std::uint32_t result = largest<Small>() + (D::infinite ? 1 : 0);
  if (magnitude < 2 * top) {
    const int exponent = std::max(magnitude > 0 ? std::ilogb(magnitude) : -2000, 1 - D::bias);
    const double unit = std::ldexp(1, exponent - D::mantissa);
    const double rounded = std::nearbyint(magnitude / unit) * unit;
    if (rounded <= top) {
      const int found = rounded > 0 ? std::max(std::ilogb(rounded), 1 - D::bias) : 1 - D::bias;
      const auto whole = static_cast<std::uint32_t>(rounded / std::ldexp(1, found - D::mantissa));
      // A hidden one counts one up in the exponent.
      result = (static_cast<std::uint32_t>(found + D::bias - 1) << D::mantissa) + whole;
    }
  }
  return result | sign;
}

template <class Small>
std::uint32_t pattern_of(auto number) {
  return Small(number).pattern();
}

}  // namespace

static_assert(std::is_trivially_copyable_v<f16> && std::is_trivially_default_constructible_v<f16>);
static_assert(sizeof(f16) == size_of(Scalar::f16) && sizeof(bf16) == size_of(Scalar::bf16));
static_assert(sizeof(f8e4m3) == size_of(Scalar::f8e4m3) && sizeof(f8e5m2) == 1);
static_assert(scalar_of<f16> == Scalar::f16 && scalar_of<bf16> == Scalar::bf16);
static_assert(scalar_of<f8e4m3> == Scalar::f8e4m3 && scalar_of<f8e5m2> == Scalar::f8e5m2);
static_assert(static_cast<float>(f16::max()) == 65504 && static_cast<float>(f8e4m3::max()) == 448);
static_assert(static_cast<double>(f8e5m2::max()) == 57344);
static_assert(f16(1.0F / 3).pattern() == 0x3555 && bf16(3.140625).pattern() == 0x4049);

TEMPLATE_TEST_CASE("every pattern of a small float is its number, there and back", "", f16, bf16,
                   f8e4m3, f8e5m2) {
  for (std::uint32_t pattern = 0; pattern < 1u << (8 * sizeof(TestType)); ++pattern) {
    const auto number = TestType::of_pattern(static_cast<typename TestType::Pattern>(pattern));
    const double expected = value<TestType>(pattern);
    const float narrow = static_cast<float>(number);
    const double wide = static_cast<double>(number);
    INFO("pattern " << pattern << ", " << expected);
    REQUIRE(std::signbit(narrow) == std::signbit(expected));
    REQUIRE(std::isnan(narrow) == std::isnan(expected));
    REQUIRE(std::isnan(wide) == std::isnan(expected));
    if (std::isnan(expected)) {
      const TestType again(narrow);
      REQUIRE(std::isnan(static_cast<float>(again)));
      REQUIRE(std::signbit(static_cast<float>(again)) == std::signbit(expected));
      continue;
    }
    REQUIRE((narrow == expected && wide == expected));
    REQUIRE(pattern_of<TestType>(narrow) == pattern);
    REQUIRE(pattern_of<TestType>(wide) == pattern);
  }
}

TEMPLATE_TEST_CASE("between two small floats the nearer one is taken, halfway the even one", "",
                   f16, bf16, f8e4m3, f8e5m2) {
  const auto check = [](auto number, std::uint32_t expected) {
    INFO(number);
    REQUIRE(pattern_of<TestType>(number) == expected);
    REQUIRE(pattern_of<TestType>(-number) == expected + (1u << (8 * sizeof(TestType) - 1)));
  };
  for (std::uint32_t pattern = 0; pattern < largest<TestType>(); ++pattern) {
    const double low = value<TestType>(pattern), high = value<TestType>(pattern + 1);
    const double middle = (low + high) / 2;
    const auto exact = static_cast<float>(middle);
    REQUIRE(exact == middle);
    check(exact, pattern + pattern % 2);
    check(middle, pattern + pattern % 2);
    check(std::nextafter(exact, 0.0F), pattern);
    check(std::nextafter(exact, HUGE_VALF), pattern + 1);
    // Nearer than any float: rounded first to that it would be halfway.
    check(std::nextafter(middle, 0.0), pattern);
    check(std::nextafter(middle, HUGE_VAL), pattern + 1);
  }
}

TEMPLATE_TEST_CASE("beyond its range a small float is what its format says", "", f16, bf16, f8e4m3,
                   f8e5m2) {
  const std::uint32_t top = largest<TestType>();
  const double last = value<TestType>(top);
  const double unit = last - value<TestType>(top - 1);
  const std::uint32_t beyond = Definition<TestType>::infinite ? top + 1 : top;
  CHECK(pattern_of<TestType>(last) == top);
  CHECK(pattern_of<TestType>(std::nextafter(last + unit / 2, 0.0)) == top);
  CHECK(pattern_of<TestType>(last + unit / 2) == beyond);  // halfway, the even one
  CHECK(pattern_of<TestType>(last + unit) == beyond);
  CHECK(pattern_of<TestType>(std::numeric_limits<float>::max()) == beyond);
  CHECK(pattern_of<TestType>(std::numeric_limits<double>::max()) == beyond);
  CHECK(pattern_of<TestType>(HUGE_VALF) == beyond);
  CHECK(pattern_of<TestType>(HUGE_VAL) == beyond);
  CHECK(pattern_of<TestType>(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(pattern_of<TestType>(std::numeric_limits<double>::denorm_min()) == 0);
  for (const std::uint32_t payload : {1u, 0x00200000u, 0x00400001u, 0x007fffffu}) {
    CHECK(std::isnan(static_cast<float>(TestType(std::bit_cast<float>(0x7f800000u | payload)))));
    CHECK(std::isnan(static_cast<float>(TestType(std::bit_cast<float>(0xff800000u | payload)))));
  }
}

TEMPLATE_TEST_CASE("floats and doubles of all sizes round as their definition says", "", f16, bf16,
                   f8e4m3, f8e5m2) {
  const Random random(1, "small floats");
  for (std::uint64_t i = 0; i < 400000; ++i) {
    const auto number = std::bit_cast<float>(static_cast<std::uint32_t>(random.bits(i)));
    if (std::isnan(number)) continue;
    if (pattern_of<TestType>(number) != nearest<TestType>(number))
      FAIL(number << ": " << pattern_of<TestType>(number) << ", " << nearest<TestType>(number));
    const double wide = std::ldexp(random.uniform(i) - 0.5, static_cast<int>(i % 300) - 150);
    if (pattern_of<TestType>(wide) != nearest<TestType>(wide))
      FAIL(wide << ": " << pattern_of<TestType>(wide) << ", " << nearest<TestType>(wide));
  }
}

}  // namespace test_small_floats
