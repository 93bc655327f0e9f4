// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The min-max partition of a chain against all partitions.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/plan/solver/compositions.hpp>
#include <heddle/plan/solver/min_max_partition.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_min_max_partition {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Rational;

TEST_CASE("a partition is as good as the best of all, exactly, and its first cut is the earliest") {
  std::mt19937_64 random(28);
  for (std::uint64_t c = 0; c < test::cases(300, 30'000); ++c) {
    const int items = 1 + static_cast<int>(random() % 8);
    const int parts = 1 + static_cast<int>(random() % static_cast<unsigned>(items));
    std::vector<int> weights(static_cast<std::size_t>(items));
    std::vector<int> speeds(static_cast<std::size_t>(parts));
    for (int& weight : weights) weight = static_cast<int>(random() % 9);
    for (int& speed : speeds) speed = 1 + static_cast<int>(random() % 4);
    const auto cost = [&](int part, int first, int last) {
      int sum = 0;
      for (int i = first; i < last; ++i) sum += weights[static_cast<std::size_t>(i)];
      return Rational(sum, speeds[static_cast<std::size_t>(part)]);
    };
    std::optional<Rational> best;
    std::vector<int> best_ends;
    plan::for_each_composition(items, parts, [&](std::span<const int> sizes) {
      Rational largest;
      std::vector<int> ends;
      for (int p = 0, first = 0; p < parts; ++p) {
        ends.push_back(first + sizes[static_cast<std::size_t>(p)]);
        largest = std::max(largest, cost(p, first, ends.back()));
        first = ends.back();
      }
      if (!best || largest < *best) {
        best = largest;
        best_ends = ends;
      }
    });
    const auto found = plan::min_max_partition(items, parts, cost);
    INFO("case " << c << ": " << items << " items, " << parts << " parts");
    REQUIRE(found.largest == *best);
    Rational largest;
    for (int p = 0, first = 0; p < parts; ++p) {
      const int end = found.ends[static_cast<std::size_t>(p)];
      REQUIRE(end > first);
      largest = std::max(largest, cost(p, first, end));
      first = end;
    }
    REQUIRE(found.ends.back() == items);
    REQUIRE(largest == *best);
    REQUIRE(found.ends.front() == best_ends.front());
  }
}

TEST_CASE("a partition into more parts than items is rejected") {
  const auto cost = [](int, int first, int last) { return last - first; };
  for (const auto& [items, parts] : {std::pair{3, 4}, {3, 0}, {0, 1}})
    CHECK_THAT(test::message_of<contract_error>(
                   [&] { (void)plan::min_max_partition(items, parts, cost); }),
               ContainsSubstring("heddle::plan::min_max_partition") &&
                   ContainsSubstring("at least one item"));
}

}  // namespace test_min_max_partition
