// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_looped_bfs_closed_form {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Rational;

TEST_CASE("looped BFS takes (V max(M,P) + min(M,P) - 1)(F+B)/V and keeps V M activations") {
  BasicTimeline<Rational> timeline;
  for (int p = 2; p <= 32; p = p < 9 ? p + 1 : p + 11) {
    for (const int v : {1, 2, 3}) {
      for (const int m : {1, 2, 3, 5, 8, 13, 16, 31, 32, 33, 40}) {
        const Schedule looped =
            schedule::looped_bfs({.ranks = p, .stages_per_rank = v, .microbatches = m});
        for (const auto& [forward, backward] :
             {std::pair<Rational, Rational>{{2, 7}, {5, 3}}, {{5, 3}, {2, 7}}}) {
          simulate(looped,
                   BasicStageCosts<Rational>{.forward = forward / v, .backward = backward / v},
                   timeline);
          const Rational expected =
              (forward + backward) * Rational(v * std::max(m, p) + std::min(m, p) - 1, v);
          if (!(timeline.makespan() == expected))
            FAIL(looped.name() << ": " << timeline.makespan() << " for " << expected);
        }
        for (const int r : {0, p / 2, p - 1})
          if (schedule::peak(timeline, Rank{r}, role::saved).parts !=
              static_cast<std::uint64_t>(v * m))
            FAIL(looped.name() << " keeps " << schedule::peak(timeline, Rank{r}, role::saved).parts
                               << " on rank " << r);
      }
    }
  }
}

TEST_CASE("looped BFS passes the battery, and one stage per rank is GPipe from behind") {
  constexpr StageSizes sizes{.activation = 24, .saved = 40, .parameters = 16, .type = Scalar::f64};
  for (const int p : {1, 2, 3, 4})
    for (const int v : {1, 2, 3})
      for (const int m : {1, 2, 5})
        test::pipeline_battery(
            schedule::looped_bfs(
                {.ranks = p, .stages_per_rank = v, .microbatches = m, .sizes = sizes}),
            {schedule::looped_bfs(p, v, m), p * v, m, true, 24});
  CHECK(to_string(schedule::looped_bfs(2, 2, 2)) ==
        "0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0\n1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0\n");
}

TEST_CASE("looped BFS refuses counts below one") {
  CHECK_THAT(test::message_of<contract_error>([] { (void)schedule::looped_bfs(2, 0, 4); }),
             ContainsSubstring("heddle::schedule::looped_bfs") &&
                 ContainsSubstring("ranks = 2, stages per rank = 0"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)schedule::looped_bfs(2, 1, 0); }),
             ContainsSubstring("microbatches = 0"));
}

}  // namespace test_looped_bfs_closed_form
