// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 3

// Training by local steps over MPI ranks: equal to a serial run of all ranks; and how much of a
// sum is hidden.

#include <cstddef>
#include <optional>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/systems/co2/local_updates.hpp>

#include "support/local_problems.hpp"
#include "support/on_all_ranks.hpp"
#include "support/rounds.hpp"

namespace test_local_updates {

using namespace heddle;
using test::Vector;

TEST_CASE("MPI ranks that run local steps end as a serial run of all of them") {
  MpiTransport transport(MPI_COMM_WORLD);
  for (const int delay : {0, 1})
    for (const std::size_t hidden : {0, 4}) {
      const test::LocalProblem problem(transport.size(), hidden, 0.1);
      const Vector found = problem.run(transport, 6, delay, 10, {});
      CHECK(test::largest_difference(found, problem.serial(6, delay, 10, {})) < 1e-13);
      for (const auto& other : all_gather<double>(transport, found)) CHECK(other == found);
    }
}

TEST_CASE("MPI ranks hide a sum behind their local steps") {
  MpiTransport transport(MPI_COMM_WORLD);
  const std::optional<double> overlap = test::measured_overlap(
      [&](int delay, double latency) { return test::seconds_of_round(transport, delay, latency); },
      0.9, {.print = transport.rank() == Rank{0}, .all = test::on_all_ranks});
  if (!overlap) SKIP(test::no_result);
  CHECK(*overlap >= 0.9);
}

}  // namespace test_local_updates
