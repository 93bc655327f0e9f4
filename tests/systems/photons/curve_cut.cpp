// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Pieces of weighted curves: their balance, owners, connection and surface; trees over sorted keys.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/layout/cut.hpp>
#include <heddle/systems/photons/curve_cut.hpp>
#include <heddle/systems/photons/curve_tree.hpp>
#include <heddle/systems/photons/grid_curve.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/curve_surface.hpp"

namespace test_curve_cut {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("the owners of random keys have the least largest piece of all divisions of keys") {
  const Random random(11, "cut of a curve");
  std::uint64_t at = 0;
  const auto below = [&](std::uint64_t bound) { return random.below(at++, bound); };
  for (std::uint64_t c = 0; c < test::cases(300, 30'000); ++c) {
    const auto items = static_cast<std::size_t>(below(8));
    const int pieces = 1 + static_cast<int>(below(4));
    std::vector<std::uint64_t> keys;
    std::vector<double> weights;
    for (std::size_t i = 0; i < items; ++i) {
      keys.push_back(below(6));
      weights.push_back(static_cast<double>(below(5)));
    }
    if (std::accumulate(weights.begin(), weights.end(), 0.0) == 0) continue;
    const auto largest = [&](const auto& owner) {
      std::vector<double> sums(static_cast<std::size_t>(pieces));
      for (std::size_t i = 0; i < items; ++i)
        sums[static_cast<std::size_t>(owner(keys[i]))] += weights[i];
      return *std::max_element(sums.begin(), sums.end());
    };
    // All monotone owners of the six keys.
    double least = std::numeric_limits<double>::max();
    std::vector<int> owners(6, 0);
    while (true) {
      if (std::is_sorted(owners.begin(), owners.end()))
        least = std::min(least, largest([&](std::uint64_t key) { return owners[key]; }));
      std::size_t digit = 0;
      while (digit < owners.size() && ++owners[digit] == pieces) owners[digit++] = 0;
      if (digit == owners.size()) break;
    }
    const systems::CurveCut cut = systems::cut_curve(keys, weights, pieces);
    REQUIRE(cut.begins.size() == static_cast<std::size_t>(pieces));
    REQUIRE(cut.begins.front() == 0);
    REQUIRE(std::is_sorted(cut.begins.begin(), cut.begins.end()));
    REQUIRE(largest([&](std::uint64_t key) { return cut.owner(key); }) == least);
    for (std::uint64_t key = 0; key < 9; ++key) {  // also keys where there is no item
      const auto p = static_cast<std::size_t>(cut.owner(key));
      REQUIRE(cut.begins[p] <= key);
      if (p + 1 < cut.begins.size()) REQUIRE(key < cut.begins[p + 1]);
    }
  }
}

TEST_CASE("pieces of a weighted Hilbert curve are balanced, connected and have less surface") {
  const int bits = 5;
  const systems::GridCurve<3> morton(systems::CurveKind::morton, bits);
  const Random random(3, "weights");
  for (const int centres : {0, 1, 3, 6}) {  // smooth peaks over a floor of 1
    std::vector<double> weights;
    for (std::uint64_t key = 0; key < morton.size(); ++key) {
      double weight = 1;
      const auto cell = morton.cell(key);
      for (int centre = 0; centre < centres; ++centre) {
        double square = 1;
        for (std::size_t d = 0; d < 3; ++d) {
          const auto place = 32 * random.uniform(static_cast<std::uint64_t>(centre) * 3 + d);
          square += (cell[d] - place) * (cell[d] - place);
        }
        weight += 200 / square;
      }
      weights.push_back(weight);
    }
    std::size_t hilbert_ghosts = 0, morton_ghosts = 0;
    for (const int pieces : {3, 5, 7, 12, 23}) {
      const auto h = test::cut_grid<3>(systems::CurveKind::hilbert, bits, weights, pieces);
      const auto m = test::cut_grid<3>(systems::CurveKind::morton, bits, weights, pieces);
      INFO(text(centres, " centres, ", pieces, " pieces: ghosts ", h.ghosts, " and ", m.ghosts));
      CHECK(h.imbalance <= 1.05);
      CHECK(h.components == static_cast<std::size_t>(pieces));
      CHECK(m.components > static_cast<std::size_t>(pieces));
      hilbert_ghosts += h.ghosts;
      morton_ghosts += m.ghosts;
    }
    CHECK(hilbert_ghosts < morton_ghosts);
  }
}

TEST_CASE("a tree over sorted keys divides its items by cubes") {
  const Random random(8, "tree");
  std::uint64_t at = 0;
  for (std::uint64_t c = 0; c < test::cases(200, 10'000); ++c) {
    const int dimensions = 2 + static_cast<int>(random.below(at++, 2));
    const int bits = 1 + static_cast<int>(random.below(at++, 10));
    const std::size_t leaf_size = 1 + random.below(at++, 4);
    std::vector<std::uint64_t> keys(random.below(at++, 60));
    for (std::uint64_t& key : keys) {
      const std::uint64_t shift = random.below(at++, 6);  // some keys become equal
      key = random.below(at++, std::uint64_t{1} << (dimensions * bits)) >> shift;
    }
    std::sort(keys.begin(), keys.end());
    const systems::CurveTree tree(keys, dimensions, bits, leaf_size);
    REQUIRE(tree.nodes().front().first == 0);
    REQUIRE(tree.nodes().front().last == keys.size());
    std::size_t in_leaves = 0;
    for (std::size_t n = 0; n < tree.nodes().size(); ++n) {
      const systems::CurveNode& node = tree.nodes()[n];
      if (node.is_leaf()) {
        in_leaves += node.size();
        const bool equal = node.size() == 0 || keys[node.first] == keys[node.last - 1];
        REQUIRE((node.size() <= leaf_size || equal));
        continue;
      }
      REQUIRE(node.size() > leaf_size);
      REQUIRE(node.children >= 2);
      REQUIRE(node.children <= std::size_t{1} << dimensions);
      const std::size_t last_child = node.first_child + node.children;
      std::size_t next = node.first;
      for (std::size_t child = node.first_child; child != last_child; ++child) {
        REQUIRE(child > n);
        REQUIRE(tree.nodes()[child].first == next);
        REQUIRE(tree.nodes()[child].size() > 0);
        next = tree.nodes()[child].last;
      }
      REQUIRE(next == node.last);
      // Some level divides the keys of the node exactly as its children do.
      bool found = false;
      for (int level = 0; level < bits && !found; ++level) {
        std::set<std::uint64_t> cubes, parents;
        bool one_each = true;
        for (std::size_t child = node.first_child; child != last_child; ++child) {
          std::set<std::uint64_t> own;
          for (std::size_t i = tree.nodes()[child].first; i < tree.nodes()[child].last; ++i) {
            own.insert(keys[i] >> (level * dimensions));
            parents.insert(keys[i] >> ((level + 1) * dimensions));
          }
          one_each = one_each && own.size() == 1 && cubes.insert(*own.begin()).second;
        }
        found = one_each && parents.size() == 1;
      }
      REQUIRE(found);
    }
    REQUIRE(in_leaves == keys.size());
  }
}

TEST_CASE("wrong keys, weights and trees are named") {
  const std::vector<std::uint64_t> keys{4, 2};
  const auto complaint = [](const auto& call) -> std::string {
    return test::message_of<contract_error>(call);
  };
  CHECK_THAT(complaint([&] { (void)systems::cut_curve(keys, std::vector<double>{1}, 2); }),
             ContainsSubstring("2 keys, 1 weights"));
  CHECK_THAT(complaint([&] {
               (void)systems::cut_curve(keys, std::vector<double>{1, -2}, 2);
             }),
             ContainsSubstring("weights[1] = -2"));
  CHECK_THAT(complaint([&] {
               (void)systems::cut_curve(keys, std::vector<double>{1, 2}, 0);
             }),
             ContainsSubstring("0"));
  const std::vector<std::uint64_t> large{std::uint64_t{1} << 63};
  CHECK_THAT(complaint([&] { (void)systems::cut_curve(large, std::vector<double>{1}, 1); }),
             ContainsSubstring("keys[0] = 9223372036854775808"));
  CHECK_THAT(complaint([&] { (void)systems::CurveTree(keys, 2, 3, 1); }),
             ContainsSubstring("keys[0] = 4, keys[1] = 2"));
  CHECK_THAT(complaint([&] { (void)systems::CurveTree(std::vector<std::uint64_t>{16}, 2, 2, 1); }),
             ContainsSubstring("keys[0] = 16, bits = 2"));
  CHECK_THAT(complaint([&] { (void)systems::CurveTree({}, 4, 2, 1); }),
             ContainsSubstring("dimensions = 4"));
  CHECK_THAT(complaint([&] { (void)systems::CurveTree({}, 3, 22, 1); }),
             ContainsSubstring("take 1 to 21 bits"));
  CHECK_THAT(complaint([&] { (void)systems::CurveTree({}, 3, 2, 0); }),
             ContainsSubstring("leaf_size = 0"));
  // No items: one leaf, and all keys belong to the first or the last piece.
  CHECK(systems::CurveTree({}, 3, 2, 1).nodes() ==
        std::vector<systems::CurveNode>{systems::CurveNode{}});
  CHECK(systems::cut_curve({}, {}, 3).begins == std::vector<std::uint64_t>{0, 0, 0});
}

}  // namespace test_curve_cut
