// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// also on: heddle::Athread

#include <cstddef>
#include <cstdint>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <heddle/device/staging.hpp>

#include "support/patterns.hpp"

namespace test_staging {

using namespace pattern_test;

namespace {

/// Every team brings a tile to its scratch, adds one, and takes it away. `rows.count` == 0: a tile
/// of `rows.columns` adjacent elements.
template <class T>
struct AddOne {
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using Staging = heddle::staging<Exec>;
  const T* from;
  T* to;
  heddle::Rows rows;
  std::size_t distance;  // between the tiles of neighbouring teams

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const bool adjacent = rows.count == 0;
    const std::size_t elements = adjacent ? rows.columns : rows.count * rows.columns;
    const std::size_t at = static_cast<std::size_t>(team.league_rank()) * distance;
    T* const tile =
        static_cast<T*>(team.team_scratch(0).get_shmem_aligned(elements * sizeof(T), 8));
    Staging stage(team);
    if (adjacent)
      stage.get(tile, from + at, elements);
    else
      stage.get(tile, from + at, rows);
    stage.wait();
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, elements),
                         [=](std::size_t i) { tile[i] = static_cast<T>(tile[i] + 1); });
    team.team_barrier();
    if (adjacent)
      stage.put(to + at, tile, elements);
    else
      stage.put(to + at, tile, rows);
    stage.wait();
  }
};

template <class T>
void add_one(const T* from, T* to, const heddle::Rows& rows, std::size_t distance, int teams) {
  const std::size_t elements = (rows.count == 0 ? 1 : rows.count) * rows.columns;
  auto policy = Kokkos::TeamPolicy<Exec>(Exec{}, teams, Kokkos::AUTO);
  policy.set_scratch_size(0, Kokkos::PerTeam(elements * sizeof(T) + 16));
  Kokkos::parallel_for("heddle::test::staging", policy, AddOne<T>{from, to, rows, distance});
  Exec{}.fence("heddle::test::staging");
}

template <class T>
void check_adjacent(std::size_t count) {
  const int teams = 5;
  const std::size_t all = count * teams;
  const Kokkos::View<T*, Memory> from("from", all + 2), to("to", all + 2);
  fill(from, pattern);
  fill(to, [](std::size_t) { return 99; });
  add_one<T>(from.data() + 1, to.data() + 1, {0, count, 0}, count, teams);
  const auto result = list(to);
  REQUIRE(result.front() == T(99));
  REQUIRE(result.back() == T(99));
  for (std::size_t i = 1; i <= all; ++i) REQUIRE(result[i] == T(pattern(i) + 1));
}

/// Tiles of `rows` x `columns` side by side in a matrix.
template <class T>
void check_rows(std::size_t rows, std::size_t columns) {
  const int teams = 3;
  const std::size_t stride = columns * teams + 1;
  const Kokkos::View<T**, Kokkos::LayoutRight, Memory> from("from", rows, stride),
      to("to", rows, stride);
  fill(from, pattern);
  fill(to, [](std::size_t) { return 99; });
  add_one<T>(from.data(), to.data(), {rows, columns, stride}, columns, teams);
  const auto result = list(to);
  for (std::size_t i = 0; i < rows * stride; ++i)
    REQUIRE(result[i] == T(i % stride == stride - 1 ? 99 : pattern(i) + 1));
}

}  // namespace

TEST_CASE("staging brings and takes adjacent elements", "[staging]") {
  for (const std::size_t count : {1, 2, 3, 4, 31, 1024, 1537}) {
    check_adjacent<double>(count);
    check_adjacent<float>(count);
    check_adjacent<std::int16_t>(count);
    check_adjacent<std::int8_t>(count);
  }
}

TEST_CASE("staging brings and takes rows that lie apart", "[staging]") {
  for (const std::size_t rows : {1, 2, 7}) {
    for (const std::size_t columns : {1, 4, 5, 97}) {
      check_rows<double>(rows, columns);
      check_rows<float>(rows, columns);
      check_rows<std::int8_t>(rows, columns);
    }
  }
}

}  // namespace test_staging
