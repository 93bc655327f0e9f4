// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What the schedules of schedule/attention/ promise, exactly: work by (query, key) pairs, overlap
// of moves and blocks, latencies, and what links and ports gain.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"

namespace test_attention_closed_forms {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using schedule::AttentionForm;
using schedule::AttentionPieces;
using test::Rational;

namespace {

constexpr std::int64_t each = 12;  ///< tokens of a block

AttentionForm form_of(int p, ShardOrder order = {}, int ways = 1, bool causal = false) {
  return {.ranks = p,
          .order = std::move(order),
          .ways = ways,
          .mask = {.causal = causal},
          .tokens = each * p,
          .heads = 4,
          .head_width = 8};
}

/// The schedule as it is run: without useless moves, in two slots.
Schedule in_two_slots(const Schedule& list, const AttentionForm& form) {
  return schedule::fold_attention(schedule::drop_unread(list), form);
}

/// A pair of whole blocks takes 1; a message of a whole block of K and V takes `move`.
test::Rational time_of(const Schedule& list, const AttentionForm& form, Rational move) {
  const Rational block(each * each);
  const Bytes bytes = 2 * static_cast<Bytes>(each) * form.key_bytes();
  return simulate(
             list,
             BasicAttentionCosts<Rational>{.pieces = AttentionPieces(form),
                                           .product = Rational(1, form.backward ? 5 : 2) / block,
                                           .per_byte = move / Rational(bytes)})
      .makespan();
}

}  // namespace

TEST_CASE("causal work: contiguous P - 1/2 blocks, zigzag P/2, and half a row of pairs more") {
  for (const int p : {1, 2, 3, 4, 8}) {
    for (const bool backward : {false, true}) {
      // A query sees its own key, so that a diagonal block of n tokens has n^2/2 + n/2 pairs.
      const Rational own(1, 2 * each);
      const auto makespan = [&](ShardOrder order, int ways) {
        AttentionForm form = form_of(p, std::move(order), ways, true);
        form.backward = backward;
        return time_of(in_two_slots(schedule::ring_attention(form), form), form, 0);
      };
      const Rational contiguous = makespan(ShardOrder::even(), 1) - own;
      const Rational zigzag = makespan(ShardOrder::zigzag(), 1) - own;
      CHECK(contiguous == Rational(p) - Rational(1, 2));
      CHECK(zigzag == Rational(p, 2));
      CHECK(zigzag / contiguous == Rational(p, 2 * p - 1));
      CHECK(makespan(ShardOrder::zigzag(), 2) - own == zigzag);
    }
  }
}

TEST_CASE("every rank has the same number of pairs in zigzag order, r + 1/2 blocks in contiguous") {
  for (const int p : {2, 3, 4, 8}) {
    const auto busy = [&](ShardOrder order) {
      const AttentionForm form = form_of(p, std::move(order), 1, true);
      return simulate(schedule::ring_attention(form),
                      BasicAttentionCosts<Rational>{.pieces = AttentionPieces(form),
                                                    .product = Rational(1, 2)})
          .busy();
    };
    const std::vector<Rational> contiguous = busy(ShardOrder::even());
    const std::vector<Rational> zigzag = busy(ShardOrder::zigzag());
    const Rational block(each * each), own(each, 2);
    for (std::size_t r = 0; r < contiguous.size(); ++r) {
      CHECK(contiguous[r] - own == block * (Rational(r) + Rational(1, 2)));
      CHECK(zigzag[r] - own == block * Rational(p, 2));
    }
  }
}

TEST_CASE("in two slots moves hide behind blocks: P, and 2P - 1 if they take twice as long") {
  for (const int p : {2, 3, 4, 8})
    for (const bool backward : {false, true}) {
      AttentionForm form = form_of(p);
      form.backward = backward;
      const Schedule list = in_two_slots(schedule::ring_attention(form), form);
      // The gradients of the last step travel home behind it: K and V, and dK and dV, are as long.
      const auto expected = [&](std::int64_t move) {
        return Rational(move <= 1 ? p : (p - 1) * move + 1) + Rational(backward ? move : 0);
      };
      CHECK(time_of(list, form, 0) == expected(0));
      CHECK(time_of(list, form, 1) == expected(1));
      CHECK(time_of(list, form, 2) == expected(2));
      const Schedule reused = schedule::reuse_own_block(list, form);
      for (const int move : {0, 1, 2, 5})
        CHECK(time_of(reused, form, move) == time_of(list, form, move));
      if (!backward) {
        CHECK(time_of(list, form, Rational(1, 2)) == Rational(p));
        CHECK(time_of(list, form, 5) == expected(5));
        // One slot: a block is received after the one before it was used and passed on.
        if (p > 2)
          CHECK_THROWS_AS(schedule::fold_attention(schedule::ring_attention(form), form, 1),
                          infeasible);
      }
    }
}

TEST_CASE("with a rank's own block as a slot, eager sends take as long as with both slots") {
  for (const int p : {2, 3, 5, 8})
    for (const bool zigzag : {false, true})
      for (const bool causal : {false, true})
        for (const int ways : {1, 2}) {
          AttentionForm form =
              form_of(p, zigzag ? ShardOrder::zigzag() : ShardOrder::even(), ways, causal);
          std::vector<Schedule> lists = {in_two_slots(schedule::ring_attention(form), form)};
          if (ways == 1) lists.push_back(in_two_slots(schedule::token_ring(form), form));
          form.backward = true;
          lists.push_back(in_two_slots(schedule::ring_attention(form), form));
          for (const Schedule& list : lists) {
            const Schedule reused = schedule::reuse_own_block(list, form);
            for (const Rational move : {Rational(1, 3), Rational(9, 10), Rational(7, 2)})
              CHECK(time_of(reused, form, move) == time_of(list, form, move));
          }
        }
}

TEST_CASE("with two ways a message takes half as long") {
  for (const int p : {3, 4, 8}) {
    const AttentionForm form = form_of(p, ShardOrder::even(), 2);
    const Schedule list = in_two_slots(schedule::ring_attention(form), form);
    CHECK(time_of(list, form, 2) == Rational(p));
    CHECK(time_of(list, form, 4) < time_of(schedule::ring_attention(form_of(p)), form_of(p), 4));
  }
}

TEST_CASE("rsa waits for twice as many latencies as the ring") {
  for (const int p : {2, 3, 4, 8}) {
    const auto latencies = [&](const Schedule& list, const AttentionForm& form) {
      return simulate(list,
                      BasicAttentionCosts<Rational>{.pieces = AttentionPieces(form), .latency = 1})
          .makespan();
    };
    const AttentionForm form = form_of(p);
    CHECK(latencies(schedule::ring_attention(form), form) == Rational(p - 1));
    CHECK(latencies(schedule::rsa(form), form) == Rational(2 * (p - 1)));
    CHECK(latencies(in_two_slots(schedule::rsa(form), form), form) == Rational(2 * (p - 1)));
  }
}

TEST_CASE("TokenRing gains on private links, loses with fewer K,V heads, gains nothing at a port") {
  for (const int p : {4, 8}) {
    const AttentionForm form = form_of(p);
    AttentionForm two_ways = form, grouped = form;
    two_ways.ways = 2;
    grouped.kv_heads = 1;
    const double unit = static_cast<double>(form.query_bytes()) * each;  // bytes
    Machine links = Machine::uniform(p, {}, {.latency = 0, .bandwidth = unit});
    Machine ports = links;
    for (std::size_t r = 0; r < static_cast<std::size_t>(p); ++r) {
      links.set_ports(0, r, {.out = Ports::unlimited, .in = Ports::unlimited});
      ports.set_ports(0, r, {.out = unit, .in = unit});
    }
    const auto busy = [&](const Schedule& list, const AttentionForm& of, const Machine& machine) {
      return simulate(list, AttentionCosts(of, 0, machine)).makespan();
    };
    // All lanes between two ranks have a channel of their own here, so that the last state does not
    // wait for queries: the queries' P - 1 units, and a state of 1 + 2 H/d behind them.
    const double ring = busy(schedule::ring_attention(form), form, links);
    const double token = busy(schedule::token_ring(form), form, links);
    CHECK(ring == 2 * (p - 1));
    CHECK(token == p + 2.0 / 8);
    CHECK(busy(schedule::ring_attention(two_ways), two_ways, links) == p - 1);
    CHECK(busy(schedule::ring_attention(grouped), grouped, links) <
          busy(schedule::token_ring(grouped), grouped, links));
    // A port sends (P - 1)(2 + 2 H/d) units, more than the ring's 2 (P - 1).
    CHECK(busy(schedule::ring_attention(form), form, ports) == 2 * (p - 1));
    CHECK(busy(schedule::token_ring(form), form, ports) >= (p - 1) * (2 + 2.0 / 8));
    CHECK(busy(schedule::ring_attention(two_ways), two_ways, ports) >= 2 * (p - 1));
  }
}

TEST_CASE("costs on a machine count pairs over the speed of the device") {
  const AttentionForm form = form_of(1);
  const Machine machine = Machine::uniform(1, {.speed = 2}, {});
  CHECK(simulate(schedule::ring_attention(form), AttentionCosts(form, 0.5, machine)).makespan() ==
        each * each / 2.0);
  CHECK_THAT(test::message_of<contract_error>([&] {
               (void)simulate(schedule::ring_attention(form), AttentionCosts(form, -1, machine));
             }),
             ContainsSubstring("product = -1"));
  Builder builder("other", 1);
  const BufferId data = builder.add_buffer({.transient = false});
  builder.add({.kind = Kind::forward, .queue = builder.local(Rank{0})}, {schedule::read(data)});
  const Schedule other = std::move(builder).build();
  CHECK_THAT(test::message_of<contract_error>(
                 [&] { (void)simulate(other, AttentionCosts(form, 1, machine)); }),
             ContainsSubstring("computes no (query, key) pairs"));
}

}  // namespace test_attention_closed_forms
