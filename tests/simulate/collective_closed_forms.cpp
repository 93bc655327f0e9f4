// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The times that the docstrings of the algorithms state, exactly: every link by itself, merging
// free.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/rational.hpp"

namespace test_collective_closed_forms {

using namespace heddle;
using schedule::Algorithm;
using schedule::Collective;
using schedule::GroupLevel;
using test::Rational;

namespace {

constexpr Bytes piece = 8;  ///< bytes of a chunk of a block, where there are P blocks

/// P, C, latency, and the time of a message of one piece.
struct Net {
  int p;
  int c;
  Rational a;
  Rational x;
};

template <class Check>
void for_nets(Check&& check) {
  for (const int p : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16})
    for (const int c : {1, 2, 5})
      for (const auto& [a, x] : {std::pair<Rational, Rational>{0, 8},
                                 {1, 1},
                                 {{7, 3}, {1, 3}},
                                 {{2, 5}, {40, 3}},
                                 {30, 1}})
        check(Net{p, c, a, x});
}

Rational time_of(Collective collective, Algorithm algorithm, const Net& net,
                 std::vector<GroupLevel> levels = {}) {
  const Schedule list = schedule::collective(collective, algorithm,
                                             {.ranks = net.p,
                                              .bytes = piece * static_cast<Bytes>(net.p * net.c),
                                              .type = Scalar::byte,
                                              .chunks = net.c,
                                              .levels = std::move(levels)});
  const BasicStageCosts<Rational> costs{.latency = net.a, .per_byte = net.x * Rational(1, piece)};
  return simulate(list, costs).makespan();
}

void expect_time(Collective collective, Algorithm algorithm, const Net& net, Rational expected) {
  const Rational found = time_of(collective, algorithm, net);
  if (!(found == expected))
    FAIL(collective << " by " << algorithm << " P=" << net.p << " C=" << net.c << ", a=" << net.a
                    << " x=" << net.x << ": " << found << ", expected " << expected);
}

/// max(n (a + x) + (C-1) x, n C x + a): n messages of C chunks, one behind the other in the same
/// channel, each needing the one before.
Rational around(int steps, const Net& net, Rational x) {
  if (steps == 0) return 0;
  const Rational n(steps);
  const Rational c(net.c);
  return std::max(n * (net.a + x) + (c - Rational(1)) * x, n * c * x + net.a);
}

/// n (a + x) + (C-1) x: along n channels.
Rational along(int steps, const Net& net, Rational x) {
  if (steps == 0) return 0;
  return Rational(steps) * (net.a + x) + Rational(net.c - 1) * x;
}

int log2_ceil(int p) { return std::bit_width(static_cast<unsigned>(p - 1)); }
int log2_floor(int p) { return std::bit_width(static_cast<unsigned>(p)) - 1; }

}  // namespace

TEST_CASE("rings take the time of their formulas") {
  for_nets([](const Net& net) {
    using enum Collective;
    expect_time(reduce_scatter, Algorithm::ring, net, around(net.p - 1, net, net.x));
    expect_time(all_gather, Algorithm::ring, net, around(net.p - 1, net, net.x));
    expect_time(all_reduce, Algorithm::ring, net, around(2 * (net.p - 1), net, net.x));
    const Rational whole = net.x * Rational(net.p);
    expect_time(broadcast, Algorithm::ring, net, along(net.p - 1, net, whole));
    expect_time(reduce, Algorithm::ring, net, along(net.p - 1, net, whole));
  });
}

TEST_CASE("two rings take the time of one with half of the bytes") {
  for_nets([](Net net) {
    if (net.p < 3) return;  // two members have but one neighbour
    const Rational half = net.x * Rational(1, 2);
    expect_time(Collective::all_reduce, Algorithm::bidirectional_ring, net,
                around(2 * (net.p - 1), net, half));
    expect_time(Collective::all_gather, Algorithm::bidirectional_ring, net,
                around(net.p - 1, net, half));
  });
}

TEST_CASE("stars and direct exchanges take two latencies, or one") {
  for_nets([](const Net& net) {
    if (net.p == 1) return;
    using enum Collective;
    const Rational whole = net.x * Rational(net.p);
    expect_time(all_reduce, Algorithm::star, net, along(2, net, whole));
    expect_time(broadcast, Algorithm::star, net, along(1, net, whole));
    expect_time(reduce, Algorithm::star, net, along(1, net, whole));
    expect_time(all_reduce, Algorithm::direct, net, around(2, net, net.x));
    expect_time(reduce_scatter, Algorithm::direct, net, along(1, net, net.x));
    expect_time(all_gather, Algorithm::direct, net, along(1, net, net.x));
    expect_time(all_to_all, Algorithm::direct, net, along(1, net, net.x));
    expect_time(gather, Algorithm::direct, net, along(1, net, net.x));
    expect_time(scatter, Algorithm::direct, net, along(1, net, net.x));
  });
}

TEST_CASE("trees take the time of their longest path") {
  for_nets([](const Net& net) {
    using enum Collective;
    const Rational whole = net.x * Rational(net.p);
    int depth = 0;
    for (int v = 0; v < net.p; ++v)
      depth = std::max(depth, std::popcount(static_cast<unsigned>(v)));
    expect_time(broadcast, Algorithm::binomial_tree, net, along(depth, net, whole));
    // With chunks, whoever merges does so with all of one child's before another's.
    if (net.c == 1) {
      expect_time(reduce, Algorithm::binomial_tree, net, along(depth, net, whole));
      expect_time(all_reduce, Algorithm::binomial_tree, net, along(2 * depth, net, whole));
    }
    const Rational half = whole * Rational(1, 2);
    // What goes up one tree and down the other may share a link, and chunks then wait.
    const Rational two = along(2 * log2_floor(net.p), net, half);
    if (net.c == 1) expect_time(all_reduce, Algorithm::double_tree, net, two);
    REQUIRE(!(time_of(all_reduce, Algorithm::double_tree, net) < two));
    if (net.p > 2)  // so that the trees' roots are two
      expect_time(broadcast, Algorithm::double_tree, net,
                  along(1 + log2_floor(net.p - 1), net, half));
  });
}

