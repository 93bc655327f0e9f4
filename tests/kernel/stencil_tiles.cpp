// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <heddle/kernel/impl/stencil_plan.hpp>

namespace test_stencil_tiles {

using namespace heddle::kernel::impl;

namespace {

constexpr std::size_t local_memory = 245'000, cores = 64, line = 16;  // of doubles, 128 bytes

/// The interior of a grid of doubles; axes of extent 1 have no neighbours.
template <class... Extent>
StencilShape<sizeof...(Extent)> interior(std::size_t radius, Extent... extent) {
  StencilShape<sizeof...(Extent)> shape{
      {static_cast<std::size_t>(extent)...}, {}, {(extent > 1 ? radius : 0)...}, 8, 8};
  shape.leave_edges();
  return shape;
}

}  // namespace

TEST_CASE("stencil tiles fit, keep all cores busy and move little", "[stencil]") {
  // Planes, rows, columns, radius.
  const auto [planes, rows, columns, radius] = GENERATE(
      std::array<std::size_t, 4>{1, 1, 1'000'003, 3}, std::array<std::size_t, 4>{1024, 1, 1024, 1},
      std::array<std::size_t, 4>{1000, 1, 3001, 2}, std::array<std::size_t, 4>{8192, 1, 512, 1},
      std::array<std::size_t, 4>{4096, 1, 4096, 8}, std::array<std::size_t, 4>{128, 128, 128, 1},
      std::array<std::size_t, 4>{256, 256, 256, 1}, std::array<std::size_t, 4>{300, 200, 410, 2});
  const auto shape = interior(radius, planes, rows, columns);
  const auto plan = plan_stencil(shape, local_memory, cores, line, 1.08);
  INFO(planes << " x " << rows << " x " << columns << ", radius " << radius << ": tiles of "
              << plan.tile[0] << " x " << plan.tile[1] << " x " << plan.tile[2]);
  REQUIRE_FALSE(plan.none());
  REQUIRE(stencil_bytes(shape, plan.tile) <= local_memory);
  REQUIRE(traffic(shape, plan) <= 1.08);
  const std::size_t rounds = (plan.tiles() + cores - 1) / cores;
  REQUIRE(static_cast<double>(plan.tiles()) >= 0.75 * static_cast<double>(rounds * cores));
}

TEST_CASE("stencil tiles of a small grid are fewer than cores, rather than move much",
          "[stencil]") {
  const auto shape = interior(1, 64, 1, 64);
  const auto plan = plan_stencil(shape, local_memory, cores, line, 1.08);
  REQUIRE(traffic(shape, plan) <= 1.08);
  REQUIRE(plan.tiles() > 1);
}

TEST_CASE("stencil tiles of a small grid keep all cores busy where more may move", "[stencil]") {
  const auto shape = interior(1, 64, 64, 64);
  REQUIRE(plan_stencil(shape, local_memory, 16, line, 1.5).tiles() % 16 == 0);
  REQUIRE(plan_stencil(shape, local_memory, 16, line, 1.08).tiles() < 16);
}

TEST_CASE("stencil tiles grow with the fast memory", "[stencil]") {
  const auto shape = interior(2, 512, 512, 512);
  double last = 10;
  for (const std::size_t bytes : {60'000, 120'000, 240'000, 480'000}) {
    const auto plan = plan_stencil(shape, bytes, cores, line, 1.08);
    REQUIRE(stencil_bytes(shape, plan.tile) <= bytes);
    REQUIRE(traffic(shape, plan) <= last);
    last = std::max(traffic(shape, plan), 1.08);
  }
}

TEST_CASE("stencil tiles of many axes are cut where they are longest", "[stencil]") {
  // A plane of 30 x 90 x 64 doubles is too large.
  const auto shape = interior(1, 200, 30, 90, 64);
  const auto plan = plan_stencil(shape, local_memory, cores, line, 1.08);
  REQUIRE_FALSE(plan.none());
  REQUIRE(stencil_bytes(shape, plan.tile) <= local_memory);
  REQUIRE(plan.tile[2] <= 2 * plan.tile[1]);
  REQUIRE(plan.tile[1] <= 2 * plan.tile[2]);
  // Where whole planes fit they are not cut.
  const auto narrow = interior(1, 2000, 6, 5, 60);
  const auto slabs = plan_stencil(narrow, local_memory, cores, line, 1.08);
  REQUIRE(slabs.tile[1] == 4);
  REQUIRE(slabs.tile[2] == 3);
  REQUIRE(slabs.tile[3] == 59);
  REQUIRE(traffic(narrow, slabs) <= 1.08);
}

TEST_CASE("no stencil tile where not even one point fits", "[stencil]") {
  // 9 planes of 9 x 9 elements and one of output.
  const auto shape = interior(4, 20, 20, 20);
  const std::size_t least = stencil_bytes(shape, one_row<3>(1));
  REQUIRE(least == (9 * 9 * 9 + 1) * 8);
  REQUIRE_FALSE(plan_stencil(shape, least, cores, line, 1.08).none());
  REQUIRE(plan_stencil(shape, least - 1, cores, line, 1.08).none());
}

TEST_CASE("every point lies in exactly one stencil tile", "[stencil]") {
  const std::size_t radius = GENERATE(0, 1, 5, 40);
  const auto shape = interior(radius, 1, 200);
  const auto plan = plan_with(shape, one_row<2>(32));
  const std::size_t end = shape.first[1] + shape.points[1];
  std::vector<int> times(end, 0);
  for (std::size_t t = 0; t < plan.count[1]; ++t) {
    const std::size_t cell = t + shape.first[1] / plan.tile[1];
    for (std::size_t c = std::max(cell * 32, shape.first[1]); c < std::min((cell + 1) * 32, end);
         ++c)
      ++times[c];
  }
  for (std::size_t c = 0; c < end; ++c) REQUIRE(times[c] == (c < shape.first[1] ? 0 : 1));
}

}  // namespace test_stencil_tiles
