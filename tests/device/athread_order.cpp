// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/device/athread.hpp>

namespace test_athread_order {

using heddle::Athread;

namespace {

/// Numbers whose sum depends on the order: of many magnitudes and both signs.
KOKKOS_INLINE_FUNCTION double term(std::int64_t i) {
  return std::ldexp(1.0 + static_cast<double>(i % 97), static_cast<int>(i * 31 % 41) - 20) *
         (i % 3 == 0 ? -1 : 1);
}

struct Sum {
  void operator()(std::int64_t i, double& to) const { to += term(i); }
};
struct Prefix {
  Kokkos::View<double*, Athread> to;
  void operator()(std::int64_t i, double& sum, bool last_time) const {
    sum += term(i);
    if (last_time) to(static_cast<std::size_t>(i)) = sum;
  }
};
struct SumOfTile {
  void operator()(std::int64_t i, std::int64_t j, double& to) const { to += term(57 * i + j); }
};

/// Instances that one, two and more threads of the host play; one only where Kokkos has no atomics.
[[nodiscard]] std::vector<Athread> spaces_of_threads() {
  std::vector<Athread> spaces;
#ifdef KOKKOS_ENABLE_ATOMICS_BYPASS
  for (const int threads : {1})
#else
  for (const int threads : {1, 2, 3, 5})
#endif
    spaces.emplace_back(heddle::CoreGroupOptions{.host_threads = threads});
  return spaces;
}

/// The sum as the documentation defines it: over blocks for 64 cores, then over the cores.
[[nodiscard]] double sum_by_cores(std::int64_t items) {
  double sum = 0;
  std::int64_t first = 0;
  for (std::int64_t core = 0; core < 64; ++core) {
    const std::int64_t size = items / 64 + (core < items % 64 ? 1 : 0);
    double part = 0;
    for (std::int64_t i = first; i < first + size; ++i) part += term(i);
    if (size > 0) sum += part;
    first += size;
  }
  return sum;
}

}  // namespace

TEST_CASE("sums of floats have the order of the cores, whatever number of threads plays them") {
  for (const std::int64_t items : {0, 1, 63, 64, 65, 1009, 100003}) {
    const double expected = sum_by_cores(items);
    for (const Athread& space : spaces_of_threads())
      for (int repetition = 0; repetition < 3; ++repetition) {
        double sum = -1;
        Kokkos::parallel_reduce("heddle::test::sum", Kokkos::RangePolicy<Athread>(space, 0, items),
                                Sum{}, sum);
        REQUIRE(std::bit_cast<std::uint64_t>(sum) == std::bit_cast<std::uint64_t>(expected));
      }
  }
}

TEST_CASE("scans and sums over tiles are the same for every number of threads") {
  constexpr std::int64_t items = 10007;
  std::vector<double> first;
  double first_of_tiles = 0;
  for (const Athread& space : spaces_of_threads()) {
    const Kokkos::View<double*, Athread> prefixes("prefixes", items);
    double total = 0, of_tiles = 0;
    Kokkos::parallel_scan("heddle::test::prefixes", Kokkos::RangePolicy<Athread>(space, 0, items),
                          Prefix{prefixes}, total);
    Kokkos::parallel_reduce(
        "heddle::test::tiles",
        Kokkos::MDRangePolicy<Athread, Kokkos::Rank<2>>(space, {0, 0}, {101, 57}, {4, 8}),
        SumOfTile{}, of_tiles);
    const std::vector<double> found(prefixes.data(), prefixes.data() + items);
    if (first.empty()) {
      first = found;
      first_of_tiles = of_tiles;
    }
    REQUIRE(found == first);
    REQUIRE(total == first.back());
    REQUIRE(of_tiles == first_of_tiles);
  }
}

TEST_CASE("the cores' blocks cover every range once, in order") {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t items :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{63}, std::uint64_t{64},
        std::uint64_t{1009}, (std::uint64_t{1} << 32) + 5, most - 1, most}) {
    std::uint64_t next = 0;
    for (int core = 0; core < 64; ++core) {
      const auto share = heddle::impl::share_of_core(items, core);
      REQUIRE(share.first == next);
      REQUIRE(share.last >= share.first);
      REQUIRE(share.last - share.first <= items / 64 + 1);
      next = share.last;
    }
    REQUIRE(next == items);
  }
}

namespace {

struct CountOdd {
  template <class Index>
  void operator()(Index i, std::uint64_t& to) const {
    to += static_cast<std::uint64_t>(i & 1);
  }
};

}  // namespace

TEST_CASE("a range of more than 2^31 items is worked through") {
  const std::int64_t items = (std::int64_t{1} << 31) + 97;
  std::uint64_t odd = 0;
  Kokkos::parallel_reduce("heddle::test::count_odd",
                          Kokkos::RangePolicy<Athread, Kokkos::IndexType<std::int64_t>>(0, items),
                          CountOdd{}, odd);
  REQUIRE(odd == static_cast<std::uint64_t>(items) / 2);
}

TEST_CASE("a range may begin and end at the ends of its index type") {
  using Policy = Kokkos::RangePolicy<Athread, Kokkos::IndexType<int>>;
  constexpr int least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  std::uint64_t odd = 0;
  Kokkos::parallel_reduce("heddle::test::count_odd", Policy(least, least + 129), CountOdd{}, odd);
  REQUIRE(odd == 64);
  Kokkos::parallel_reduce("heddle::test::count_odd", Policy(most - 129, most), CountOdd{}, odd);
  REQUIRE(odd == 64);
}

namespace {

struct NotePoint {
  Kokkos::View<int*, Athread> to;
  void operator()(int i, int j) const { to(0) = i, to(1) = j; }
};

}  // namespace

TEST_CASE("a range of two dimensions may have more tiles than its index type can count") {
  using Policy = Kokkos::MDRangePolicy<Athread, Kokkos::Rank<2>, Kokkos::IndexType<int>>;
  const Athread space(heddle::CoreGroupOptions{});
  const NotePoint note{Kokkos::View<int*, Athread>("to", 2)};
  const heddle::impl::Loop<Policy, NotePoint, void> loop(
      note, Policy(space, {0, 0}, {65537, 65539}, {1, 1}));
  REQUIRE(loop.items() == std::uint64_t{65537} * 65539);
  const auto run = [&](std::uint64_t tile) {
    space.core_group().launch("heddle::test::tile", [&, tile](heddle::Core& core) {
      if (core.index() == 0) loop.run(core, {tile, tile + 1});
    });
    return std::uint64_t{65539} * static_cast<std::uint64_t>(note.to(0)) +
           static_cast<std::uint64_t>(note.to(1));
  };
  const std::uint64_t last = loop.items() - 1;  // Kokkos numbers tiles by rows here
  REQUIRE(run(last) == last);
  REQUIRE(run(last / 3 * 2) == last / 3 * 2);
}

}  // namespace test_athread_order
