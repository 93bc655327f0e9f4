// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// alone: yes

// Training by local steps over threads: equal to a serial run of all ranks; plain data parallelism
// if the only local step is averaged at once; the loss of data parallelism with a late average; an
// outer update that diverges without penalty and clip; and how much of a sum is hidden.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/error.hpp>
#include <heddle/systems/co2/local_updates.hpp>

#include "support/complaint.hpp"
#include "support/local_problems.hpp"
#include "support/rounds.hpp"

namespace test_local_updates {

using namespace heddle;
using test::LocalProblem;
using test::Vector;

constexpr systems::OuterUpdate unbounded{.gap_penalty = false, .clip = 1e300};

TEST_CASE("ranks that run local steps end as a serial run of all of them") {
  for (const int ranks : {1, 2, 3, 4})
    for (const int steps : {1, 2, 7})
      for (const int delay : {0, 1})
        for (const systems::OuterUpdate& outer :
             {systems::OuterUpdate{}, unbounded, systems::plain_average,
              systems::OuterUpdate{.momentum = 0.3, .rate = 0.7, .clip = 0.01}}) {
          const LocalProblem problem(ranks, ranks == 2 ? 3 : 0, 0.05, 7);
          const Vector expected = problem.serial(steps, delay, 5, outer);
          CAPTURE(ranks, steps, delay, outer.momentum);
          CHECK(test::largest_difference(expected, problem.start()) > 1e-3);
          const std::vector<Vector> found = problem.run_on_threads(steps, delay, 5, outer);
          for (const Vector& x : found) {
            CHECK(test::largest_difference(x, expected) < 1e-13);
            CHECK(x == found.front());
          }
        }
  const LocalProblem problem(4, 0, 0.05);
  CHECK(
      test::largest_difference(problem.run_on_threads(5, 1, 4, {}, schedule::Algorithm::direct)[3],
                               problem.serial(5, 1, 4, {})) < 1e-13);
}

TEST_CASE("one local step, averaged in time, is data parallelism") {
  for (const std::size_t hidden : {0, 3}) {
    const LocalProblem problem(3, hidden, 0.05);
    CHECK(test::largest_difference(problem.run_on_threads(1, 0, 20, systems::plain_average)[0],
                                   problem.data_parallel(20)) < 1e-13);
  }
}

TEST_CASE("with a late average the loss is within 3% of data parallelism") {
  for (const std::size_t hidden : {0, 4})
    for (const int steps : {4, 12}) {
      const LocalProblem problem(4, hidden, hidden == 0 ? 0.05 : 0.1);
      const int all = hidden == 0 ? 240 : 1200;
      const double loss = problem.loss(problem.run_on_threads(steps, 1, all / steps, {})[0]);
      CAPTURE(hidden, steps);
      CHECK(loss <= 1.03 * problem.loss(problem.data_parallel(all)));
      CHECK(loss < 0.2 * problem.loss(problem.start()));
    }
}

TEST_CASE("gap penalty and clip keep an outer update from diverging") {
  const LocalProblem problem(4, 4, 0.1);
  const double start = problem.loss(problem.start());
  systems::OuterUpdate outer = unbounded;
  outer.rate = 2;
  CHECK_FALSE(problem.loss(problem.run_on_threads(12, 1, 60, outer)[0]) < 1e6 * start);
  CHECK(problem.loss(problem.run_on_threads(12, 1, 60, {.rate = 2})[0]) < 0.2 * start);
  outer.gap_penalty = true;  // the penalty alone
  CHECK(problem.loss(problem.run_on_threads(12, 1, 60, outer)[0]) < 0.2 * start);
}

TEST_CASE("a sum that is shorter than the local steps is hidden") {
  const std::optional<double> overlap =
      test::measured_overlap(test::seconds_of_round_on_threads, 0.9);
  if (!overlap) SKIP(test::no_result);
  CHECK(*overlap >= 0.9);
}

TEST_CASE("wrong outer updates and schedules for other parameters are named") {
  using Catch::Matchers::ContainsSubstring;
  const auto step = [](std::span<double>, std::int64_t) {};
  CHECK_THAT(test::message_of<contract_error>([&] {
               const systems::LocalUpdates<double> model({1, 2}, step, {.momentum = 1});
             }),
             ContainsSubstring("momentum = 1"));
  CHECK_THAT(test::message_of<contract_error>([&] {
               run_threads(1, [&](ThreadTransport& transport) {
                 systems::LocalUpdates<double> model({1, 2}, step);
                 const Runner train(model, systems::local_steps({.bytes = 24}), transport);
               });
             }),
             ContainsSubstring("24 bytes") && ContainsSubstring("LocalStepsOptions::bytes"));
}

}  // namespace test_local_updates
