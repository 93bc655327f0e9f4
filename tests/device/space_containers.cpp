// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <Kokkos_Bitset.hpp>
#include <Kokkos_ScatterView.hpp>
#include <Kokkos_UnorderedMap.hpp>

#include "support/space_battery.hpp"

namespace test_space_containers {

using namespace space_test;

namespace {

template <class Map>
struct Insert {  // key i mod distinct, once for each i
  Map map;
  std::uint32_t distinct;
  KOKKOS_FUNCTION void operator()(std::uint32_t i, std::uint32_t& existing) const {
    if (map.insert(i % distinct, 3 * (i % distinct)).existing()) ++existing;
  }
};

template <class Map>
struct Find {
  Map map;
  KOKKOS_FUNCTION void operator()(std::uint32_t i, std::uint32_t& right) const {
    const auto at = map.find(i);
    if (map.valid_at(at) && map.value_at(at) == 3 * i) ++right;
  }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("an unordered map is filled and searched by kernels", "", Spaces) {
  using Map = Kokkos::UnorderedMap<std::uint32_t, std::uint32_t, TestType>;
  constexpr std::uint32_t inserts = 4001, distinct = 1009;
  const Map map(2 * distinct);
  std::uint32_t existing = 0, right = 0;
  const Kokkos::RangePolicy<TestType, Kokkos::IndexType<std::uint32_t>> all(0, inserts),
      each(0, distinct);
  Kokkos::parallel_reduce("heddle::test::insert", all, Insert<Map>{map, distinct}, existing);
  REQUIRE_FALSE(map.failed_insert());
  REQUIRE(existing == inserts - distinct);
  REQUIRE(map.size() == distinct);
  Kokkos::parallel_reduce("heddle::test::find", all, Find<Map>{map}, right);
  REQUIRE(right == distinct);
  Kokkos::parallel_reduce("heddle::test::find", each, Find<Map>{map}, right);
  REQUIRE(right == distinct);
}

namespace {

template <class Scatter>
struct Contribute {
  Scatter to;
  KOKKOS_FUNCTION void operator()(int i) const {
    const auto access = to.access();
    access(i % 13) += i;
    access(i % 5) += 1;
  }
};

template <class Space, class Scatter, class View>
void check_scatter(int n, Scatter scatter, View result) {
  Kokkos::parallel_for("heddle::test::contribute", Kokkos::RangePolicy<Space>(0, n),
                       Contribute<Scatter>{scatter});
  Kokkos::Experimental::contribute(result, scatter);
  std::vector<int> expected(13);
  for (int i = 0; i < n; ++i) {
    expected[static_cast<std::size_t>(i % 13)] += i;
    expected[static_cast<std::size_t>(i % 5)] += 1;
  }
  REQUIRE(values_of(result) == expected);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("scattered contributions arrive, by default and as chosen", "", Spaces) {
  using namespace Kokkos::Experimental;
  using Result = Kokkos::View<int*, Kokkos::LayoutRight, TestType>;
  for (const std::size_t size : sizes) {
    const int n = static_cast<int>(size);
    const Result result("result", 13), second("second", 13);
    check_scatter<TestType>(n, create_scatter_view(result), result);
    check_scatter<TestType>(
        n, create_scatter_view(ScatterSum(), ScatterNonDuplicated(), ScatterAtomic(), second),
        second);
  }
}

namespace {

template <class Bits>
struct SetEveryThird {
  Bits bits;
  KOKKOS_FUNCTION void operator()(unsigned i) const {
    if (i % 3 == 0) bits.set(i);
  }
};

/// While it holds a token, nobody else counts in the token's place.
template <class Token>
struct UseToken {
  Token token;
  Kokkos::View<int*, typename Token::execution_space> in_use, uses;
  KOKKOS_FUNCTION void operator()(int, int& wrong) const {
    const auto mine = static_cast<std::size_t>(token.acquire());
    if (mine >= static_cast<std::size_t>(token.size())) {
      ++wrong;
    } else {
      if (Kokkos::atomic_fetch_add(&in_use(mine), 1) != 0) ++wrong;
      ++uses(mine);
      if (Kokkos::atomic_fetch_add(&in_use(mine), -1) != 1) ++wrong;
    }
    token.release(static_cast<typename Token::size_type>(mine));
  }
};

template <class Token>
void check_token(const Token& token, int n) {
  using Space = typename Token::execution_space;
  const auto size = static_cast<std::size_t>(token.size());
  using Counts = decltype(UseToken<Token>::uses);
  const UseToken<Token> kernel{token, Counts("in_use", size), Counts("uses", size)};
  int wrong = -1;
  Kokkos::parallel_reduce("heddle::test::tokens", Kokkos::RangePolicy<Space>(0, n), kernel, wrong);
  REQUIRE(wrong == 0);
  int uses = 0;
  for (const int of_one : values_of(kernel.uses)) uses += of_one;
  REQUIRE(uses == n);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("tokens are held by one item at a time", "", Spaces) {
  using namespace Kokkos::Experimental;
  for (const std::size_t size : sizes) {
    const int n = static_cast<int>(size);
    check_token(UniqueToken<TestType>(), n);
    check_token(UniqueToken<TestType, UniqueTokenScope::Global>(), n);
    check_token(UniqueToken<TestType>(TestType().concurrency() + 3), n);
  }
}

TEMPLATE_LIST_TEST_CASE("a bit set counts what kernels set", "", Spaces) {
  for (const unsigned size : {1, 31, 32, 65, 1009}) {
    const Kokkos::Bitset<TestType> bits(size);
    Kokkos::parallel_for("heddle::test::set_bits", Kokkos::RangePolicy<TestType>(0, size),
                         SetEveryThird<Kokkos::Bitset<TestType>>{bits});
    REQUIRE(bits.count() == (size + 2) / 3);
  }
}

namespace {

template <class Space>
struct Mark {
  Array<int, Space> to;
  int value;
  KOKKOS_FUNCTION void operator()(int i) const { to(static_cast<std::size_t>(i)) = value; }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("a space divides into instances that all compute", "", Spaces) {
  const auto three = Kokkos::Experimental::partition_space(TestType(), 1, 1, 2);
  const auto four =
      Kokkos::Experimental::partition_space(TestType(), std::vector<double>{1, 2, 1, 1});
  REQUIRE(three.size() == 3);
  REQUIRE(four.size() == 4);
  int value = 0;
  const auto check = [&](const TestType& space) {
    const Mark<TestType> mark{Array<int, TestType>("to", 131), ++value};
    Kokkos::parallel_for("heddle::test::mark", Kokkos::RangePolicy<TestType>(space, 0, 131), mark);
    space.fence("heddle::test::marked");
    REQUIRE(values_of(mark.to) == std::vector<int>(131, value));
  };
  for (const auto& space : three) check(space);
  for (const auto& space : four) check(space);
}

}  // namespace test_space_containers
