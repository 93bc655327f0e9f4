// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Star against ring: 1 / (P - 1) of its time for nothing to send, and the size at which, with one
// port at every rank, they change places.

#include <cstddef>
#include <cstdint>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/rational.hpp"
#include "support/shared_costs.hpp"

namespace test_collective_crossover {

using namespace heddle;
using schedule::Algorithm;
using test::Rational;

namespace {

/// Of an all-reduce of `bytes`, where every rank sends and receives through one port, in `a` units
/// of time a message and one a byte.
Rational time_of(Algorithm algorithm, int p, Bytes bytes, Rational a) {
  Machine machine = Machine::uniform(p, {}, {});
  for (int r = 0; r < p; ++r)
    machine.set_ports(0, static_cast<std::size_t>(r), {.out = 1, .in = 1});
  const test::SharedCosts<Rational> costs{{.latency = a}, machine};
  return simulate(schedule::collective(schedule::Collective::all_reduce, algorithm,
                                       {.ranks = p, .bytes = bytes, .type = Scalar::byte}),
                  costs)
      .makespan();
}

}  // namespace

TEST_CASE("a star takes 1 / (P - 1) of a ring's time where only latency counts") {
  for (int p = 2; p <= 8; ++p) {
    const BasicStageCosts<Rational> costs{.latency = Rational(7, 3)};
    const auto time = [&](Algorithm algorithm) {
      return simulate(schedule::collective(schedule::Collective::all_reduce, algorithm,
                                           {.ranks = p, .bytes = static_cast<Bytes>(8 * p)}),
                      costs)
          .makespan();
    };
    CHECK(time(Algorithm::star) * Rational(p - 1) == time(Algorithm::ring));
  }
}

TEST_CASE("with one port a star wins below m* = a P (P-2) / ((P-1)^2 b) and loses above, exactly") {
  for (std::int64_t p = 3; p <= 8; ++p) {
    for (const std::int64_t k : {2, 3, 40}) {
      const Rational a((p - 1) * (p - 1) * k);
      const auto equal = static_cast<Bytes>(p * (p - 2) * k);  // m*, of whole blocks
      const auto block = static_cast<Bytes>(p);
      const auto difference = [&](Bytes bytes) {
        return time_of(Algorithm::star, static_cast<int>(p), bytes, a) -
               time_of(Algorithm::ring, static_cast<int>(p), bytes, a);
      };
      CHECK(difference(equal) == Rational(0));
      CHECK(difference(equal - block) < Rational(0));
      CHECK(Rational(0) < difference(equal + block));
      CHECK(time_of(Algorithm::star, static_cast<int>(p), equal, a) ==
            Rational(2) * (a + Rational((p - 1) * static_cast<std::int64_t>(equal))));
      CHECK(time_of(Algorithm::ring, static_cast<int>(p), equal, a) ==
            Rational(2 * (p - 1)) * (a + Rational(static_cast<std::int64_t>(equal), p)));
    }
  }
}

}  // namespace test_collective_crossover
