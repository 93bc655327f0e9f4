// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>

#include "support/complaint.hpp"

namespace test_index_and_units {

using namespace heddle;

namespace {

// A stage is not a rank, and neither is a number.
static_assert(!std::convertible_to<Stage, Rank> && !std::constructible_from<Rank, Stage>);
static_assert(!std::convertible_to<int, Rank> && std::constructible_from<Rank, int>);
static_assert(!std::convertible_to<Rank, int> && !std::constructible_from<Rank, double>);
static_assert(!std::equality_comparable_with<Rank, Stage>);
static_assert(sizeof(Rank) == 4 && std::is_trivially_copyable_v<Rank>);

static_assert(size_of(Scalar::byte) == 1);
static_assert(size_of(Scalar::i32) == sizeof(std::int32_t));
static_assert(size_of(Scalar::i64) == sizeof(std::int64_t));
static_assert(size_of(Scalar::f32) == sizeof(float));
static_assert(size_of(Scalar::f64) == sizeof(double));
static_assert(scalar_of<float> == Scalar::f32 && scalar_of<double> == Scalar::f64);
static_assert(scalar_of<std::int32_t> == Scalar::i32 && scalar_of<std::int64_t> == Scalar::i64);
static_assert(size_of(Scalar::i8) == 1 && scalar_of<std::int8_t> == Scalar::i8);
static_assert(scalar_of<char> == Scalar::byte && scalar_of<void*> == Scalar::byte);

static_assert(HEDDLE_VERSION ==
              10000 * HEDDLE_VERSION_MAJOR + 100 * HEDDLE_VERSION_MINOR + HEDDLE_VERSION_PATCH);

}  // namespace

TEST_CASE("an index counts, compares, prints and says its number") {
  Rank rank{3};
  CHECK(+rank == std::size_t{3});
  CHECK(rank.value == 3);
  CHECK(++rank == Rank{4});
  CHECK(Rank{1} < Rank{2});
  CHECK(Rank{} == Rank{0});
  CHECK(text(Rank{12}, ' ', Stage{0}) == "12 0");
  CHECK(+Item{std::numeric_limits<std::uint32_t>::max()} == 0xffffffffu);
}

TEST_CASE("a number that no index can be is refused") {
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(test::message_of<contract_error>([] { static_cast<void>(Rank{-1}); }),
             ContainsSubstring("heddle::Index: no such number (-1); an index counts from 0"));
  CHECK_THAT(test::message_of<contract_error>([] { static_cast<void>(Item{1ll << 32}); }),
             ContainsSubstring("no such number (4294967296)"));
  CHECK(Item{(1ll << 32) - 1} == Item{0xffffffffu});
  // A constant expression that is refused does not compile; one that is not, does.
  static_assert(Stage{7} == Stage{7u});
}

TEST_CASE("scalars print") {
  CHECK(text(Scalar::byte, ' ', Scalar::i32, ' ', Scalar::i64, ' ', Scalar::f32, ' ',
             Scalar::f64) == "byte i32 i64 f32 f64");
  CHECK(text(Scalar::f16, ' ', Scalar::bf16, ' ', Scalar::f8e4m3, ' ', Scalar::f8e5m2, ' ',
             Scalar::i8) == "f16 bf16 f8e4m3 f8e5m2 i8");
}

}  // namespace test_index_and_units
