// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// What overlap() promises, exactly: every link by itself, sums and local copies free. G is the time
// of the product, R that of the collective.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/rational.hpp"

namespace test_overlap_closed_forms {

using namespace heddle;
using schedule::Algorithm;
using schedule::Collective;
using schedule::overlap;
using schedule::PartOrder;
using schedule::with_product;
using test::Rational;

namespace {

constexpr Bytes piece = 8;  ///< a block, or a chunk of it

/// A product of time `whole`, in parts by the bytes that they write; messages of `latency` and a
/// time for each byte, within a rank of none.
struct ProductCosts {
  using Time = Rational;
  Rational whole, latency, per_byte;

  Rational time(const Schedule& schedule, ActionId id) const {
    if (schedule[id].kind != Kind::forward) return 0;
    const Use& written = schedule.uses(id)[1];
    return whole * Rational(static_cast<std::int64_t>(schedule.bytes(written)),
                            static_cast<std::int64_t>(schedule[written.buffer].bytes));
  }
  Transfer<Rational> transfer(const Schedule& schedule, ActionId id) const {
    if (schedule[schedule[id].queue].local()) return {};
    return {per_byte * Rational(schedule.bytes(schedule.uses(id)[0])), latency};
  }
};
static_assert(Costs<ProductCosts>);

/// A product of time G beside a collective of P ranks that takes R alone.
struct Pair {
  int p;
  Rational g;
  Rational r;
};

/// R from a hundredth of G to more than ten times as much, for P = 2 to 8; on both sides of G (1 -
/// 1/P), where the product ceases to hide all of it, and there.
template <class Check>
void for_pairs(Check&& check) {
  for (int p = 2; p <= 8; ++p)
    for (const Rational g : {Rational(1), Rational(16), Rational(7, 3)})
      for (const Rational ratio :
           {Rational(0), Rational(1, 100), Rational(1, 2), Rational(p - 1, p),
            Rational(p - 1, p) + Rational(1, 97), Rational(1), Rational(2), Rational(41, 4)})
        check(Pair{p, g, g * ratio});
}

/// Of the list, where a message takes `hop`: half of it a latency, where there is one.
Rational time_of(const Schedule& list, Rational g, Rational hop, bool latency = true) {
  const Rational share = latency ? Rational(1, 2) : Rational(0);
  return simulate(list, ProductCosts{.whole = g,
                                     .latency = hop * share,
                                     .per_byte = hop * (Rational(1) - share) / Rational(piece)})
      .makespan();
}

Schedule product(Collective collective, Algorithm algorithm, int p, int chunks = 1) {
  return with_product(
      collective, algorithm,
      {.ranks = p, .bytes = piece * static_cast<Bytes>(p * chunks), .chunks = chunks}, 16);
}

void expect_time(const Schedule& list, const Pair& pair, Rational found, Rational expected) {
  if (!(found == expected))
    FAIL(list.name() << " G=" << pair.g << " R=" << pair.r << ": " << found << ", expected "
                     << expected);
}

}  // namespace

TEST_CASE("a product and a ring's reduce-scatter take max(G, G/P + R), an all-gather's likewise") {
  for_pairs([](const Pair& pair) {
    const auto& [p, g, r] = pair;
    for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
      const Schedule serial = product(collective, Algorithm::ring, p);
      const Rational hop = r / Rational(p - 1);
      expect_time(serial, pair, time_of(serial, 0, hop), r);
      expect_time(serial, pair, time_of(serial, g, hop), g + r);
      expect_time(serial, pair, time_of(overlap(serial), g, hop), std::max(g, g / Rational(p) + r));
    }
  });
}

TEST_CASE("with the parts in ascending order a ring begins when rank 0 is done: G + R, as before") {
  for_pairs([](const Pair& pair) {
    const auto& [p, g, r] = pair;
    const Schedule serial = product(Collective::reduce_scatter, Algorithm::ring, p);
    const Rational hop = r / Rational(p - 1);
    const Rational wrong = time_of(overlap(serial, PartOrder::ascending), g, hop);
    expect_time(serial, pair, wrong, g + r);
    if (Rational(0) < r) CHECK(time_of(overlap(serial), g, hop) < wrong);
    // Behind an all-gather rank P - 1 is right, and rank 1 waits for block 0 first; the last rank
    // gets its first block, which is not its own, last.
    const Schedule gather = product(Collective::all_gather, Algorithm::ring, p);
    const Rational other = time_of(overlap(gather, PartOrder::ascending), g, hop);
    CHECK_FALSE(other < std::max(g, g / Rational(p) + r));
    if (Rational(0) < r) CHECK(time_of(overlap(gather), g, hop) < other);
  });
}

