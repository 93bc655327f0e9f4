// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks orders of grids against the definition of every choice, the sizes against those of LPD's
// authors, and the mask of groups against their rule and against decoding step by step.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/core/random.hpp>
#include <heddle/systems/lpd/grid_order.hpp>
#include <heddle/systems/lpd/group_mask.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"

namespace test_grid_order {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;

namespace {

using Sizes = std::vector<std::int64_t>;

/// The cells of an order as (row, column).
struct At {
  std::int64_t row, column;
};

At at(const hd::systems::GridOrder& order, std::int64_t cell) {
  return {cell / order.columns, cell % order.columns};
}

std::int64_t chebyshev(At a, At b) {
  return std::max(std::abs(a.row - b.row), std::abs(a.column - b.column));
}

std::int64_t squared(At a, At b) {
  return (a.row - b.row) * (a.row - b.row) + (a.column - b.column) * (a.column - b.column);
}

/// Returns true if every choice of `order` is one that the definition allows: among all cells that
/// may be chosen, none is better.
bool is_by_definition(const hd::systems::GridOrder& order,
                      const hd::systems::LocalityOptions& options) {
  const auto cells = static_cast<std::int64_t>(order.cells.size());
  std::vector<bool> decoded(order.cells.size(), false);
  for (const hd::systems::GridOrder::Group& group : order.groups) {
    std::vector<double> proximity(order.cells.size(), 0);
    for (std::int64_t c = 0; c < cells; ++c)
      for (std::int64_t d = 0; d < cells; ++d)
        if (c != d && decoded[static_cast<std::size_t>(d)] &&
            chebyshev(at(order, c), at(order, d)) == 1)
          proximity[static_cast<std::size_t>(c)] +=
              1 / std::sqrt(static_cast<double>(squared(at(order, c), at(order, d))));
    std::vector<std::int64_t> chosen;
    const auto admissible = [&](std::int64_t c) {
      return !decoded[static_cast<std::size_t>(c)] &&
             std::none_of(chosen.begin(), chosen.end(), [&](std::int64_t other) {
               return other == c || chebyshev(at(order, c), at(order, other)) <= options.repulsion;
             });
    };
    constexpr double rounding = 1e-12;  // of a sum of at most 8 terms of at most 1
    const auto best_near = [&] {
      double best = -1;
      for (std::int64_t c = 0; c < cells; ++c)
        if (admissible(c)) best = std::max(best, proximity[static_cast<std::size_t>(c)]);
      return best;
    };
    for (std::int64_t place = group.begin; place < group.near; ++place) {
      const std::int64_t cell = order.cells[static_cast<std::size_t>(place)];
      const double own = proximity[static_cast<std::size_t>(cell)];
      if (!admissible(cell) || own < options.proximity || own < best_near() - rounding)
        return false;
      chosen.push_back(cell);
    }
    if (group.near < group.end && best_near() >= options.proximity) return false;
    for (std::int64_t place = group.near; place < group.end; ++place) {
      const std::int64_t cell = order.cells[static_cast<std::size_t>(place)];
      const auto distance = [&](std::int64_t c) {
        std::int64_t least = INT64_MAX;
        for (const std::int64_t other : chosen)
          least = std::min(least, squared(at(order, c), at(order, other)));
        return least;
      };
      for (std::int64_t c = 0; c < cells; ++c)
        if (!decoded[static_cast<std::size_t>(c)] && distance(c) > distance(cell)) return false;
      if (decoded[static_cast<std::size_t>(cell)] || distance(cell) == 0) return false;
      chosen.push_back(cell);
    }
    for (const std::int64_t cell : chosen) decoded[static_cast<std::size_t>(cell)] = true;
  }
  return std::count(decoded.begin(), decoded.end(), true) == cells;
}

Sizes random_sizes(const hd::Random& random, std::int64_t cells) {
  Sizes sizes;
  for (std::uint64_t i = 0; cells > 0; ++i) {
    sizes.push_back(1 + static_cast<std::int64_t>(random.below(
                            i, static_cast<std::uint64_t>(std::min<std::int64_t>(cells, 9)))));
    cells -= sizes.back();
  }
  return sizes;
}

}  // namespace

TEST_CASE("the cosine sizes of 256 and 1024 cells are those of LPD's authors") {
  CHECK(hd::systems::cosine_group_sizes(256, 20) ==
        Sizes{1, 2, 4, 5, 7, 8, 10, 11, 12, 14, 15, 16, 17, 18, 18, 19, 19, 20, 20, 20});
  CHECK(hd::systems::cosine_group_sizes(1024, 48) ==
        Sizes{1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
              17, 18, 19, 20, 21, 22, 23, 23, 24, 25, 26, 26, 27, 28, 28, 29,
              29, 30, 30, 31, 31, 32, 32, 32, 33, 33, 33, 33, 33, 33, 33, 34});
}

TEST_CASE("cosine sizes sum to the cells and do not decrease") {
  for (int cells = 1; cells <= 40; ++cells)
    for (int steps = 1; steps <= cells; ++steps) {
      const Sizes sizes = hd::systems::cosine_group_sizes(cells, steps);
      REQUIRE(sizes.size() == static_cast<std::size_t>(steps));
      REQUIRE(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == cells);
      REQUIRE(std::is_sorted(sizes.begin(), sizes.end()));
      REQUIRE(sizes[0] == (steps == 1 ? cells : 1));
    }
  CHECK_THAT(message_of<hd::contract_error>([] { (void)hd::systems::cosine_group_sizes(4, 5); }),
             ContainsSubstring("4 cells, 5 steps"));
}

TEST_CASE("every choice of an order is the best by its definition") {
  hd::test::Coverage coverage("orders of grids");
  const std::uint64_t count = hd::test::cases(60, 3'000);
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const hd::Random random(seed, "grids");
    const int rows = 1 + static_cast<int>(random.below(100, 9));
    const int columns = 1 + static_cast<int>(random.below(101, 9));
    hd::systems::LocalityOptions options;
    switch (random.below(102, 4)) {
      case 0: options.proximity = 0; break;
      case 1: options.proximity = 1; break;  // exactly that of a cell beside a decoded one
      default: options.proximity = 3 * random.uniform(103);
    }
    options.repulsion = static_cast<int>(random.below(104, 4));
    options.seed = seed;
    const Sizes sizes = random_sizes(random, std::int64_t{rows} * columns);
    const hd::systems::GridOrder order = hd::systems::locality_order(rows, columns, sizes, options);
    INFO("seed " << seed);
    REQUIRE(order.groups.size() == sizes.size());
    bool fills = false;
    bool mixed = false;
    for (std::size_t g = 0; g < sizes.size(); ++g) {
      const hd::systems::GridOrder::Group& group = order.groups[g];
      REQUIRE(group.end - group.begin == sizes[g]);
      REQUIRE(group.begin == (g == 0 ? 0 : order.groups[g - 1].end));
      fills = fills || group.near < group.end;
      mixed = mixed || (group.near > group.begin && group.near < group.end);
    }
    REQUIRE(is_by_definition(order, options));
    REQUIRE(order == hd::systems::locality_order(rows, columns, sizes, options));
    coverage.count("without repulsion", options.repulsion == 0);
    coverage.count("threshold 0", options.proximity == 0);
    coverage.count("threshold 1", options.proximity == 1);
    coverage.count("one row or column", rows == 1 || columns == 1);
    coverage.count("filled", fills);
    coverage.count("near and filled in one group", mixed);
  }
  INFO(coverage);
  CHECK(coverage.rarer_than(5) == "");
}

TEST_CASE("LPD's orders keep neighbours apart") {
  const Sizes sizes = hd::systems::cosine_group_sizes(256, 20);
  double expected = 0;  // of a random order: each of the 930 pairs is in one group by chance
  for (const std::int64_t size : sizes) expected += static_cast<double>(size * (size - 1));
  expected *= 930.0 / (256 * 255);
  hd::systems::GridOrder raster{16, 16, {}, {}};
  for (std::int64_t c = 0; c < 256; ++c) raster.cells.push_back(c);
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    raster.groups.push_back({begin, begin, begin + size});
    begin += size;
  }
  std::int64_t pairs = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    pairs += hd::systems::adjacent_pairs(
        hd::systems::locality_order(16, 16, sizes, {.repulsion = 2, .seed = seed}));
  const double mean = static_cast<double>(pairs) / 50;
  CHECK(mean <= 0.4 * expected);
  CHECK(mean <= 0.1 * static_cast<double>(hd::systems::adjacent_pairs(raster)));
  CHECK(hd::systems::locality_order(16, 16, sizes, {.seed = 1}).cells !=
        hd::systems::locality_order(16, 16, sizes, {.seed = 2}).cells);
}

