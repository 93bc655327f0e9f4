// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/rational.hpp"

namespace test_ring_closed_form {

using namespace heddle;
using test::Rational;

namespace {

/// max(2 (P-1)(a + x) + (C-1) x, 2 (P-1) m / (P bw) + a) with x = m / (P C bw).
Rational ring_time(int p, int c, Rational latency, Rational x) {
  const Rational hops = Rational(2 * (p - 1));
  return std::max(hops * (latency + x) + Rational(c - 1) * x, hops * Rational(c) * x + latency);
}

/// The ring of `p` ranks and `c` chunks with 8 bytes a piece, its scratch folded to `slots`.
Schedule ring_with_scratch(int p, int c, std::uint32_t slots) {
  Schedule ring =
      schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                           {.ranks = p, .bytes = static_cast<Bytes>(8 * p * c), .chunks = c});
  for (std::size_t b = 0; b < ring.buffers().size(); ++b)
    if (ring[ring.buffers()[b].label] == "scratch") ring = schedule::fold(ring, BufferId{b}, slots);
  return ring;
}

}  // namespace

TEST_CASE("a ring all-reduce takes the time of its formula, exactly") {
  for (int p = 2; p <= 8; ++p) {
    for (int c = 1; c <= 5; ++c) {
      for (const auto& [latency, per_byte] : {std::pair<Rational, Rational>{0, 1},
                                              {1, {1, 8}},
                                              {{7, 3}, {1, 24}},
                                              {{2, 5}, {5, 3}},
                                              {30, {1, 8}}}) {
        const Schedule ring =
            schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                                 {.ranks = p, .bytes = static_cast<Bytes>(8 * p * c), .chunks = c});
        const BasicStageCosts<Rational> costs{.latency = latency, .per_byte = per_byte};
        const Rational found = simulate(ring, costs).makespan();
        const Rational expected = ring_time(p, c, latency, per_byte * 8);
        if (!(found == expected))
          FAIL(ring.name() << ", a=" << latency << ": " << found << ", expected " << expected);
      }
    }
  }
}

TEST_CASE("a ring all-reduce sends 2(P-1)C messages per channel, whose bytes add up exactly") {
  for (int p = 2; p <= 8; ++p) {
    for (int c = 1; c <= 5; ++c) {
      for (const Bytes elements : {0, 1, 7, 64, 1009}) {
        const Schedule ring = schedule::collective(
            schedule::Collective::all_reduce, schedule::Algorithm::ring,
            {.ranks = p, .bytes = 8 * elements, .type = Scalar::f64, .chunks = c});
        std::vector<int> messages(static_cast<std::size_t>(p), 0);
        std::vector<Bytes> bytes(static_cast<std::size_t>(p), 0);
        for (std::size_t i = 0; i < ring.size(); ++i) {
          const ActionId id{i};
          if (ring[id].kind != Kind::move) continue;
          const Queue& queue = ring[ring[id].queue];
          REQUIRE(+queue.to == (+queue.from + 1) % static_cast<std::size_t>(p));
          ++messages[+queue.from];
          bytes[+queue.from] += ring.bytes(ring.uses(id)[0]);
        }
        // Rank r sends every segment twice, but for its own while reducing (it is the last to
        // arrive there) and segment r + 1 while gathering.
        const auto segment = [&](std::size_t s) {
          const std::uint32_t first = static_cast<std::uint32_t>(s % static_cast<std::size_t>(p)) *
                                      static_cast<std::uint32_t>(c);
          return ring.bytes(schedule::read(BufferId{0}, first, static_cast<std::uint32_t>(c)));
        };
        const Bytes pieces = static_cast<Bytes>(p * c);
        for (std::size_t r = 0; r < messages.size(); ++r) {
          if (elements >= pieces) REQUIRE(messages[r] == 2 * (p - 1) * c);  // none of no bytes
          if (elements == 0) REQUIRE(messages[r] == 0);
          REQUIRE(bytes[r] == 2 * 8 * elements - segment(r) - segment(r + 1));
        }
      }
    }
  }
}

TEST_CASE("a rank of the ring sends before it adds, so that ranks add at the same time") {
  for (int p = 2; p <= 5; ++p) {
    for (int c = 1; c <= 3; ++c) {
      const Schedule ring =
          schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                               {.ranks = p, .bytes = static_cast<Bytes>(8 * p * c), .chunks = c});
      std::vector<int> sent(static_cast<std::size_t>(p), 0);
      std::vector<int> added(static_cast<std::size_t>(p), 0);
      for (const Action& action : ring.actions()) {
        const std::size_t rank = +ring[action.queue].from;
        if (action.kind == Kind::move) ++sent[rank];
        if (action.kind == Kind::combine) CHECK(sent[rank] == ++added[rank]);
      }
      CHECK(added == std::vector<int>(static_cast<std::size_t>(p), (p - 1) * c));
    }
  }
}

TEST_CASE("a rendezvous ring shows its bounded scratch: one slot 132, two or more 99") {
  // a = 3 and x = 4. With one slot the 12 reducing messages of a channel cannot overlap: the last
  // starts at 11 (a + x), the 12 gathering ones follow it back to back: 77 + 4 + 48 + 3 = 132.
  const StageCosts costs{.latency = 3, .per_byte = 0.5};
  CHECK(simulate(ring_with_scratch(4, 4, 1), costs, Sending::rendezvous).makespan() == 132);
  for (const std::uint32_t slots : {2, 3, 4, 8, 12})
    CHECK(simulate(ring_with_scratch(4, 4, slots), costs, Sending::rendezvous).makespan() == 99);
  CHECK(simulate(ring_with_scratch(4, 4, 1), costs, Sending::eager).makespan() == 99);
}

TEST_CASE("a ring of one rank does nothing, and no chunks are refused") {
  CHECK(schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                             {.ranks = 1, .bytes = 800})
            .empty());
  CHECK_THROWS_AS(schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                                       {.ranks = 2, .bytes = 8, .chunks = 0}),
                  contract_error);
  CHECK_THROWS_AS(schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                                       {.ranks = 0, .bytes = 8}),
                  contract_error);
}

}  // namespace test_ring_closed_form
