// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 4

// Tokens that walk through experts over MPI ranks: the bits of a serial walk, and the rows sent.

#include <array>
#include <cstdint>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/systems/exflow/expert_walk.hpp>

#include "support/expert_routes.hpp"
#include "support/expert_walks.hpp"

namespace test_expert_walk {

using namespace heddle;

TEST_CASE("over MPI ranks tokens compute the bits of a serial walk") {
  MpiTransport transport(MPI_COMM_WORLD);
  const int ranks = transport.size();
  const auto [trace, planted] = test::planted_routes(200, 8, 24, ranks, 0.7, 4);
  for (const test::ExpertCase& tokens :
       {test::ExpertCase{planted, trace, 200, 33},
        test::ExpertCase{systems::contiguous_experts(8, 24, ranks), {}, 200, 33}}) {
    const test::ExpertCase::Expected expected = tokens.serial();
    for (const systems::AfterExpert after :
         {systems::AfterExpert::comes_home, systems::AfterExpert::stays}) {
      std::vector<double> rows;
      const systems::ExpertTraffic traffic = tokens.walk(transport, after, rows);
      CHECK(tokens.is_right(expected, rows, transport.rank(), after));
      std::uint64_t sent = 0;
      for (const auto& other : all_gather<Bytes>(transport, std::array{traffic.rows}))
        sent += other[0] / (33 * sizeof(double));
      CHECK(sent == (after == systems::AfterExpert::stays ? expected.stays : expected.comes_home));
    }
  }
}

}  // namespace test_expert_walk