TEST_CASE("recursive doubling and halving, Bruck and the barrier take log P latencies") {
  for_nets([](Net net) {
    using enum Collective;
    const int rounds = log2_floor(net.p);
    const bool surplus = !std::has_single_bit(static_cast<unsigned>(net.p));
    if (net.c != 1)
      return;  // chunks of several blocks, or of several partners, wait for each other
    const Rational doubling =
        Rational(rounds + (surplus ? 2 : 0)) * (net.a + net.x * Rational(net.p));
    const Rational k(log2_ceil(net.p));
    const Rational once = k * net.a + Rational(net.p - 1) * net.x;
    expect_time(barrier, Algorithm::bruck, net, k * net.a);
    // A corner whose partner has no pair of its own may hear of it before.
    REQUIRE(!(doubling < time_of(all_reduce, Algorithm::recursive_doubling, net)));
    // Where P is no power of two the last messages may leave before the last but one are there.
    REQUIRE(!(once < time_of(all_gather, Algorithm::bruck, net)));
    REQUIRE(!(once + once < time_of(all_reduce, Algorithm::bruck, net)));
    if (surplus) return;
    expect_time(all_reduce, Algorithm::recursive_doubling, net, doubling);
    expect_time(all_gather, Algorithm::bruck, net, once);
    expect_time(reduce_scatter, Algorithm::bruck, net, once);
    expect_time(all_reduce, Algorithm::bruck, net, once + once);
    expect_time(all_gather, Algorithm::recursive_doubling, net, once);
    expect_time(reduce_scatter, Algorithm::recursive_halving, net, once);
    expect_time(all_reduce, Algorithm::recursive_halving, net, once + once);
  });
}

TEST_CASE("scans take log2 P latencies at most, or those of a chain") {
  for_nets([](const Net& net) {
    using enum Collective;
    const Rational whole = net.x * Rational(net.p);
    expect_time(inclusive_scan, Algorithm::ring, net, along(net.p - 1, net, whole));
    if (net.c != 1) return;  // chunks of several rounds share a link
    // Where the number of those that scan is no power of two the last message may leave before.
    const auto expect_doubling = [&](Collective scan, int members, const Rational& expected) {
      REQUIRE(!(expected < time_of(scan, Algorithm::recursive_doubling, net)));
      if (std::has_single_bit(static_cast<unsigned>(members)))
        expect_time(scan, Algorithm::recursive_doubling, net, expected);
    };
    expect_doubling(inclusive_scan, net.p, along(log2_ceil(net.p), net, whole));
    if (net.p == 1) return;
    const Rational copy =
        net.a + whole;  // of what a rank has kept: these costs know no local moves
    expect_time(exclusive_scan, Algorithm::ring, net, along(net.p - 1, net, whole) + copy);
    expect_doubling(exclusive_scan, net.p - 1, along(1 + log2_ceil(net.p - 1), net, whole) + copy);
  });
}

TEST_CASE("levels of groups take the sum of their levels' times") {
  for_nets([](const Net& net) {
    if (net.c != 1) return;
    for (const auto& [n, groups] : {std::pair{2, 4}, {4, 2}, {3, 2}}) {
      const Net all{n * groups, 1, net.a, net.x};
      // Inside, a block is that of all groups' members of one place.
      const Rational expected =
          around(2 * (n - 1), all, net.x * Rational(groups)) + around(2 * (groups - 1), all, net.x);
      CHECK(time_of(Collective::all_reduce, Algorithm::hierarchical, all, {{n}, {groups}}) ==
            expected);
    }
  });
}

TEST_CASE("nobody leaves a barrier before the last has come") {
  for (int p = 1; p <= 9; ++p) {
    for (int late = 0; late < p; ++late) {
      Builder builder("late", p);
      std::vector<Use> members;
      for (int r = 0; r < p; ++r) {
        members.push_back(
            schedule::update(builder.add_buffer({.rank = Rank{r}, .transient = false})));
        builder.add({Kind::user, builder.local(Rank{r}), Stage{r}}, {members.back()});
      }
      builder.add({Kind::group, builder.local(Rank{0}, Lane{1})}, members);
      for (int r = 0; r < p; ++r)
        builder.add({Kind::user, builder.local(Rank{r}), Stage{p}},
                    {schedule::read(members[static_cast<std::size_t>(r)].buffer)});
      const Schedule list =
          schedule::expand(std::move(builder).build(),
                           schedule::CollectiveForm{Collective::barrier, Algorithm::bruck});
      TableCosts costs(Machine::uniform(p, {}, {}), p + 1);
      costs.at(Kind::user, Stage{late}) = 100;
      costs.at(Kind::user, Stage{p}) = 1;
      const Timeline timeline = simulate(list, costs);
      for (std::size_t i = list.size() - static_cast<std::size_t>(p); i < list.size(); ++i)
        CHECK(timeline[ActionId{i}].start == 100);
    }
  }
}

}  // namespace test_collective_closed_forms
