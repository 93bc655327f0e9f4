// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Pieces of a weighted line against all possible pieces.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/layout/cut.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"
#include "support/rational.hpp"

namespace test_cut {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Rational;
using Places = std::vector<std::int64_t>;

/// Returns the largest quotient of weight and share of the pieces, or a large number
/// if a piece without a share has weight.
Rational largest(const std::vector<int>& weights, const std::vector<int>& shares,
                 const Places& at) {
  Rational most;
  for (std::size_t p = 0; p < shares.size(); ++p) {
    const int weight = std::accumulate(weights.begin() + at[p], weights.begin() + at[p + 1], 0);
    if (shares[p] == 0) {
      if (weight > 0) return Rational(std::numeric_limits<int>::max());
    } else {
      most = std::max(most, Rational(weight, shares[p]));
    }
  }
  return most;
}

/// Calls `visit` for all ways to divide `items` items into `pieces` pieces, which may be empty.
void for_each_cut(std::int64_t items, std::size_t pieces,
                  const std::function<void(const Places&)>& visit) {
  Places at{0};
  const std::function<void()> next = [&] {
    if (at.size() == pieces) {
      at.push_back(items);
      visit(at);
      at.pop_back();
      return;
    }
    for (std::int64_t end = at.back(); end <= items; ++end) {
      at.push_back(end);
      next();
      at.pop_back();
    }
  };
  next();
}

TEST_CASE("no pieces have a smaller largest piece") {
  std::mt19937_64 random(31);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  test::Coverage seen("lines");
  for (std::uint64_t c = 0; c < test::cases(400, 40'000); ++c) {
    std::vector<int> weights(static_cast<std::size_t>(below(8)));
    for (int& weight : weights) weight = below(3) == 0 ? 0 : below(9);
    std::vector<int> shares(1 + static_cast<std::size_t>(below(5)));
    for (int& share : shares) share = below(5);
    if (std::accumulate(shares.begin(), shares.end(), 0) == 0) shares.back() = 1;
    const bool no_weight = std::accumulate(weights.begin(), weights.end(), 0) == 0;
    seen.count("more pieces than items", weights.size() < shares.size());
    seen.count("one piece", shares.size() == 1);
    seen.count("no items", weights.empty());
    seen.count("no weight", no_weight && !weights.empty());
    seen.count("piece without a share", std::ranges::count(shares, 0) > 0);
    const Places at = cut(weights, std::vector<double>(shares.begin(), shares.end()));
    INFO("case " << c);
    REQUIRE(at.size() == shares.size() + 1);
    REQUIRE(at.front() == 0);
    REQUIRE(at.back() == static_cast<std::int64_t>(weights.size()));
    REQUIRE(std::ranges::is_sorted(at));
    for (std::size_t p = 0; p < shares.size(); ++p)
      if (shares[p] == 0) REQUIRE(at[p] == at[p + 1]);
    const std::vector<int> counted = no_weight ? std::vector<int>(weights.size(), 1) : weights;
    Rational best(std::numeric_limits<int>::max());
    for_each_cut(at.back(), shares.size(), [&](const Places& other) {
      best = std::min(best, largest(counted, shares, other));
    });
    REQUIRE(largest(counted, shares, at) == best);
    std::vector<int> sums{7};
    for (const int weight : weights) sums.push_back(sums.back() + weight);
    REQUIRE(heddle::impl::cut_sums(sums, std::vector<double>(shares.begin(), shares.end())) == at);
  }
  CHECK(seen.rarer_than(15).empty());
}

TEST_CASE("pieces are near the proportional ones, and items without weight do not move them") {
  CHECK(cut(std::vector<int>(10, 1), 4) == Places{0, 2, 5, 7, 10});
  CHECK(cut(std::vector<int>(12, 3), {1, 2, 3}) == Places{0, 2, 6, 12});
  // The optimum alone, 2, would also permit 2, 2, 0.
  CHECK(cut(std::vector<int>(4, 1), 3) == Places{0, 1, 3, 4});
  CHECK(cut(std::vector<int>{5, 0, 0, 5, 0}, 2) == Places{0, 1, 5});
  CHECK(cut(std::vector<int>{0, 0, 5, 5}, 2) == Places{0, 3, 4});
  CHECK(cut(std::vector<int>(6, 0), 3) == Places{0, 2, 4, 6});
  CHECK(cut(std::vector<int>{}, 3) == Places{0, 0, 0, 0});
  CHECK(cut(std::vector<int>{9}, 1) == Places{0, 1});
  CHECK(cut(std::vector<int>{1, 1, 1, 1}, {1, 0, 1}) == Places{0, 2, 2, 4});
}

TEST_CASE("a long line is cut to within one item of the proportional pieces") {
  constexpr std::int64_t items = 200'000;
  constexpr int pieces = 64;
  std::vector<double> weights;
  std::mt19937_64 random(5);
  for (std::int64_t i = 0; i < items; ++i) weights.push_back(static_cast<double>(random() % 1'000));
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  const Places at = cut(weights, pieces);
  for (std::size_t p = 0; p < pieces; ++p) {
    const double own = std::accumulate(weights.begin() + at[p], weights.begin() + at[p + 1], 0.0);
    CHECK(own <= all / pieces + 999);
    CHECK(own >= all / pieces - 999);
  }
}

TEST_CASE("wrong weights and shares are named") {
  const auto complaint = [](const std::vector<double>& weights, const std::vector<double>& shares) {
    return test::message_of<contract_error>([&] { (void)cut(weights, shares); });
  };
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK_THAT(complaint({1, -2}, {1}), ContainsSubstring("item 1 weighs -2"));
  CHECK_THAT(complaint({infinite}, {1}), ContainsSubstring("item 0 weighs inf"));
  CHECK_THAT(complaint({1}, {1, -1}), ContainsSubstring("piece 1 has -1"));
  CHECK_THAT(complaint({1}, {0, 0}), ContainsSubstring("2 shares with the sum 0"));
  CHECK_THAT(complaint({1}, {}), ContainsSubstring("0 shares"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)cut(std::vector<int>{1}, 0); }),
             ContainsSubstring("pieces = 0"));
  CHECK_THAT(test::message_of<contract_error>([] {
               (void)heddle::impl::cut_sums(std::vector<int>{0, 3, 2}, 2);
             }),
             ContainsSubstring("sum 2 is 2 after 3"));
  CHECK_THAT(
      test::message_of<contract_error>([] { (void)heddle::impl::cut_sums(std::vector<int>{}, 2); }),
      ContainsSubstring("begin with 0"));
}

}  // namespace test_cut
