// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core.hpp>

namespace test_random_numbers {

using namespace heddle;

namespace {

using Words = std::array<std::uint32_t, 4>;

// Constant expressions, and the generator's published known-answer vectors.
constexpr std::uint32_t ones = 0xffffffffu;
static_assert(heddle::impl::philox({0, 0, 0, 0}, {0, 0}) ==
              Words{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
static_assert(heddle::impl::philox({ones, ones, ones, ones}, {ones, ones}) ==
              Words{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
static_assert(heddle::impl::philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
                                   {0xa4093822u, 0x299f31d0u}) ==
              Words{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});

// The published values of 64-bit FNV-1a.
static_assert(fnv1a("") == 0xcbf29ce484222325u);
static_assert(fnv1a("a") == 0xaf63dc4c8601ec8cu);
static_assert(fnv1a("foobar") == 0x85944171f73967e8u);
static_assert(fnv1a("bar", fnv1a("foo")) == fnv1a("foobar"));

constexpr std::uint64_t many = 200'000;

/// Mean of f(0) .. f(many - 1) and of their squares.
template <class F>
std::array<double, 2> moments(F&& f) {
  std::array<double, 2> sums{};
  for (std::uint64_t i = 0; i < many; ++i) {
    const double x = f(i);
    sums[0] += x;
    sums[1] += x * x;
  }
  return {sums[0] / many, sums[1] / many};
}

}  // namespace

TEST_CASE("a random number depends on seed, name and index alone") {
  const Random random(7, "weights");
  CHECK(random.bits(3) == Random(7, "weights").bits(3));
  CHECK(random.bits(3) != random.bits(4));
  CHECK(random.bits(3) != Random(8, "weights").bits(3));
  CHECK(random.bits(3) != Random(7, "bias").bits(3));
  // Indices, names and seeds above 32 bits count in full.
  CHECK(random.bits(3) != random.bits(3 + (std::uint64_t{1} << 32)));
  CHECK(random.bits(3) != Random(7 + (std::uint64_t{1} << 32), "weights").bits(3));
  STATIC_CHECK(Random(7, "weights").bits(3) == Random(7, "weights").bits(3));
}

// The bounds are five standard deviations of the mean of as many samples; seeds are fixed, so a
// failure is a change of the generator.
TEST_CASE("uniform() lies in [0, 1) and has the moments of the uniform distribution") {
  const Random random(1, "uniform");
  bool inside = true;
  const auto [mean, square] = moments([&](std::uint64_t i) {
    const double x = random.uniform(i);
    inside = inside && x >= 0 && x < 1;
    return x;
  });
  CHECK(inside);
  CHECK(std::abs(mean - 1.0 / 2) < 5 * std::sqrt(1.0 / 12 / many));
  CHECK(std::abs(square - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / many));
}

TEST_CASE("normal() is finite and has the moments of the normal distribution") {
  const Random random(2, "normal");
  bool finite = true;
  const auto [mean, square] = moments([&](std::uint64_t i) {
    const double x = random.normal(i);
    finite = finite && std::isfinite(x);
    return x;
  });
  CHECK(finite);
  CHECK(std::abs(mean) < 5 * std::sqrt(1.0 / many));
  CHECK(std::abs(square - 1) < 5 * std::sqrt(2.0 / many));
  const double fourth = moments([&](std::uint64_t i) { return std::pow(random.normal(i), 2); })[1];
  CHECK(std::abs(fourth - 3) < 5 * std::sqrt(96.0 / many));
}

TEST_CASE("below() hits every number under its bound equally often, and no other") {
  const Random random(3, "below");
  for (const std::uint64_t bound : {1u, 2u, 3u, 7u, 97u}) {
    std::vector<double> hits(bound + 1, 0);  // the last: anything that is not below
    for (std::uint64_t i = 0; i < many; ++i) {
      ++hits[std::min(random.below(i, bound), bound)];
    }
    REQUIRE(hits[bound] == 0);
    hits.pop_back();
    const double each = static_cast<double>(many) / static_cast<double>(bound);
    double chi = 0;
    for (const double count : hits) chi += (count - each) * (count - each) / each;
    const auto freedom = static_cast<double>(bound - 1);
    CHECK(chi <= freedom + 5 * std::sqrt(2 * freedom));
  }
  const std::uint64_t large = ~std::uint64_t{0};
  CHECK(random.below(1, large) != random.below(2, large));
}

}  // namespace test_random_numbers
