// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Curves through grids: each cell once and back, neighbours on the Hilbert curve share a face,
// cubes are intervals of keys.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/systems/photons/grid_curve.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_grid_curve {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

template <std::size_t D>
std::uint64_t steps_between(const std::array<std::uint32_t, D>& a,
                            const std::array<std::uint32_t, D>& b) {
  std::uint64_t sum = 0;
  for (std::size_t d = 0; d < D; ++d) sum += a[d] > b[d] ? a[d] - b[d] : b[d] - a[d];
  return sum;
}

template <std::size_t D>
void visit_every_cell(systems::CurveKind kind, int bits) {
  const systems::GridCurve<D> curve(kind, bits);
  std::vector<bool> seen(curve.size());
  std::uint64_t wrong_keys = 0, jumps = 0, torn_cubes = 0, repeated = 0;
  for (std::uint64_t key = 0; key < curve.size(); ++key) {
    const auto cell = curve.cell(key);
    std::uint64_t number = 0;
    for (const std::uint32_t x : cell) number = number * curve.side() + x;
    repeated += seen.at(number);
    seen[number] = true;
    wrong_keys += curve.key(cell) != key;
    if (key > 0) jumps += steps_between<D>(curve.cell(key - 1), cell) != 1;
    for (int cut = 1; cut <= bits; ++cut) {  // the cube of side 2^cut that the key begins
      const std::uint64_t first = key >> (D * static_cast<std::size_t>(cut))
                                             << (D * static_cast<std::size_t>(cut));
      const auto corner = curve.cell(first);
      for (std::size_t d = 0; d < D; ++d) torn_cubes += corner[d] >> cut != cell[d] >> cut;
    }
  }
  CHECK(repeated == 0);
  CHECK(wrong_keys == 0);
  CHECK(torn_cubes == 0);
  if (kind == systems::CurveKind::hilbert)
    CHECK(jumps == 0);
  else
    CHECK(jumps > 0);
}

TEST_CASE("a curve passes each cell of a small grid once") {
  for (const systems::CurveKind kind : {systems::CurveKind::hilbert, systems::CurveKind::morton}) {
    for (int bits = 1; bits <= 6; ++bits) visit_every_cell<2>(kind, bits);
    for (int bits = 1; bits <= 4; ++bits) visit_every_cell<3>(kind, bits);
  }
}

template <std::size_t D>
void try_places(systems::CurveKind kind) {
  const Random random(5, "places");
  const std::uint64_t count = test::cases(1'000, 100'000);
  std::uint64_t wrong = 0, jumps = 0;
  for (std::uint64_t c = 0; c < count; ++c) {
    const int bits = 1 + static_cast<int>(random.below(2 * c, systems::GridCurve<D>::max_bits));
    const systems::GridCurve<D> curve(kind, bits);
    const std::uint64_t key = random.below(2 * c + 1, curve.size());
    wrong += curve.key(curve.cell(key)) != key;
    if (key + 1 < curve.size())
      jumps += steps_between<D>(curve.cell(key), curve.cell(key + 1)) != 1;
  }
  CHECK(wrong == 0);
  if (kind == systems::CurveKind::hilbert) CHECK(jumps == 0);
}

TEST_CASE("cells of large grids have their keys, and Hilbert neighbours share a face") {
  for (const systems::CurveKind kind : {systems::CurveKind::hilbert, systems::CurveKind::morton}) {
    try_places<2>(kind);
    try_places<3>(kind);
  }
}

TEST_CASE("the first curves are those of the literature") {
  // Morton: bits interleaved, the first coordinate is the highest. Hilbert: a U, closed at the top.
  constexpr systems::GridCurve<3> morton(systems::CurveKind::morton, 2);
  STATIC_CHECK(morton.key({3, 0, 1}) == 0b100'101);
  constexpr systems::GridCurve<2> hilbert(systems::CurveKind::hilbert, 1);
  using Cell = systems::GridCurve<2>::Cell;
  const std::vector<Cell> u{{0, 0}, {0, 1}, {1, 1}, {1, 0}};
  for (std::uint64_t key = 0; key < 4; ++key) CHECK(hilbert.cell(key) == u[key]);
  // In two dimensions the curve ends at a corner beside the one where it begins.
  for (int bits = 1; bits <= systems::GridCurve<2>::max_bits; ++bits) {
    const systems::GridCurve<2> curve(systems::CurveKind::hilbert, bits);
    CHECK(curve.cell(0) == Cell{0, 0});
    CHECK(curve.cell(curve.size() - 1) == Cell{curve.side() - 1, 0});
  }
}

TEST_CASE("cells, keys and bits beyond the grid are named") {
  const systems::GridCurve<3> curve(systems::CurveKind::hilbert, 4);
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)curve.key({3, 16, 0});
             }),
             ContainsSubstring("coordinate 1 is 16, the grid has 16 cells"));
  CHECK_THAT(test::message_of<contract_error>([&] { (void)curve.cell(4096); }),
             ContainsSubstring("key = 4096, the curve has 4096 cells"));
  CHECK_THAT(test::message_of<contract_error>(
                 [] { (void)systems::GridCurve<3>(systems::CurveKind::morton, 22); }),
             ContainsSubstring("take 1 to 21 bits"));
  CHECK_THAT(test::message_of<contract_error>(
                 [] { (void)systems::GridCurve<2>(systems::CurveKind::morton, 0); }),
             ContainsSubstring("bits = 0 in 2 dimensions"));
}

}  // namespace test_grid_curve
