// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/space_battery.hpp"

namespace test_space_teams {

using namespace space_test;

namespace {

template <class Space, class... Properties>
using Member = typename Kokkos::TeamPolicy<Space, Properties...>::member_type;
struct Tagged {};

constexpr int leagues[] = {0, 1, 2, 63, 64, 65, 131};

/// Fills its row of a matrix through scratch of both levels, with all kinds of nested ranges.
template <class Space>
struct FillRow {
  Kokkos::View<int**, Kokkos::LayoutRight, typename Space::memory_space> rows;
  using Scratch = Kokkos::View<int*, typename Space::scratch_memory_space, Kokkos::MemoryUnmanaged>;

  KOKKOS_FUNCTION void operator()(Tagged, const Member<Space>& team) const { (*this)(team); }
  KOKKOS_FUNCTION void operator()(const Member<Space>& team) const {
    const int row = team.league_rank(), n = static_cast<int>(rows.extent(1));
    const Scratch near(team.team_scratch(0), n), far(team.team_scratch(1), n);
    const Scratch own(team.thread_scratch(0), 3);
    own(0) = 10 * n;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, n), [&](int i) { near(i) = row * i; });
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, 1, n), [&](int i) { far(i) = i; });
    Kokkos::single(Kokkos::PerTeam(team), [&] { far(0) = team.league_size(); });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 1), [&](int) {
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, n),
                           [&](int i) { rows(row, i) = near(i) + far(i) + own(0); });
    });
  }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("teams share scratch of both levels", "", Spaces) {
  constexpr int n = 97;
  for (const int league : leagues) {
    std::vector<int> expected;
    for (int row = 0; row < league; ++row)
      for (int i = 0; i < n; ++i) expected.push_back(row * i + (i == 0 ? league : i) + 10 * n);
    const auto check = [&](auto policy) {
      using Kernel = FillRow<TestType>;
      const Kernel fill{decltype(Kernel::rows)("rows", static_cast<std::size_t>(league), n)};
      const auto bytes = Kernel::Scratch::shmem_size(n);
      policy.set_scratch_size(0, Kokkos::PerTeam(bytes), Kokkos::PerThread(64));
      policy.set_scratch_size(1, Kokkos::PerTeam(bytes));
      Kokkos::parallel_for("heddle::test::fill_rows", policy, fill);
      REQUIRE(values_of(fill.rows) == expected);
    };
    check(Kokkos::TeamPolicy<TestType>(league, 1));
    check(Kokkos::TeamPolicy<TestType>(league, 1, 4));
    check(Kokkos::TeamPolicy<TestType>(league, Kokkos::AUTO));
    check(Kokkos::TeamPolicy<TestType>(league, Kokkos::AUTO, 2));
    check(Kokkos::TeamPolicy<TestType>(TestType(), league, Kokkos::AUTO, Kokkos::AUTO));
    check(Kokkos::TeamPolicy<TestType, Tagged>(TestType(), league, Kokkos::AUTO));
  }
}

namespace {

/// What a team computes together: one row of results per team.
template <class Space>
struct Together {
  static constexpr int results = 9;
  static constexpr int items = 101;
  Kokkos::View<int* [results], Kokkos::LayoutRight, typename Space::memory_space> to;

