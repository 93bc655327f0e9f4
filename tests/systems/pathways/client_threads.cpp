// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2
// space: its own
// program: its own

// An island on a rank whose system does not start a thread for each client.

#include <atomic>
#include <system_error>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/pathways/island.hpp>

#include "support/complaint.hpp"
#include "support/failing_threads.hpp"
#include "support/world.hpp"

namespace test_client_threads {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::test::message_of;

TEST_CASE("a client without a thread ends the island before a client of its rank begins") {
  for (const int started : {0, 1, 2}) {
    const hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", hd::test::world_size()}});
    hd::systems::Island island(mesh, {.wait = {.idle = hd::Idle::nap, .watchdog = 20}});
    std::atomic<int> begun{0};
    const auto client = [&](hd::systems::IslandClient&) { ++begun; };
    if (hd::test::world_rank() == 0) {
      const hd::test::ThreadLimit limit(started);
      CHECK_THAT(
          message_of<std::system_error>([&] {
            island.serve({{"a", 1, client}, {"b", 1, client}, {"c", 1, client}});
          }),
          ContainsSubstring("heddle::systems::Island::serve: the system does not start enough") &&
              ContainsSubstring(hd::text("expected 3 beside the calling one, got ", started)));
      CHECK(begun == 0);
    } else {
      CHECK_THAT(
          message_of<hd::communication_error>([&] { island.serve(); }),
          ContainsSubstring("rank 0 failed") && ContainsSubstring("does not start enough threads"));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace test_client_threads
