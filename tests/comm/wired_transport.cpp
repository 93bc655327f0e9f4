// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// WiredTransport over MPI, with MPI as the wire: the batteries, which threads pass in
/// tests/execute.

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/execute/wired_transport.hpp>

#include "support/transport_battery.hpp"
#include "support/transport_wire.hpp"
#include "support/world.hpp"

namespace test_wired_transport {

namespace {

using heddle::MpiTransport;
using heddle::Rank;
using MpiWire = heddle::test::TransportWire<MpiTransport>;

TEST_CASE("the battery of transports, wired") {
  MpiTransport inner(MPI_COMM_WORLD);
  MpiTransport bytes(MPI_COMM_WORLD);
  MpiWire wire(bytes);
  heddle::WiredTransport transport(inner, wire);
  REQUIRE_NOTHROW(heddle::test::transport_battery(transport, 1'000'003));
}

TEST_CASE("the battery of aborts, wired, whichever fails") {
  for (int failing = 0; failing < heddle::test::world_size(); ++failing) {
    MpiTransport inner(MPI_COMM_WORLD);
    MpiTransport bytes(MPI_COMM_WORLD);
    MpiWire wire(bytes);
    heddle::WiredTransport transport(inner, wire);
    REQUIRE_NOTHROW(heddle::test::transport_abort_battery(transport, Rank{failing}));
  }
}

}  // namespace

}  // namespace test_wired_transport