  KOKKOS_FUNCTION void operator()(const Member<Space>& team) const {
    const int row = team.league_rank(), n = items;  // Kokkos takes it by reference
    int sum = 0, most = 0, in_lanes = 0, of_all = 0, largest = 0, last = -1;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n), [&](int i, int& s) { s += i; }, sum);
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, n), [&](int i, int& s) { s = Kokkos::max(s, i * row % 101); },
        Kokkos::Max<int>(most));
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, n), [&](int i, int& s) { s += row + i; }, of_all);
    Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, n), [&](int i, int& s, bool final) {
      s += i;
      if (final && i == n - 1) last = s;
    });
    team.team_reduce(Kokkos::Max<int>(last));
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 1), [&](int) {
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, n), [&](int i, int& s) { s += 2 * i; }, in_lanes);
      Kokkos::parallel_scan(Kokkos::ThreadVectorRange(team, n), [&](int i, int& s, bool final) {
        s += 1;
        if (final && s != i + 1) in_lanes = -1;
      });
      Kokkos::parallel_reduce(
          Kokkos::ThreadVectorRange(team, n), [&](int i, int& s) { s = Kokkos::max(s, i); },
          Kokkos::Max<int>(largest));
      Kokkos::single(Kokkos::PerThread(team), [&] {
        to(row, 3) = in_lanes;
        to(row, 4) = largest;
      });
    });
    int told = 0;
    Kokkos::single(
        Kokkos::PerTeam(team), [&](int& value) { value = 7 * row; }, told);
    int broadcast = row;
    team.team_broadcast(broadcast, 0);
    int before = team.team_scan(1);  // the rank in the team
    int total = before == team.team_rank() ? 1 : -1000;
    team.team_reduce(Kokkos::Sum<int>(total));
    Kokkos::single(Kokkos::PerTeam(team), [&] {
      to(row, 0) = sum;
      to(row, 1) = most;
      to(row, 2) = of_all;
      to(row, 5) = told;
      to(row, 6) = broadcast;
      to(row, 7) = total == team.team_size() ? 1 : 0;
      to(row, 8) = last;
    });
  }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("teams reduce, scan, broadcast and single one of them out", "", Spaces) {
  using Kernel = Together<TestType>;
  for (const int league : leagues) {
    const Kernel kernel{decltype(Kernel::to)("results", static_cast<std::size_t>(league))};
    Kokkos::parallel_for("heddle::test::together",
                         Kokkos::TeamPolicy<TestType>(league, Kokkos::AUTO), kernel);
    std::vector<int> expected;
    constexpr int n = Kernel::items, sum = n * (n - 1) / 2;
    for (int row = 0; row < league; ++row) {
      const int most = row % 101 == 0 ? 0 : 100;  // 101 is a prime: all remainders occur
      for (const int value : {sum, most, row * n + sum, 2 * sum, n - 1, 7 * row, row, 1, sum})
        expected.push_back(value);
    }
    REQUIRE(values_of(kernel.to) == expected);
  }
}

namespace {

/// The sum over the teams of sums over ranges of three dimensions.
template <class Space>
struct Boxes {
  KOKKOS_FUNCTION void operator()(const Member<Space>& team, std::int64_t& to) const {
    std::int64_t box = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadMDRange<Kokkos::Rank<3>, Member<Space>>(team, 3, 5, 7),
        [=](int i, int j, int k, std::int64_t& s) { s += 35 * i + 7 * j + k; }, box);
    Kokkos::single(Kokkos::PerTeam(team), [&] { to += box + team.league_rank(); });
  }
  KOKKOS_FUNCTION void operator()(Tagged, const Member<Space, Tagged>& team,
                                  std::int64_t& to) const {
    Kokkos::single(Kokkos::PerTeam(team), [&] { to += 3 * team.league_rank(); });
  }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("leagues of teams reduce", "", Spaces) {
  for (const std::int64_t league : leagues) {
    const int teams = static_cast<int>(league);
    std::int64_t sum = -1;
    Kokkos::parallel_reduce("heddle::test::boxes",
                            Kokkos::TeamPolicy<TestType>(teams, Kokkos::AUTO), Boxes<TestType>{},
                            sum);
    REQUIRE(sum == league * (105 * 104 / 2) + league * (league - 1) / 2);
    Kokkos::parallel_reduce("heddle::test::tagged_boxes",
                            Kokkos::TeamPolicy<TestType, Tagged>(teams, Kokkos::AUTO),
                            Boxes<TestType>{}, Kokkos::Sum<std::int64_t>(sum));
    REQUIRE(sum == 3 * league * (league - 1) / 2);
  }
}

TEMPLATE_LIST_TEST_CASE("a team policy says what it has and keeps what it is told", "", Spaces) {
  Kokkos::TeamPolicy<TestType> policy(TestType(), 5, Kokkos::AUTO);
  REQUIRE(policy.league_size() == 5);
  REQUIRE(policy.space() == TestType());
  policy.set_scratch_size(0, Kokkos::PerTeam(1000)).set_chunk_size(2);
  REQUIRE(policy.scratch_size(0) >= 1000);
  REQUIRE(policy.chunk_size() == 2);
  REQUIRE(policy.scratch_size_max(0) >= 16 * 1024);
  REQUIRE(policy.scratch_size_max(1) >= 1 << 20);
  const Boxes<TestType> functor;
  REQUIRE(policy.team_size_max(functor, Kokkos::ParallelReduceTag()) >= 1);
  REQUIRE(policy.team_size_recommended(functor, Kokkos::ParallelReduceTag()) >= 1);
}

}  // namespace test_space_teams
