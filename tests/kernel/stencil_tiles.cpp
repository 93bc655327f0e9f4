// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <heddle/kernel/impl/stencil_plan.hpp>

using namespace heddle::kernel::impl;

namespace {

constexpr std::size_t local_memory = 245'000, cores = 64, line = 16;  // of doubles, 128 bytes

/// The interior of a grid of doubles.
StencilShape interior(std::size_t planes, std::size_t rows, std::size_t columns, std::size_t r) {
  const auto radius = [&](std::size_t extent) { return extent > 1 ? r : 0; };
  const Triple<std::size_t> radii{radius(planes), radius(rows), r};
  return {{planes - 2 * radii.planes, rows - 2 * radii.rows, columns - 2 * r}, radii, radii, 8, 8};
}

}  // namespace

TEST_CASE("stencil tiles fit, keep all cores busy and move little", "[stencil]") {
  // Planes, rows, columns, radius.
  const auto [planes, rows, columns, radius] = GENERATE(
      std::array<std::size_t, 4>{1, 1, 1'000'003, 3}, std::array<std::size_t, 4>{1024, 1, 1024, 1},
      std::array<std::size_t, 4>{1000, 1, 3001, 2}, std::array<std::size_t, 4>{8192, 1, 512, 1},
      std::array<std::size_t, 4>{4096, 1, 4096, 8}, std::array<std::size_t, 4>{128, 128, 128, 1},
      std::array<std::size_t, 4>{256, 256, 256, 1}, std::array<std::size_t, 4>{300, 200, 410, 2});
  const StencilShape shape = interior(planes, rows, columns, radius);
  const StencilPlan plan = plan_stencil(shape, local_memory, cores, line, 1.08);
  INFO(planes << " x " << rows << " x " << columns << ", radius " << radius << ": tiles of "
              << plan.tile.planes << " x " << plan.tile.rows << " x " << plan.tile.columns);
  REQUIRE(plan.tile.planes > 0);
  REQUIRE(stencil_bytes(shape, plan.tile) <= local_memory);
  REQUIRE(traffic(shape, plan) <= 1.08);
  const std::size_t rounds = (plan.tiles() + cores - 1) / cores;
  REQUIRE(static_cast<double>(plan.tiles()) >= 0.75 * static_cast<double>(rounds * cores));
}

TEST_CASE("stencil tiles of a small grid are fewer than cores, rather than move much",
          "[stencil]") {
  const StencilShape shape = interior(64, 1, 64, 1);
  const StencilPlan plan = plan_stencil(shape, local_memory, cores, line, 1.08);
  REQUIRE(traffic(shape, plan) <= 1.08);
  REQUIRE(plan.tiles() > 1);
}

TEST_CASE("stencil tiles of a small grid keep all cores busy where more may move", "[stencil]") {
  const StencilShape shape = interior(64, 64, 64, 1);
  REQUIRE(plan_stencil(shape, local_memory, 16, line, 1.5).tiles() % 16 == 0);
  REQUIRE(plan_stencil(shape, local_memory, 16, line, 1.08).tiles() < 16);
}

TEST_CASE("stencil tiles grow with the fast memory", "[stencil]") {
  const StencilShape shape = interior(512, 512, 512, 2);
  double last = 10;
  for (const std::size_t bytes : {60'000, 120'000, 240'000, 480'000}) {
    const StencilPlan plan = plan_stencil(shape, bytes, cores, line, 1.08);
    REQUIRE(stencil_bytes(shape, plan.tile) <= bytes);
    REQUIRE(traffic(shape, plan) <= last);
    last = std::max(traffic(shape, plan), 1.08);
  }
}

TEST_CASE("no stencil tile where not even one point fits", "[stencil]") {
  // 9 planes of 9 x 9 elements and one of output.
  const StencilShape shape = interior(20, 20, 20, 4);
  const std::size_t least = stencil_bytes(shape, {1, 1, 1});
  REQUIRE(least == (9 * 9 * 9 + 1) * 8);
  REQUIRE(plan_stencil(shape, least, cores, line, 1.08).tile.planes > 0);
  REQUIRE(plan_stencil(shape, least - 1, cores, line, 1.08).tile.planes == 0);
}

TEST_CASE("every point lies in exactly one stencil tile", "[stencil]") {
  const std::size_t radius = GENERATE(0, 1, 5, 40);
  const StencilShape shape = interior(1, 1, 200, radius);
  const StencilPlan plan = plan_with(shape, {1, 1, 32});
  const std::size_t end = shape.first.columns + shape.points.columns;
  std::vector<int> times(end, 0);
  for (std::size_t t = 0; t < plan.count.columns; ++t) {
    const std::size_t cell = t + shape.first.columns / plan.tile.columns;
    for (std::size_t c = std::max(cell * 32, shape.first.columns);
         c < std::min((cell + 1) * 32, end); ++c)
      ++times[c];
  }
  for (std::size_t c = 0; c < end; ++c) REQUIRE(times[c] == (c < shape.first.columns ? 0 : 1));
}
