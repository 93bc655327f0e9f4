// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 4
// alone: yes

// A farm over MPI ranks that wait instead of computing takes as long as its decider says.

#include <array>
#include <cstdint>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/pattern/rank_farm.hpp>

#include "support/farm_waits.hpp"
#include "support/on_all_ranks.hpp"
#include "support/rounds.hpp"

namespace test_farm_waits {

using namespace heddle;

TEST_CASE("a farm on 3 + 1 MPI ranks takes at most 1.05 times as long as its decider says") {
  MpiTransport transport(MPI_COMM_WORLD);
  const bool first = transport.rank() == Rank{0};
  std::array forms{test::Form{
      "a farm on 3 + 1 ranks over its decider", [&] {
        test::FarmWaits waits{60};
        MPI_Barrier(MPI_COMM_WORLD);
        pattern::farm(
            transport, {}, [&] { return waits.source(); }, test::FarmWaits::work,
            [&](std::int64_t, pattern::FarmOutcome<Seconds>&& outcome) { waits.sink(outcome); });
        double ratio = 0;
        if (first) {
          REQUIRE(waits.times.size() == 60);
          ratio = waits.over_forecast(3);
        }
        MPI_Bcast(&ratio, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        return ratio;
      }}};
  const test::Spread& ratio = forms[0].spread;
  if (!test::measure_in_rounds(forms, [&] { return ratio.median() <= 1.05; },
                               {.print = first, .all = test::on_all_ranks}))
    SKIP(test::no_result);
  CHECK(ratio.least() > 0.9);  // three ranks work at once, each on one item
  CHECK(ratio.median() <= 1.05);
}

}  // namespace test_farm_waits
