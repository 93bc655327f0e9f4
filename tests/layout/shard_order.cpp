// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// IndexSet and ShardOrder, against lists of single indices.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/text.hpp>
#include <heddle/layout.hpp>

#include "support/complaint.hpp"

namespace test_shard_order {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;

namespace {

using List = std::vector<std::int64_t>;

List list_of(const IndexSet& set) {
  List list;
  for (const Interval& interval : set.intervals())
    for (std::int64_t i = interval.begin; i < interval.end; ++i) list.push_back(i);
  return list;
}

/// The sizes that even blocks have.
List even_sizes(std::int64_t n, std::int64_t blocks) {
  List sizes;
  for (std::int64_t b = 0; b < blocks; ++b) sizes.push_back(n / blocks + (b < n % blocks ? 1 : 0));
  return sizes;
}

/// The indices of `rank`, where block k of these sizes goes to rank owner(k).
template <class Owner>
List dealt(const List& sizes, std::int64_t rank, Owner&& owner) {
  List list;
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < sizes.size(); begin += sizes[k++])
    for (std::int64_t i = begin; i < begin + sizes[k]; ++i)
      if (owner(static_cast<std::int64_t>(k)) == rank) list.push_back(i);
  return list;
}

}  // namespace

TEST_CASE("a set of indices is the fewest intervals, and knows where each of them stands") {
  IndexSet set;
  for (const Interval& interval : {Interval{2, 4}, Interval{4, 4}, Interval{4, 5}, Interval{9, 12}})
    set.add(interval);
  CHECK(text(set) == "2-4, 9-11");
  CHECK(text(IndexSet()) == "none");
  CHECK(set.size() == 6);
  CHECK_FALSE(set.contiguous());
  CHECK(IndexSet(7).contiguous());
  CHECK(IndexSet(0) == IndexSet());
  const List list = list_of(set);
  for (std::int64_t i = 0; i < 14; ++i) {
    const auto found = std::find(list.begin(), list.end(), i);
    const auto position = set.position(i);
    REQUIRE(position.has_value() == (found != list.end()));
    if (position) CHECK(*position == found - list.begin());
    CHECK(set.below(i) == std::count_if(list.begin(), list.end(), [&](auto l) { return l < i; }));
  }
  for (std::int64_t l = 0; l < set.size(); ++l) CHECK(set[l] == list[static_cast<std::size_t>(l)]);
  CHECK_THAT(test::message_of<contract_error>([&] { (void)set[6]; }),
             ContainsSubstring("no such position (6 of 6)"));
  CHECK_THAT(test::message_of<contract_error>([&] {
               set.add({11, 13});
             }),
             ContainsSubstring("indices must be added in ascending order (11 after 11)"));
}

TEST_CASE("intersections and differences of sets are those one by one") {
  for (unsigned a = 0; a < 64; ++a)
    for (unsigned b = 0; b < 64; ++b) {
      const auto set_of = [](unsigned bits) {
        IndexSet set;
        for (std::int64_t i = 0; i < 6; ++i)
          if ((bits >> i & 1u) != 0) set.add({i, i + 1});
        return set;
      };
      REQUIRE(heddle::impl::intersection(set_of(a), set_of(b)) == set_of(a & b));
      REQUIRE(difference(set_of(a), set_of(b)) == set_of(a & ~b));
    }
}

TEST_CASE("the indices at positions are those one by one") {
  for (std::int64_t outer = 1; outer <= 4; ++outer)
    for (std::int64_t inner = 1; inner <= 4; ++inner) {
      const IndexSet set = ShardOrder::cyclic(outer).share(29, 2, 1);
      const IndexSet positions = ShardOrder::cyclic(inner).share(set.size(), 3, 1);
      List expected;
      for (const std::int64_t p : list_of(positions)) expected.push_back(set[p]);
      CHECK(list_of(set.at(positions)) == expected);
    }
  CHECK(IndexSet(9).at(IndexSet()) == IndexSet());
  CHECK(IndexSet().at(IndexSet()) == IndexSet());
}

