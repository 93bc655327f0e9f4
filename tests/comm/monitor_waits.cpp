// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 4
// alone: yes

// A Monitor names the fault of executed steps within three looks: four MPI ranks wait instead of
// computing, over shaped links.

#include <cstdint>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/core/random.hpp>

#include "support/cases.hpp"
#include "support/monitored_waits.hpp"

namespace test_monitor_waits {

TEST_CASE("a monitor of steps on MPI ranks names each class of faults within three looks") {
  using namespace heddle;
  MpiTransport transport(MPI_COMM_WORLD);
  const std::uint64_t runs = test::cases(1, 20);
  for (std::uint64_t run = 0; run < runs; ++run)
    for (const auto& fault : monitored::executed_faults(100 + run, transport.size())) {
      const int looks = monitored::looks_until_named(transport, fault);  // the same on all ranks
      if (looks == monitored::no_result)
        SKIP("other programs disturb too many steps: no result from run " << run << " on");
      INFO("run " << run << ", " << (fault ? to_string(fault->syndrome) : "no fault"));
      CHECK(looks >= 1);
    }
}

}  // namespace test_monitor_waits
