// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// 1F1B with vocabulary parallelism: closed forms of the step and of the live activations, the step
// of a pipeline whose last rank has the whole output layer, and the battery.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_vocabulary_parallel {

using namespace heddle;
using test::Rational;

namespace {

/// F and B of the stages below `chain`, S and T of the others.
struct Prices {
  using Time = Rational;
  std::size_t chain;
  Rational f, b, s, t;

  [[nodiscard]] Rational time(const Schedule& schedule, ActionId id) const {
    const bool share = +schedule[id].stage >= chain;
    switch (schedule[id].kind) {
      case Kind::forward: return share ? s : f;
      case Kind::backward: return share ? t : b;
      default: return 0;
    }
  }
  [[nodiscard]] Transfer<Rational> transfer(const Schedule&, ActionId) const { return {}; }
};

Rational step(int p, int m, Rational f, Rational b, Rational s, Rational t) {
  const Schedule schedule = schedule::vocabulary_parallel({.ranks = p, .microbatches = m});
  return simulate(schedule, Prices{static_cast<std::size_t>(p), f, b, s, t}).makespan();
}

}  // namespace

TEST_CASE("with vocabulary parallelism, a microbatch more takes F + B + S + T, if B = 2F") {
  for (int p = 1; p <= 9; ++p)
    for (const auto& [f, s, t] : {std::tuple<Rational, Rational, Rational>{1, 0, 0},
                                  {1, {1, 4}, {1, 4}},
                                  {2, 1, 2},
                                  {1, 1, 1}})
      CHECK(step(p, 4 * p + 1, f, f + f, s, t) ==
            step(p, 4 * p, f, f + f, s, t) + f + f + f + s + t);
  for (int p = 3; p <= 12; ++p)
    for (const int m : {2 * p, 2 * p + 1, 4 * p}) CHECK(step(p, m, 1, 2, 1, 1) == 5 * m + 3 * p);
}

TEST_CASE("vocabulary parallelism keeps 2 activations more than 1F1B") {
  for (int p = 1; p <= 9; ++p)
    for (const int m : {1, 2, p, 2 * p, 3 * p + 1}) {
      std::vector<std::int64_t> kept(static_cast<std::size_t>(2 * p), 0);
      std::fill_n(kept.begin(), p, 1);
      const auto live = schedule::live_activations(schedule::vocabulary_parallel(p, m), kept);
      for (int r = 0; r < p; ++r)
        CHECK(live[static_cast<std::size_t>(r)] == std::min(m, p + 2 - r));
    }
}

TEST_CASE("an output layer on all ranks is faster than the same layer on the last one") {
  // The output layer takes 8 times 1/2 forward and as much back, so that the last rank takes 11.
  constexpr int p = 8, m = 32;
  const Rational divided = step(p, m, 1, 2, {1, 2}, {1, 2});
  CHECK(divided == Rational(305, 2));
  struct LastIsSlow : Prices {
    Rational time(const Schedule& schedule, ActionId id) const {
      const Rational time = Prices::time(schedule, id);
      return +schedule[id].stage + 1 == chain && schedule[id].kind <= Kind::backward ? time + 4
                                                                                     : time;
    }
  };
  const Schedule plain = schedule::one_f_one_b({.ranks = p, .microbatches = m});
  CHECK(simulate(plain, LastIsSlow{{p, 1, 2, 0, 0}}).makespan() == 11 * m + 3 * (p - 1));
}

TEST_CASE("1F1B with vocabulary parallelism passes the battery, which runs it on threads") {
  for (const int p : {1, 2, 3, 4, 6})
    for (const int m : {1, 2, 5, 9}) {
      const Orders orders = schedule::vocabulary_parallel(p, m);
      CHECK(!schedule::first_fault(orders));
      test::schedule_battery(weave(orders));
    }
  CHECK_THAT(test::message_of<contract_error>([] { (void)schedule::vocabulary_parallel(0, 4); }),
             Catch::Matchers::ContainsSubstring("heddle::schedule::vocabulary_parallel"));
}

}  // namespace test_vocabulary_parallel
