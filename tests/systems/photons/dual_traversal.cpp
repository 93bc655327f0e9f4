// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Traversals of random trees by random rules: each pair of items exactly once, in a fixed order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/systems/photons/dual_traversal.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"

namespace test_dual_traversal {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

struct Node {
  std::size_t first = 0, last = 0;
  std::vector<const Node*> children;
};

/// A random tree over items, whose nodes have 2 to 5 children.
struct Tree {
  std::vector<Node> nodes;

  Tree(std::size_t items, const Random& random) {
    nodes.reserve(2 * items + 1);
    nodes.push_back({0, items, {}});
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const std::size_t first = nodes[n].first, size = nodes[n].last - first;
      if (size < 2 || random.below(3 * n, 6) == 0) continue;
      const std::size_t parts = std::min<std::size_t>(size, 2 + random.below(3 * n + 1, 4));
      for (std::size_t p = 0; p < parts; ++p) {
        nodes.push_back({first + p * size / parts, first + (p + 1) * size / parts, {}});
        nodes[n].children.push_back(&nodes.back());
      }
    }
  }
};

/// Ends at random pairs and counts each pair of items that ended.
struct RandomRule {
  Random random;
  std::size_t columns;
  std::vector<int> times;
  bool unordered = false;  ///< counts a pair of a node with itself as unordered pairs of items
  std::uint64_t calls = 0;
  std::uint64_t products = 0;
  std::vector<std::pair<const Node*, const Node*>> promised{};

  systems::PairStep decide(const Node* a, const Node* b) {
    const auto chance = random.below(calls++, 20);
    const bool opens = !(a->children.empty() && b->children.empty());
    if (chance == 0) {
      count(a, b);
      return systems::PairStep::drop;
    }
    if (chance < 4 || !opens) {
      promised.emplace_back(a, b);
      return chance < 2 ? systems::PairStep::far : systems::PairStep::exact;
    }
    if (a->children.empty()) return systems::PairStep::open_second;
    if (b->children.empty()) return systems::PairStep::open_first;
    return chance < 8    ? systems::PairStep::open_first
           : chance < 12 ? systems::PairStep::open_second
                         : systems::PairStep::open_both;
  }
  [[nodiscard]] const std::vector<const Node*>& children(const Node* node) const {
    return node->children;
  }
  void far(const Node* a, const Node* b) { keep(a, b); }
  void exact(const Node* a, const Node* b) { keep(a, b); }

  /// Called at once after decide(), for the same pair.
  void keep(const Node* a, const Node* b) {
    REQUIRE(promised == std::vector{std::pair{a, b}});
    promised.clear();
    count(a, b);
  }
  void count(const Node* a, const Node* b) {
    products += (a->last - a->first) * (b->last - b->first);
    for (std::size_t i = a->first; i < a->last; ++i)
      for (std::size_t j = b->first; j < b->last; ++j)
        times[i * columns + j] += !unordered || a != b || i <= j;
  }
};

TEST_CASE("each pair of items of two trees is covered exactly once") {
  test::Coverage seen("pairs of trees");
  for (std::uint64_t c = 0; c < test::cases(200, 20'000); ++c) {
    const Random shape(c, "shape");
    const std::size_t rows = shape.below(0, 30), columns = shape.below(1, 30);
    const Tree one(rows, Random(c, "one")), other(columns, Random(c, "other"));
    RandomRule rule{Random(c, "rule"), columns, std::vector<int>(rows * columns)};
    systems::dual_traversal(&one.nodes.front(), &other.nodes.front(), rule);
    REQUIRE(std::ranges::count(rule.times, 1) == static_cast<std::ptrdiff_t>(rows * columns));
    REQUIRE(rule.products == rows * columns);
    REQUIRE(rule.promised.empty());
    seen.count("many pairs of nodes", rule.calls > 50);
    seen.count("no items", rows * columns == 0);
  }
}

TEST_CASE("each unordered pair of one tree is covered exactly once") {
  for (std::uint64_t c = 0; c < test::cases(200, 20'000); ++c) {
    const std::size_t n = Random(c, "size").below(0, 40);
    const Tree tree(n, Random(c, "one"));
    RandomRule rule{Random(c, "rule"), n, std::vector<int>(n * n), true};
    systems::self_traversal(&tree.nodes.front(), rule);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        const int both = rule.times[i * n + j] + rule.times[j * n + i];
        REQUIRE(both == (i == j ? 2 : 1));
      }
    // In one tree, the ordered traversal has all n^2 pairs.
    RandomRule ordered{Random(c, "rule"), n, std::vector<int>(n * n)};
    systems::dual_traversal(&tree.nodes.front(), &tree.nodes.front(), ordered);
    REQUIRE(ordered.products == n * n);
    REQUIRE(std::ranges::count(ordered.times, 1) == static_cast<std::ptrdiff_t>(n * n));
  }
}

TEST_CASE("pairs are visited depth first, in the order of the children") {
  struct Digits {  // a node is a text; it has two children up to two letters
    std::string visited;
    systems::PairStep decide(const std::string& a, int b) {
      if (a.size() < 2) return systems::PairStep::open_first;
      return b < 2 ? systems::PairStep::open_second : systems::PairStep::exact;
    }
    static std::vector<std::string> children(const std::string& a) { return {a + "l", a + "r"}; }
    static std::vector<int> children(int b) { return {2 * b, 2 * b + 1}; }
    void far(const std::string&, int) {}
    void exact(const std::string& a, int b) { visited += a + std::to_string(b) + " "; }
  };
  Digits digits;
  systems::dual_traversal(std::string(), 1, digits);
  CHECK(digits.visited == "ll2 ll3 lr2 lr3 rl2 rl3 rr2 rr3 ");
}

TEST_CASE("a leaf that is opened is an error, not a loss") {
  struct OpensLeaves {
    systems::PairStep step;
    [[nodiscard]] systems::PairStep decide(int, int) const { return step; }
    static std::vector<int> children(int) { return {}; }
    void far(int, int) {}
    void exact(int, int) {}
  };
  for (const systems::PairStep step :
       {systems::PairStep::open_first, systems::PairStep::open_second,
        systems::PairStep::open_both}) {
    CHECK_THAT(
        test::message_of<contract_error>([&] { systems::dual_traversal(0, 0, OpensLeaves{step}); }),
        ContainsSubstring("opens a node that has no children"));
    CHECK_THAT(
        test::message_of<contract_error>([&] { systems::self_traversal(0, OpensLeaves{step}); }),
        ContainsSubstring("return PairStep::exact"));
  }
}

}  // namespace test_dual_traversal
