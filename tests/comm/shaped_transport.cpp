// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// ShapedTransport over MPI: the batteries, which threads pass in tests/execute.

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/mpi_transport.hpp>
#include <heddle/execute/shaped_transport.hpp>

#include "support/transport_battery.hpp"
#include "support/world.hpp"

namespace test_shaped_transport {

namespace {

using heddle::Link;
using heddle::MpiTransport;
using heddle::Ports;
using heddle::Rank;
using heddle::Seconds;
using Shaped = heddle::ShapedTransport<MpiTransport>;

TEST_CASE("the battery of transports, shaped") {
  MpiTransport inner(MPI_COMM_WORLD);
  for (const Link link : {Link{}, Link{.latency = 5e-5, .bandwidth = 1e9}}) {
    Shaped transport(inner, {.link = [&](Rank, Rank, Seconds) { return link; }});
    REQUIRE_NOTHROW(heddle::test::transport_battery(transport, 1'000'003));
  }
}

TEST_CASE("the battery of transports, shaped with ports") {
  MpiTransport inner(MPI_COMM_WORLD);
  const auto link = [](Rank, Rank, Seconds) { return Link{5e-5, 1e9}; };
  const auto ports = [](Rank, Seconds) { return Ports{1e9, 1e9}; };
  Shaped transport(inner, {.link = link, .ports = ports});
  REQUIRE_NOTHROW(heddle::test::transport_battery(transport, 1'000'003));
}

TEST_CASE("the battery of aborts, shaped, whichever fails") {
  for (int failing = 0; failing < heddle::test::world_size(); ++failing) {
    MpiTransport inner(MPI_COMM_WORLD);
    Shaped transport(inner, {.link = [](Rank, Rank, Seconds) { return Link{86400, 1}; }});
    REQUIRE_NOTHROW(heddle::test::transport_abort_battery(transport, Rank{failing}));
  }
}

}  // namespace

}  // namespace test_shaped_transport
