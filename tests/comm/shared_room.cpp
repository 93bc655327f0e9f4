// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// alone: yes

/// @file
/// SharedTransport where a host has little room: what it almost has is refused on all ranks, before
/// MPI is asked. Alone, for other tests take room and give it back.

#include <cstddef>
#include <filesystem>
#include <system_error>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/shared_transport.hpp>

#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_shared_room {

namespace {

using namespace heddle;

TEST_CASE("what a host has, but not with what MPI wants beside it, is refused on all ranks") {
  std::error_code unknown;
  const Bytes room = std::filesystem::space("/dev/shm", unknown).available;
  if (unknown) return;
  // Open MPI 4.1 wants 1.05 times what a window takes; where it has less, one rank hears of it.
  const Bytes each = room / static_cast<Bytes>(test::world_size()) / 100 * 97;
  for (const int domain : {0, 1, 2}) {  // the domains of a host together want as much
    SharedTransport transport(MPI_COMM_WORLD, {.domain = domain});
    CHECK_THAT(test::message_of<out_of_memory>([&] { static_cast<void>(transport.share(each)); }),
               Catch::Matchers::ContainsSubstring("the host cannot provide so much shared memory"));
    const SharedBlocks after = transport.share(8);
    CHECK(*after.of[+transport.rank()] == std::byte{0});
  }
}

}  // namespace

}  // namespace test_shared_room