TEST_CASE("pairs of neighbours in a group are counted by hand") {
  CHECK(hd::systems::adjacent_pairs({2, 2, {0, 1, 2, 3}, {{0, 0, 4}}}) == 6);
  CHECK(hd::systems::adjacent_pairs({2, 2, {0, 3, 1, 2}, {{0, 0, 2}, {2, 2, 4}}}) == 2);
  CHECK(hd::systems::adjacent_pairs({1, 3, {0, 2, 1}, {{0, 0, 2}, {2, 2, 3}}}) == 0);
}

TEST_CASE("a mask of groups is the rule of LPD's authors") {
  for (std::uint64_t seed = 0; seed < hd::test::cases(100, 5'000); ++seed) {
    const hd::Random random(seed, "masks");
    const Sizes sizes = random_sizes(random, 1 + static_cast<std::int64_t>(random.below(90, 30)));
    const auto prompt = static_cast<std::int64_t>(random.below(91, 3));
    const hd::systems::GroupMask mask(sizes, prompt);
    // The prompt and the context of group g have the number 2 (g + 1); the queries of g, 2 g + 1.
    std::vector<std::int64_t> number(static_cast<std::size_t>(prompt), 0);
    for (std::size_t g = 0; g + 1 < sizes.size(); ++g)
      number.insert(number.end(), static_cast<std::size_t>(sizes[g]),
                    2 * (static_cast<std::int64_t>(g) + 1));
    const auto context = static_cast<std::int64_t>(number.size());
    for (std::size_t g = 0; g < sizes.size(); ++g)
      number.insert(number.end(), static_cast<std::size_t>(sizes[g]),
                    2 * static_cast<std::int64_t>(g) + 1);
    REQUIRE(mask.tokens() == static_cast<std::int64_t>(number.size()));
    REQUIRE(mask.context() == context);
    for (std::int64_t q = 0; q < mask.tokens(); ++q) {
      std::vector<bool> sees(number.size(), false);
      const std::vector<hd::Interval> visible = mask.visible(q);
      for (std::size_t i = 0; i < visible.size(); ++i) {
        REQUIRE(visible[i].begin < visible[i].end);
        if (i > 0) REQUIRE(visible[i - 1].end < visible[i].begin);
        for (std::int64_t k = visible[i].begin; k < visible[i].end; ++k)
          sees[static_cast<std::size_t>(k)] = true;
      }
      for (std::int64_t k = 0; k < mask.tokens(); ++k) {
        const std::int64_t of_q = number[static_cast<std::size_t>(q)];
        const std::int64_t of_k = number[static_cast<std::size_t>(k)];
        REQUIRE(sees[static_cast<std::size_t>(k)] ==
                (of_k == of_q || (of_k < of_q && k < context)));
      }
    }
  }
}

TEST_CASE("decoding group by group with a cache computes what one pass computes") {
  constexpr std::size_t layers = 3;
  // A token of the next layer: a mix of the token and of the sum of those that it sees.
  const auto mix = [](std::uint64_t own, std::uint64_t seen) {
    return hd::Random(own, "layer").bits(seen);
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const hd::Random random(seed, "decoding");
    const Sizes sizes = random_sizes(random, 1 + static_cast<std::int64_t>(random.below(90, 30)));
    const hd::systems::GroupMask mask(sizes);
    using Layer = std::vector<std::uint64_t>;
    // One pass over context and queries, layer after layer, in which the mask says who sees whom.
    const auto token_value = [&](std::int64_t token) {
      return random.bits(1000 + static_cast<std::uint64_t>(token));
    };
    std::vector<Layer> pass(layers + 1, Layer(static_cast<std::size_t>(mask.tokens())));
    for (std::int64_t t = 0; t < mask.tokens(); ++t)
      pass[0][static_cast<std::size_t>(t)] = token_value(t);
    for (std::size_t l = 0; l < layers; ++l)
      for (std::int64_t t = 0; t < mask.tokens(); ++t) {
        std::uint64_t seen = 0;
        for (const hd::Interval& interval : mask.visible(t))
          for (std::int64_t k = interval.begin; k < interval.end; ++k)
            seen += pass[l][static_cast<std::size_t>(k)];
        pass[l + 1][static_cast<std::size_t>(t)] = mix(pass[l][static_cast<std::size_t>(t)], seen);
      }
    // Steps: the context of the previous group sees the cache and itself, and enters the cache; the
    // queries see the cache and themselves.
    std::vector<std::uint64_t> cache(layers, 0);  // per layer, the sum of the cached context
    for (int step = 0; step < mask.groups(); ++step) {
      const auto run = [&](hd::Interval tokens, bool keep) {
        Layer now;
        for (std::int64_t t = tokens.begin; t < tokens.end; ++t) now.push_back(token_value(t));
        for (std::size_t l = 0; l < layers; ++l) {
          const std::uint64_t seen = std::accumulate(now.begin(), now.end(), cache[l]);
          if (keep) cache[l] = seen;
          for (std::uint64_t& own : now) own = mix(own, seen);
        }
        for (std::int64_t t = tokens.begin; t < tokens.end; ++t)
          REQUIRE(now[static_cast<std::size_t>(t - tokens.begin)] ==
                  pass[layers][static_cast<std::size_t>(t)]);
      };
      run(mask.context_of(step - 1), true);
      run(mask.queries_of(step), false);
    }
  }
}

TEST_CASE("wrong grids, sizes and groups are rejected") {
  const auto order = [](int rows, const Sizes& sizes,
                        const hd::systems::LocalityOptions& options = {}) {
    return message_of<hd::contract_error>(
        [&] { (void)hd::systems::locality_order(rows, 2, sizes, options); });
  };
  CHECK_THAT(order(0, {1}), ContainsSubstring("0 rows"));
  CHECK_THAT(order(2, {1, 0, 3}), ContainsSubstring("sizes[1] = 0"));
  CHECK_THAT(order(2, {1, 2}), ContainsSubstring("the sizes sum to 3, the grid has 4 cells"));
  CHECK_THAT(order(1, {2}, {.repulsion = -1}), ContainsSubstring("repulsion = -1"));
  CHECK_THAT(order(1, {2}, {.proximity = std::nan("")}), ContainsSubstring("proximity"));
  const hd::systems::GroupMask mask(Sizes{1, 2});
  CHECK(mask.group_of(0) == -1);
  const auto wrong = [](auto&& call) { return message_of<hd::contract_error>(call); };
  CHECK_THAT(wrong([&] { (void)mask.visible(5); }), ContainsSubstring("token 5 of 5"));
  CHECK_THAT(wrong([&] { (void)mask.context_of(1); }), ContainsSubstring("group 1 of 2"));
  CHECK_THAT(wrong([&] { (void)mask.queries_of(-1); }), ContainsSubstring("group -1 of 2"));
  CHECK_THAT(wrong([] { hd::systems::GroupMask none(Sizes{}); }), ContainsSubstring("0 groups"));
  CHECK_THAT(wrong([] {
               hd::systems::GroupMask none(Sizes{2, 0});
             }),
             ContainsSubstring("sizes[1] = 0"));
}

}  // namespace test_grid_order
