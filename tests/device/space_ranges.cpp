// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "support/space_battery.hpp"

namespace test_space_ranges {

using namespace space_test;

namespace {

struct Twice {};
struct Thrice {};

/// Counts visits, more of them by tag.
template <class Space>
struct Visit {
  Array<int, Space> visits;
  std::int64_t first;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    Kokkos::atomic_add(&visits(static_cast<std::size_t>(i - first)), 1);
  }
  KOKKOS_FUNCTION void operator()(Twice, std::int64_t i) const {
    Kokkos::atomic_add(&visits(static_cast<std::size_t>(i - first)), 2);
  }
  KOKKOS_FUNCTION void operator()(Thrice, std::int64_t i, int& sum) const {
    (*this)(i);
    sum += 3;
  }
};

template <class Policy>
void check_visits(const Policy& policy, std::int64_t first, std::size_t size, int each) {
  using Space = typename Policy::execution_space;
  const Array<int, Space> visits("visits", size);
  Kokkos::parallel_for("heddle::test::visit", policy, Visit<Space>{visits, first});
  REQUIRE(values_of(visits) == std::vector<int>(size, each));
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("a range visits each of its items once", "", Spaces) {
  using Kokkos::RangePolicy;
  for (const std::size_t size : sizes) {
    const auto n = static_cast<std::int64_t>(size);
    check_visits(RangePolicy<TestType>(0, n), 0, size, 1);
    check_visits(RangePolicy<TestType>(TestType(), 5, 5 + n), 5, size, 1);
    check_visits(RangePolicy<TestType>(0, n, Kokkos::ChunkSize(8)), 0, size, 1);
    check_visits(RangePolicy<TestType, Twice>(0, n), 0, size, 2);
    check_visits(RangePolicy<TestType, Kokkos::Schedule<Kokkos::Dynamic>>(0, n), 0, size, 1);
    check_visits(RangePolicy<TestType, Kokkos::IndexType<int>>(-7, n - 7), -7, size, 1);
    check_visits(RangePolicy<TestType, Kokkos::IndexType<unsigned>>(3, n + 3), 3, size, 1);
  }
}

TEMPLATE_LIST_TEST_CASE("a range may lie where 32 bits do not reach", "", Spaces) {
  const std::int64_t far = std::int64_t{1} << 33;
  using Policy = Kokkos::RangePolicy<TestType, Kokkos::IndexType<std::int64_t>>;
  check_visits(Policy(far, far + 97), far, 97, 1);
  check_visits(Policy(-far, -far + 97), -far, 97, 1);
  const std::int64_t last = std::numeric_limits<std::int64_t>::max();
  check_visits(Policy(last - 97, last), last - 97, 97, 1);
}

TEMPLATE_LIST_TEST_CASE("sums of integers are exact", "", Spaces) {
  for (const std::size_t size : sizes) {
    const auto n = static_cast<std::int64_t>(size);
    std::int64_t sum = -1;
    Kokkos::parallel_reduce(
        "heddle::test::sum", Kokkos::RangePolicy<TestType>(0, n),
        KOKKOS_LAMBDA(std::int64_t i, std::int64_t & to) { to += i * i; }, sum);
    REQUIRE(sum == (n - 1) * n * (2 * n - 1) / 6);

    const Array<int, TestType> visits("visits", size);
    int threes = -1;
    Kokkos::parallel_reduce("heddle::test::tagged", Kokkos::RangePolicy<TestType, Thrice>(0, n),
                            Visit<TestType>{visits, 0}, threes);
    REQUIRE(threes == 3 * n);
    REQUIRE(values_of(visits) == std::vector<int>(size, 1));

    const Kokkos::View<std::int64_t, typename TestType::memory_space> result("result");
    Kokkos::parallel_reduce(
        "heddle::test::sum_to_view", Kokkos::RangePolicy<TestType>(0, n),
        KOKKOS_LAMBDA(std::int64_t i, std::int64_t & to) { to += i; }, result);
    REQUIRE(values_of(result)[0] == n * (n - 1) / 2);
  }
}

TEMPLATE_LIST_TEST_CASE("reducers of Kokkos reduce, over no items to their identity", "", Spaces) {
  for (const std::size_t size : sizes) {
    const auto n = static_cast<int>(size);
    const Kokkos::RangePolicy<TestType, Kokkos::IndexType<int>> range(0, n);
    int most = 0;
    Kokkos::parallel_reduce(
        range, KOKKOS_LAMBDA(int i, int& to) { to = Kokkos::max(to, (i * 7) % 1009); },
        Kokkos::Max<int>(most));
    int least = 0;
    Kokkos::parallel_reduce(
        range, KOKKOS_LAMBDA(int i, int& to) { to = Kokkos::min(to, -((i * 7) % 1009)); },
        Kokkos::Min<int>(least));
    int expected_most = std::numeric_limits<int>::min();
    int where = 0;
    for (int i = 0; i < n; ++i)
      if ((i * 7) % 1009 > expected_most) expected_most = (i * 7) % 1009, where = i;
    REQUIRE(most == expected_most);
    REQUIRE(least == (n == 0 ? std::numeric_limits<int>::max() : -expected_most));

    typename Kokkos::MaxLoc<int, int>::value_type at;
    Kokkos::parallel_reduce(
        range,
        KOKKOS_LAMBDA(int i, typename Kokkos::MaxLoc<int, int>::value_type& to) {
          if ((i * 7) % 1009 > to.val) to = {(i * 7) % 1009, i};
        },
        Kokkos::MaxLoc<int, int>(at));
    REQUIRE(at.val == expected_most);
    if (n > 0) REQUIRE(at.loc == where);

    std::uint64_t product = 0;  // modulo 2^64, so the order does not matter
    Kokkos::parallel_reduce(
        range,
        KOKKOS_LAMBDA(int i, std::uint64_t& to) { to *= 2 * static_cast<std::uint64_t>(i) + 3; },
        Kokkos::Prod<std::uint64_t>(product));
    std::uint64_t expected_product = 1;
    for (int i = 0; i < n; ++i) expected_product *= 2 * static_cast<std::uint64_t>(i) + 3;
    REQUIRE(product == expected_product);

    bool all = false;
    Kokkos::parallel_reduce(
        range, KOKKOS_LAMBDA(int i, bool& to) { to = to && i < 64; }, Kokkos::LAnd<bool>(all));
    REQUIRE(all == (n <= 64));
  }
}

TEMPLATE_LIST_TEST_CASE("several results come from one range", "", Spaces) {
  for (const std::size_t size : sizes) {
    const auto n = static_cast<std::int64_t>(size);
    std::int64_t sum = -1, most = -1, count = -1;
    Kokkos::parallel_reduce(
        "heddle::test::combined", Kokkos::RangePolicy<TestType>(0, n),
        KOKKOS_LAMBDA(std::int64_t i, std::int64_t & to, std::int64_t & largest,
                      std::int64_t & items) {
          to += i;
          largest = Kokkos::max(largest, i % 101);
          ++items;
        },
        sum, Kokkos::Max<std::int64_t>(most), count);
    REQUIRE(sum == n * (n - 1) / 2);
    REQUIRE(count == n);
    REQUIRE(most == (n == 0 ? std::numeric_limits<std::int64_t>::lowest() : n > 100 ? 100 : n - 1));
  }
}

namespace {

/// Histogram of i mod 3 and i mod 5: a result whose length is known at run time.
struct Histogram {
  using value_type = int[];
  unsigned value_count = 8;
  KOKKOS_FUNCTION void operator()(std::int64_t i, int bins[]) const {
    ++bins[i % 3];
    ++bins[3 + i % 5];
  }
};

/// x -> slope x + shift modulo 2^32. Its composition is associative and not commutative.
struct Affine {
  std::uint32_t slope = 1, shift = 0;
  KOKKOS_FUNCTION Affine then(const Affine& next) const {
    return {next.slope * slope, next.slope * shift + next.shift};
  }
  friend bool operator==(const Affine&, const Affine&) = default;
};
KOKKOS_INLINE_FUNCTION Affine map_of(std::int64_t i) {
  return {static_cast<std::uint32_t>(2 * i + 3), static_cast<std::uint32_t>(i * i + 1)};
}

/// The composition of the maps of a range, in its order, with init, join and final of its own.
struct Compose {
  using value_type = Affine;
  KOKKOS_FUNCTION void operator()(std::int64_t i, Affine& to) const { to = to.then(map_of(i)); }
  KOKKOS_FUNCTION void init(Affine& to) const { to = {}; }
  KOKKOS_FUNCTION void join(Affine& to, const Affine& from) const { to = to.then(from); }
  KOKKOS_FUNCTION void final(Affine& to) const { to.shift += 1; }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("functors bring reductions of their own", "", Spaces) {
  for (const std::size_t size : sizes) {
    const auto n = static_cast<std::int64_t>(size);
    const Array<int, TestType> bins("bins", 8);
    Kokkos::parallel_reduce("heddle::test::histogram", Kokkos::RangePolicy<TestType>(0, n),
                            Histogram{}, bins);
    std::vector<int> expected(8);
    for (std::int64_t i = 0; i < n; ++i) Histogram{}(i, expected.data());
    REQUIRE(values_of(bins) == expected);
    if constexpr (joins_in_order<TestType>) {
      Affine whole;
      Kokkos::parallel_reduce("heddle::test::compose", Kokkos::RangePolicy<TestType>(0, n),
                              Compose{}, whole);
      Affine in_order;
      for (std::int64_t i = 0; i < n; ++i) in_order = in_order.then(map_of(i));
      in_order.shift += 1;
      REQUIRE(whole == in_order);
    }
  }
}

namespace {

/// A sum that knows where it lies: nothing but its own constructors and operator= may copy it.
struct Placed {
  Placed() = default;
  KOKKOS_FUNCTION explicit Placed(std::int64_t value) : sum(value) {}
  KOKKOS_FUNCTION Placed(const Placed& other) : sum(other.value()) {}
  KOKKOS_FUNCTION Placed& operator=(const Placed& other) {
    sum = other.value();
    return *this;
  }
  KOKKOS_FUNCTION Placed& operator+=(const Placed& other) {
    sum = value() + other.value();
    return *this;
  }
  [[nodiscard]] KOKKOS_FUNCTION std::int64_t value() const { return here == this ? sum : moved; }
  static constexpr std::int64_t moved = std::numeric_limits<std::int64_t>::min() / 1024;
  std::int64_t sum = 0;
  const Placed* here = this;
};

struct SumPlaced {
  KOKKOS_FUNCTION void operator()(std::int64_t i, Placed& sum) const { sum += Placed(i); }
};
template <class Space>
struct SumPlacedBefore {
  Array<std::int64_t, Space> before;
  KOKKOS_FUNCTION void operator()(std::int64_t i, Placed& sum, bool last_time) const {
    if (last_time) before(static_cast<std::size_t>(i)) = sum.value();
    sum += Placed(i);
  }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("values of reductions are copied by their own operators", "", Spaces) {
  if constexpr (joins_in_order<TestType>) {
    for (const std::size_t size : sizes) {
      const auto n = static_cast<std::int64_t>(size);
      Placed sum;
      Kokkos::parallel_reduce("heddle::test::sum_placed", Kokkos::RangePolicy<TestType>(0, n),
                              SumPlaced{}, sum);
      REQUIRE(sum.value() == n * (n - 1) / 2);
    }
  }
}

TEST_CASE("Athread copies the values of scans by their own operators, too") {
  using heddle::Athread;  // Kokkos' OpenMP copies totals byte by byte
  for (const std::size_t size : sizes) {
    const auto n = static_cast<std::int64_t>(size);
    const SumPlacedBefore<Athread> scan{Array<std::int64_t, Athread>("before", size)};
    Placed total;
    Kokkos::parallel_scan("heddle::test::sum_placed_before", Kokkos::RangePolicy<Athread>(0, n),
                          scan, total);
    REQUIRE(total.value() == n * (n - 1) / 2);
    const auto before = values_of(scan.before);
    for (std::int64_t i = 0; i < n; ++i)
      REQUIRE(before[static_cast<std::size_t>(i)] == i * (i - 1) / 2);
  }
}

namespace {

/// The maps composed up to each item, without it in `before` and with it in `with`.
template <class Space>
struct Prefixes {
  using value_type = Affine;
  Array<Affine, Space> before, with;
  KOKKOS_FUNCTION void operator()(std::int64_t i, Affine& to, bool last_time) const {
    if (last_time) before(static_cast<std::size_t>(i)) = to;
    to = to.then(map_of(i));
    if (last_time) with(static_cast<std::size_t>(i)) = to;
  }
  KOKKOS_FUNCTION void operator()(Twice, std::int64_t i, Affine& to, bool last_time) const {
    (*this)(i, to, last_time);
  }
  KOKKOS_FUNCTION void init(Affine& to) const { to = {}; }
  KOKKOS_FUNCTION void init(Twice, Affine& to) const { to = {}; }
  KOKKOS_FUNCTION void join(Affine& to, const Affine& from) const { to = to.then(from); }
  KOKKOS_FUNCTION void join(Twice, Affine& to, const Affine& from) const { to = to.then(from); }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("scans see what lies before each item, in its order", "", Spaces) {
  for (const std::size_t size : sizes) {
    const auto n = static_cast<std::int64_t>(size);
    std::vector<Affine> before, with;
    Affine whole;
    for (std::int64_t i = 0; i < n; ++i) {
      before.push_back(whole);
      whole = whole.then(map_of(i));
      with.push_back(whole);
    }
    const auto check = [&](const auto& policy, bool with_total) {
      const Prefixes<TestType> prefixes{Array<Affine, TestType>("before", size),
                                        Array<Affine, TestType>("with", size)};
      if (with_total) {
        Affine total{0, 0};
        Kokkos::parallel_scan("heddle::test::prefixes", policy, prefixes, total);
        REQUIRE(total == whole);
      } else {
        Kokkos::parallel_scan("heddle::test::prefixes", policy, prefixes);
      }
      REQUIRE(values_of(prefixes.before) == before);
      REQUIRE(values_of(prefixes.with) == with);
    };
    check(Kokkos::RangePolicy<TestType>(0, n), true);
    check(Kokkos::RangePolicy<TestType>(0, n), false);
    check(Kokkos::RangePolicy<TestType, Twice>(0, n), true);
    check(Kokkos::RangePolicy<TestType, Twice>(0, n), false);
  }
}

}  // namespace test_space_ranges
