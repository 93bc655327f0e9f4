// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>

#include "support/complaint.hpp"

namespace test_index_and_units {

using namespace heddle;

namespace {

// A stage is not a rank, and a number is one only if it is a constant (tests/compile_failure).
static_assert(!std::convertible_to<Stage, Rank> && !std::constructible_from<Rank, Stage>);
static_assert(!std::convertible_to<Rank, int> && !std::constructible_from<Rank, double>);
static_assert(!std::equality_comparable_with<Rank, Stage>);
static_assert(!std::three_way_comparable_with<Rank, Stage>);
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

TEST_CASE("a constant is an index") {
  constexpr int last = 3;
  struct Place {
    Rank rank = 1;
    Stage stage = 2u;
  };
  const auto where = [](Rank rank, Stage stage) { return text(rank, ' ', stage); };
  Rank root = 0;
  root = last;
  CHECK(root == Rank{3});
  CHECK(where(1, 2) == "1 2");
  CHECK(Place{}.stage == Stage{2});
  CHECK(Place{.rank = last}.rank == Rank{3});
  CHECK(std::vector<Item>{4, 5} == std::vector<Item>{Item{4}, Item{5}});
  CHECK(Item(0xffffffff) == 0xffffffffu);
}

TEST_CASE("an index compares with integers by value") {
  // Every pair, with the numbers as a wide type says; of all types that hold them.
  constexpr std::array<std::int64_t, 8> numbers = {
      std::numeric_limits<std::int64_t>::min(), -(1ll << 32), -1, 0, 1, 3, 0x7fffffff, 0xffffffff};
  const auto compare = [](std::int64_t mine, auto number) {
    const Rank rank{mine};
    INFO(mine << " and " << number);
    CHECK((rank == number) == std::cmp_equal(mine, number));
    CHECK((number != rank) == std::cmp_not_equal(number, mine));
    CHECK((rank < number) == std::cmp_less(mine, number));
    CHECK((rank >= number) == std::cmp_greater_equal(mine, number));
    CHECK((number < rank) == std::cmp_less(number, mine));
    CHECK((number > rank) == std::cmp_greater(number, mine));
    CHECK((rank <=> number == 0) == (rank == number));
  };
  const auto in = [&]<class T>(std::int64_t mine, std::int64_t number, T) {
    if (std::in_range<T>(number)) compare(mine, static_cast<T>(number));
  };
  for (const std::int64_t mine : numbers) {
    if (mine < 0) continue;
    for (const std::int64_t number : numbers) {
      in(mine, number, std::int8_t{});
      in(mine, number, std::uint8_t{});
      in(mine, number, std::int32_t{});
      in(mine, number, std::uint32_t{});
      in(mine, number, std::int64_t{});
      in(mine, number, std::uint64_t{});
    }
    compare(mine, std::numeric_limits<std::uint64_t>::max());
  }
  static_assert(Rank{1} == 1 && Rank{0} > -1 && -1 < Rank{0} && Rank{0xffffffff} != -1);
}

TEST_CASE("a number that no index can be is refused") {
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(
      test::message_of<contract_error>([] { static_cast<void>(Rank{-1}); }),
      ContainsSubstring("heddle::Index: index out of range (-1); valid range is [0, 4294967295]"));
  CHECK_THAT(test::message_of<contract_error>([] { static_cast<void>(Item{1ll << 32}); }),
             ContainsSubstring("index out of range (4294967296)"));
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
