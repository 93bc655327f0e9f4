// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The dispatch of a chain of functions, sequential and parallel, against closed forms that hold
// exactly on rational times.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core/error.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/systems/pathways/dispatch_costs.hpp>
#include <heddle/systems/pathways/gang_dispatch.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_gang_dispatch {

using heddle::systems::Dispatch;
using heddle::test::Rational;
namespace hd = heddle;

Rational makespan(int functions, int hosts, Dispatch dispatch, Rational h, Rational p, Rational x) {
  const hd::Schedule schedule = hd::systems::gang_dispatch({functions, hosts, dispatch});
  return hd::simulate(schedule, hd::systems::BasicDispatchCosts<Rational>{h, p, x}).makespan();
}

TEST_CASE("a chain with a host for every function takes the times of the closed forms") {
  for (const int n : {1, 2, 3, 7, 128}) {
    for (const Rational h : {Rational(1), Rational(0), Rational(7, 3)}) {
      for (const Rational p : {Rational(1, 5), Rational(0), Rational(2)}) {
        for (const Rational x : {Rational(1, 10), Rational(1, 5), Rational(10), Rational(0)}) {
          CHECK(makespan(n, n, hd::systems::Dispatch::sequential, h, p, x) ==
                Rational(n) * (h + p + x));
          CHECK(makespan(n, n, hd::systems::Dispatch::parallel, h, p, x) ==
                (x < p ? h + Rational(n) * p + x : h + p + Rational(n) * x));
        }
      }
    }
  }
}

TEST_CASE("the published case: 6.23 for short functions, 1.119 for long ones") {
  const Rational h = 1, p(1, 5);
  const auto ratio = [&](Rational x) {
    return makespan(128, 128, hd::systems::Dispatch::sequential, h, p, x) /
           makespan(128, 128, hd::systems::Dispatch::parallel, h, p, x);
  };
  CHECK(makespan(128, 128, hd::systems::Dispatch::sequential, h, p, Rational(1, 10)) ==
        Rational(1664, 10));
  CHECK(makespan(128, 128, hd::systems::Dispatch::parallel, h, p, Rational(1, 10)) ==
        Rational(267, 10));
  CHECK(makespan(128, 128, hd::systems::Dispatch::sequential, h, p, 10) == Rational(14336, 10));
  CHECK(makespan(128, 128, hd::systems::Dispatch::parallel, h, p, 10) == Rational(12812, 10));
  CHECK(Rational(4) < ratio(Rational(1, 10)));
  CHECK(ratio(10) < Rational(115, 100));
}

/// The longest path by a recurrence of its own: a host prepares its functions one after another.
Rational by_recurrence(int functions, int hosts, Dispatch dispatch, Rational h, Rational p,
                       Rational x) {
  std::vector<Rational> host(static_cast<std::size_t>(hosts));
  Rational enqueued = 0, computed = 0;
  for (int k = 0; k < functions; ++k) {
    Rational& free = host[static_cast<std::size_t>(k % hosts)];
    if (dispatch == hd::systems::Dispatch::sequential) free = std::max(free, computed);
    free = free + h;
    enqueued = std::max(free, enqueued) + p;
    computed = std::max(enqueued, computed) + x;
  }
  return computed;
}

TEST_CASE("hosts with several functions prepare them one after another") {
  for (const int n : {1, 4, 13})
    for (const int hosts : {1, 2, 3, 5, 20})
      for (const Dispatch dispatch :
           {hd::systems::Dispatch::sequential, hd::systems::Dispatch::parallel})
        for (const Rational x : {Rational(1, 10), Rational(3, 2), Rational(10)})
          CHECK(makespan(n, hosts, dispatch, 1, Rational(1, 5), x) ==
                by_recurrence(n, hosts, dispatch, 1, Rational(1, 5), x));
}

TEST_CASE("a dispatched chain is a schedule like any other") {
  for (const Dispatch dispatch :
       {hd::systems::Dispatch::sequential, hd::systems::Dispatch::parallel}) {
    hd::test::schedule_battery(hd::systems::gang_dispatch({1, 1, dispatch}));
    hd::test::schedule_battery(hd::systems::gang_dispatch({7, 3, dispatch}));
  }
  using heddle::test::message_of;
  CHECK(message_of<hd::contract_error>([] {
          (void)hd::systems::gang_dispatch({.functions = 0});
        }).find("at least one function") != std::string::npos);
  CHECK(message_of<hd::contract_error>([] {
          const hd::systems::DispatchCosts costs{.compute = -1};
          (void)hd::simulate(hd::systems::gang_dispatch({}), costs);
        }).find("compute") != std::string::npos);
}

}  // namespace test_gang_dispatch