TEST_CASE("every order deals out each index once, as its blocks say") {
  for (const std::int64_t n : {0, 1, 2, 3, 5, 7, 8, 13, 24, 31})
    for (std::int64_t p = 1; p <= 5; ++p) {
      INFO("n = " << n << ", P = " << p);
      List weights(static_cast<std::size_t>(p));
      for (std::size_t r = 0; r < weights.size(); ++r)
        weights[r] = static_cast<std::int64_t>((r * 2 + 1) % 4);
      const std::int64_t all = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
      List cumulative;
      for (std::size_t r = 0; r < weights.size(); ++r) {
        const auto sum = std::accumulate(
            weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(r) + 1, std::int64_t{0});
        cumulative.push_back(n * sum / all);
      }
      List sizes(cumulative.size());
      std::adjacent_difference(cumulative.begin(), cumulative.end(), sizes.begin());
      for (std::int64_t r = 0; r < p; ++r) {
        const auto self = [](std::int64_t k) { return k; };
        CHECK(list_of(ShardOrder::even().share(n, p, r)) == dealt(even_sizes(n, p), r, self));
        CHECK(list_of(ShardOrder::weighted(weights).share(n, p, r)) == dealt(sizes, r, self));
        CHECK(list_of(ShardOrder::zigzag().share(n, p, r)) ==
              dealt(even_sizes(n, 2 * p), r,
                    [&](std::int64_t k) { return std::min(k, 2 * p - 1 - k); }));
        for (const std::int64_t number : {1, 2, 3, 40}) {
          CHECK(list_of(ShardOrder::cyclic(number).share(n, p, r)) ==
                dealt(List(static_cast<std::size_t>(n), 1), r,
                      [&](std::int64_t i) { return i / number % p; }));
          List blocks;
          for (const std::int64_t piece : even_sizes(n, number))
            for (const std::int64_t size : even_sizes(piece, p)) blocks.push_back(size);
          CHECK(list_of(ShardOrder::strided(number).share(n, p, r)) ==
                dealt(blocks, r, [&](std::int64_t k) { return k % p; }));
        }
      }
    }
  // Weights that sum up to n are sizes.
  CHECK(text(ShardOrder::weighted({3, 0, 4}).share(7, 3, 1)) == "none");
  CHECK(text(ShardOrder::weighted({3, 0, 4}).share(7, 3, 2)) == "3-6");
  const std::int64_t most = std::int64_t{1} << 62;
  CHECK(ShardOrder::cyclic(most).share(7, 3, 0).size() == 7);
  CHECK(ShardOrder::cyclic(most).share(7, 3, 1).size() == 0);
  CHECK(ShardOrder::weighted({most / 2, most / 2}).share(most, 2, 1).size() == most / 2);
}

TEST_CASE("orders print, compare, and refuse numbers that mean nothing") {
  CHECK(text(ShardOrder()) == "even");
  CHECK(text(ShardOrder::weighted({3, 1})) == "weighted(3, 1)");
  CHECK(text(ShardOrder::cyclic()) == "cyclic(1)");
  CHECK(text(ShardOrder::strided(4)) == "strided(4)");
  CHECK(text(ShardOrder::zigzag()) == "zigzag");
  CHECK(ShardOrder::cyclic(2) != ShardOrder::cyclic(3));
  CHECK(ShardOrder::even().in_blocks());
  CHECK(ShardOrder::weighted({1, 2}).in_blocks());
  CHECK_FALSE(ShardOrder::cyclic(5).in_blocks());
  const auto refusal = [](auto&& call) { return test::message_of<contract_error>(call); };
  CHECK_THAT(refusal([] { (void)ShardOrder::cyclic(0); }),
             ContainsSubstring("heddle::ShardOrder::cyclic: 'block' must be at least 1 (0)"));
  CHECK_THAT(refusal([] { (void)ShardOrder::strided(-1); }),
             ContainsSubstring("'pieces' must be at least 1 (-1)"));
  CHECK_THAT(refusal([] {
               (void)ShardOrder::weighted({1, -1});
             }),
             ContainsSubstring("weights must be at least 0, and one of them above 0 (1, -1)"));
  CHECK_THAT(refusal([] { (void)ShardOrder::weighted({0, 0}); }), ContainsSubstring("(0, 0)"));
  CHECK_THAT(refusal([] {
               (void)ShardOrder::weighted({1, 1}).share(4, 3, 0);
             }),
             ContainsSubstring("each rank needs one weight (2 weights, 3 ranks)"));
}

TEST_CASE("blocks of any length, and what is no rank") {
  const std::int64_t n = std::int64_t{1} << 62;
  const ShardOrder order = ShardOrder::cyclic(n);
  CHECK(order.share(n, 3, 0).size() == n);
  CHECK(order.share(n, 3, 1).size() == 0);
  CHECK(order.share(n, 5, 4).size() == 0);
  CHECK(ShardOrder::cyclic(n / 2 + 1).share(n, 3, 1).size() == n / 2 - 1);
  const auto refusal = [](std::int64_t n_of, std::int64_t ranks, std::int64_t rank) {
    return test::message_of<contract_error>([=] { (void)ShardOrder().share(n_of, ranks, rank); });
  };
  CHECK_THAT(
      refusal(4, 2, 2),
      ContainsSubstring("heddle::ShardOrder::share: n must be at least 0, and the rank one of "
                        "the ranks (rank 2 of 2, n = 4)"));
  CHECK_THAT(refusal(4, 2, -1), ContainsSubstring("(rank -1 of 2, n = 4)"));
  CHECK_THAT(refusal(4, 0, 0), ContainsSubstring("(rank 0 of 0, n = 4)"));
  CHECK_THAT(refusal(-1, 2, 0), ContainsSubstring("(rank 0 of 2, n = -1)"));
}

}  // namespace test_shard_order