TEST_CASE("the all-gather behind a reduce-scatter stays: max(G, G/P + R) + R in an all-reduce") {
  for_pairs([](const Pair& pair) {
    const auto& [p, g, r] = pair;
    const Schedule serial = product(Collective::all_reduce, Algorithm::ring, p);
    const Rational hop = r / Rational(p - 1);
    expect_time(serial, pair, time_of(serial, g, hop), g + r + r);
    expect_time(serial, pair, time_of(overlap(serial), g, hop),
                std::max(g, g / Rational(p) + r) + r);
  });
}

TEST_CASE("a direct exchange hides behind the rank's own part: max(G, (P - 1) G/P + R)") {
  // All messages of a rank are under way at once; they have come when the own part is done, or
  // it waits for them. A reduce-scatter's last message leaves after (P - 1) G/P.
  for_pairs([](const Pair& pair) {
    const auto& [p, g, r] = pair;
    for (const Collective collective :
         {Collective::all_to_all, Collective::all_gather, Collective::reduce_scatter}) {
      const Schedule serial = product(collective, Algorithm::direct, p);
      expect_time(serial, pair, time_of(serial, g, r), g + r);
      expect_time(serial, pair, time_of(overlap(serial), g, r),
                  std::max(g, g * Rational(p - 1, p) + r));
    }
  });
}

TEST_CASE("an all-to-all through one port a rank takes max(G, G/P + R)") {
  // The port sends one message after another, and each part is used while the next one comes. All
  // times are whole numbers, which a double holds exactly.
  for (int p = 2; p <= 8; ++p) {
    for (const int part : {1, 3, 8, 20}) {
      Machine machine = Machine::uniform(p, {}, {.latency = 0, .bandwidth = Ports::unlimited});
      for (std::size_t r = 0; r < static_cast<std::size_t>(p); ++r)
        machine.set_ports(0, r, {.out = 1, .in = 1});
      const Schedule serial = product(Collective::all_to_all, Algorithm::direct, p);
      const double g = part * p, r = static_cast<double>(piece) * (p - 1);
      CHECK(simulate(serial, StageCosts{.forward = g}, machine).makespan() == g + r);
      CHECK(simulate(overlap(serial), StageCosts{.forward = static_cast<double>(part)}, machine)
                .makespan() == std::max(g, part + r));
    }
  }
}

TEST_CASE("in more chunks the ring begins earlier: max(G, G/(PC) + R) over links without latency") {
  for_pairs([](const Pair& pair) {
    const auto& [p, g, r] = pair;
    for (const int chunks : {2, 3, 5}) {
      const Rational parts(p * chunks);
      for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather}) {
        const Schedule serial = product(collective, Algorithm::ring, p, chunks);
        const Rational hop = r / Rational((p - 1) * chunks);
        expect_time(serial, pair, time_of(serial, g, hop, false), g + r);
        expect_time(serial, pair, time_of(overlap(serial), g, hop, false),
                    std::max(g, g / parts + r));
      }
    }
  });
}

TEST_CASE("whatever the algorithm, overlapping costs no time, and saves what its parts allow") {
  for (int p = 2; p <= 8; ++p)
    for (const Collective collective :
         {Collective::reduce_scatter, Collective::all_reduce, Collective::all_gather})
      for (std::size_t a = 0; a < schedule::algorithm_count; ++a) {
        const auto algorithm = static_cast<Algorithm>(a);
        if (!schedule::why_not(collective, algorithm, {.ranks = p}).empty()) continue;
        const Schedule serial =
            with_product(collective, algorithm, {.ranks = p, .bytes = 840 * piece}, 16);
        const Rational together = time_of(overlap(serial), 16, Rational(1, 100));
        CHECK_FALSE(time_of(serial, 16, Rational(1, 100)) < together);
        CHECK_FALSE(together < Rational(16));
      }
}

}  // namespace test_overlap_closed_forms
