// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// timeout: 240

/// @file
/// measure_machine: the same plausible numbers on every rank, and an end when a rank does not take
/// part. How near they come to the machine cannot be told on one that is busy.

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <thread>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/measure.hpp>
#include <heddle/comm/mpi_transport.hpp>
#include <heddle/execute/thread_transport.hpp>

namespace test_measure {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using heddle::Rank;

const heddle::MeasureOptions quick{.short_rounds = 20, .long_rounds = 3};

/// Numbers that a local machine cannot miss by more than an interruption.
void plausible(const heddle::Machine& machine, int ranks) {
  const heddle::Link& link = machine.link(Rank{0}, Rank{ranks - 1});
  CHECK(machine.ranks() == ranks);
  if (ranks == 1) {
    CHECK(link.latency == 0);
    CHECK(std::isinf(link.bandwidth));
    return;
  }
  CHECK(link.latency > 1e-9);
  CHECK(link.latency < 1);
  CHECK(link.bandwidth > 1e6);
  CHECK(link.bandwidth < 1e13);
}

TEST_CASE("every rank gets the same machine") {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  heddle::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", size}});
  for (const int pairs : {1, 8}) {
    heddle::MeasureOptions options = quick;
    options.pairs = pairs;
    const heddle::Machine machine = heddle::measure_machine(mesh, options);
    plausible(machine, size);
    const heddle::Link link = machine.link(Rank{0}, Rank{0});
    std::array<double, 2> first{link.latency, link.bandwidth};
    MPI_Bcast(first.data(), 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    CHECK(first[0] == link.latency);
    CHECK(first[1] == link.bandwidth);
  }
}

TEST_CASE("it measures any transport") {
  for (const int ranks : {1, 2, 3}) {
    std::array<heddle::Link, 3> links{};
    heddle::run_threads(ranks, [&](heddle::ThreadTransport& transport) {
      const heddle::Machine machine = heddle::measure_machine(transport, quick);
      links[+transport.rank()] = machine.link(Rank{0}, Rank{0});
    });
    plausible(heddle::Machine::uniform(ranks, {}, links[0]), ranks);
    for (std::size_t rank = 1; rank < static_cast<std::size_t>(ranks); ++rank) {
      CHECK(links[rank].latency == links[0].latency);
      CHECK(links[rank].bandwidth == links[0].bandwidth);
    }
  }
}

TEST_CASE("no rounds are no measurement") {
  heddle::MpiTransport transport(MPI_COMM_WORLD);
  CHECK_THROWS_MATCHES(
      heddle::measure_machine(transport, {.short_rounds = 0}), heddle::contract_error,
      MessageMatches(ContainsSubstring("numbers of rounds and pairs must lie in 1 .. 1000000") &&
                     ContainsSubstring("short_rounds = 0")));
}

TEST_CASE("a rank that does not take part is named, and nobody hangs") {
  heddle::MpiTransport transport(MPI_COMM_WORLD);
  if (transport.size() == 1) return;
  heddle::MeasureOptions options = quick;
  options.wait.watchdog = 0.3;
  if (transport.rank() == Rank{1}) {
    while (!transport.aborted()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK_THAT(transport.aborted()->reason, ContainsSubstring("watchdog after 0.3 s"));
  } else {
    CHECK_THROWS_AS(heddle::measure_machine(transport, options), heddle::communication_error);
  }
}

}  // namespace

}  // namespace test_measure
