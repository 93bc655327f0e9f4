// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// timeout: 240

/// @file
/// measure_links: every pair meets once, links that differ come out different and in their
/// direction, and an end when a rank does not take part.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/measure.hpp>
#include <heddle/comm/measure_links.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/mailbox.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/execute/thread_transport.hpp>

#include "support/world.hpp"

namespace test_measure_links {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using heddle::Link;
using heddle::Machine;
using heddle::Rank;

const heddle::LinkOptions quick{.budget = 0.01, .largest = 1 << 16, .bursts = 1};

TEST_CASE("in the rounds of a tournament each meets every other once") {
  for (int ranks = 2; ranks <= 17; ++ranks) {
    std::set<std::pair<int, int>> met;
    for (int round = 0; round < ranks - 1 + ranks % 2; ++round) {
      for (int rank = 0; rank < ranks; ++rank) {
        const int other = heddle::impl::opponent(ranks, rank, round);
        INFO(ranks << " ranks, round " << round << ", rank " << rank << " and " << other);
        REQUIRE(heddle::impl::opponent(ranks, other, round) == rank);
        if (other != rank) CHECK(met.emplace(rank, other).second);
      }
    }
    CHECK(met.size() == static_cast<std::size_t>(ranks * (ranks - 1)));
  }
}

TEST_CASE("every rank gets the same links") {
  heddle::DeviceMesh mesh(MPI_COMM_WORLD, {{"all", [] {
                                              int size = 0;
                                              MPI_Comm_size(MPI_COMM_WORLD, &size);
                                              return size;
                                            }()}});
  const Machine machine = heddle::measure_links(mesh, quick);
  REQUIRE(machine.ranks() == mesh.size());
  const auto ranks = static_cast<std::size_t>(machine.ranks());
  for (std::size_t from = 0; from < ranks; ++from) {
    double fastest = 0;
    for (std::size_t to = 0; to < ranks; ++to) {
      const Link& link = machine.link(Rank{from}, Rank{to});
      std::array<double, 2> first{link.latency, link.bandwidth};
      MPI_Bcast(first.data(), 2, MPI_DOUBLE, 0, MPI_COMM_WORLD);
      CHECK(first == std::array{link.latency, link.bandwidth});
      if (from == to) {
        CHECK(link.latency == 0);
        CHECK(std::isinf(link.bandwidth));
      } else {
        CHECK(link.latency > 1e-9);
        CHECK(link.latency < 1);
        CHECK(link.bandwidth > 1e4);
        CHECK(link.bandwidth < 1e13);
        fastest = std::max(fastest, link.bandwidth);
      }
    }
    if (ranks > 1) CHECK(machine.ports(0, from).out == fastest);
  }
}

TEST_CASE("links that differ come out so, in both directions") {
  if (heddle::test::world_size() > 1) return;  // its ranks are threads
  // Rank 1 answers late, and what rank 2 sends is slow: much slower than interruptions are long.
  constexpr heddle::Seconds late = 20e-3;
  constexpr double slow = 2e5;
  constexpr int ranks = 3;
  std::vector<Machine> all(ranks, Machine::uniform(ranks, {}, {}));
  heddle::run_threads(ranks, [&](heddle::ThreadTransport& inner) {
    heddle::ShapedTransport transport(inner,
                                      {.link = [&](Rank from, Rank to, heddle::Seconds) -> Link {
                                        Link link;
                                        if (from == Rank{1} || to == Rank{1}) link.latency = late;
                                        if (from == Rank{2}) link.bandwidth = slow;
                                        return link;
                                      }});
    all[+transport.rank()] =
        heddle::measure_links(transport, {.budget = 0.01, .piece = 8 << 10, .largest = 32 << 10});
  });
  const auto link = [&](int from, int to) { return all[0].link(Rank{from}, Rank{to}); };
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 0}, {1, 2}, {2, 1}}) {
    CHECK(link(from, to).latency >= 0.99 * late);
    // A busy machine is slow for all of them alike.
    CHECK(link(from, to).latency > link(0, 2).latency);
  }
  for (const int to : {0, 1}) {
    CHECK(link(2, to).bandwidth < 1.2 * slow);
    CHECK(link(to, 2).bandwidth > 2 * link(2, to).bandwidth);
  }
}

TEST_CASE("options that measure nothing are refused") {
  heddle::MpiTransport transport(MPI_COMM_WORLD);
  CHECK_THROWS_MATCHES(heddle::measure_links(transport, {.bursts = 0}), heddle::contract_error,
                       MessageMatches(ContainsSubstring("LinkOptions needs at least one burst") &&
                                      ContainsSubstring("bursts = 0")));
}

TEST_CASE("arguments that are wrong on one rank are told to the others, by every door") {
  if (heddle::test::world_size() > 1) return;  // its ranks are threads
  using Call = std::function<void(heddle::ThreadTransport&, bool wrong)>;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<const char*, Call> doors[] = {
      {"bursts = 0",
       [](auto& transport, bool wrong) {
         static_cast<void>(heddle::measure_links(transport, {.bursts = wrong ? 0 : 1}));
       }},
      {"5 names for 3 ranks",
       [](auto& transport, bool wrong) {
         static_cast<void>(heddle::measure_links(
             transport, {.names = std::vector<std::string>(wrong ? 5 : 3, "name")}));
       }},
      {"measure_links: the watchdog",
       [](auto& transport, bool wrong) {
         static_cast<void>(
             heddle::measure_links(transport, {.wait = {.watchdog = wrong ? nan : 60}}));
       }},
      {"pairs = 0",
       [](auto& transport, bool wrong) {
         static_cast<void>(heddle::measure_machine(transport, {.pairs = wrong ? 0 : 1}));
       }},
      {"measure_machine: the watchdog",
       [](auto& transport, bool wrong) {
         static_cast<void>(
             heddle::measure_machine(transport, {.wait = {.watchdog = wrong ? nan : 60}}));
       }},
      {"all_gather: the watchdog",
       [](auto& transport, bool wrong) {
         static_cast<void>(heddle::all_gather(transport, {}, {.watchdog = wrong ? nan : 60}));
       }},
      {"all_to_all: the watchdog",
       [](auto& transport, bool wrong) {
         static_cast<void>(heddle::all_to_all(transport, std::vector<std::vector<std::byte>>(3),
                                              {.watchdog = wrong ? nan : 60}));
       }},
      {"2 blocks, 3 ranks",
       [](auto& transport, bool wrong) {
         static_cast<void>(heddle::all_to_all(
             transport, std::vector<std::vector<std::byte>>(wrong ? 2 : 3), {.watchdog = 60}));
       }},
      {"peer 1 of rank 1", [](auto& transport, bool wrong) {
         std::vector<Rank> peers;
         for (std::uint32_t r = 0; r < 3; ++r)
           if (Rank{r} != transport.rank() || wrong) peers.emplace_back(r);
         heddle::Mailbox mailbox(transport, peers, {.wait = {.watchdog = 60}});
         mailbox.close();
       }}};
  for (const auto& [why, call] : doors) {
    INFO(why);
    std::vector<std::string> errors(3, "nothing");
    heddle::run_threads(3, [&](heddle::ThreadTransport& transport) {
      try {
        call(transport, transport.rank() == Rank{1});
      } catch (const heddle::contract_error& error) {
        errors[+transport.rank()] = std::string("contract: ") + error.what();
      } catch (const heddle::communication_error& error) {
        errors[+transport.rank()] = std::string("told: ") + error.what();
      }
    });
    for (const std::size_t rank : {0, 1, 2})
      CHECK_THAT(errors[rank],
                 ContainsSubstring(rank == 1 ? "contract: " : "told: ") && ContainsSubstring(why));
  }
}

TEST_CASE("a rank that does not take part is named, and nobody hangs") {
  heddle::MpiTransport transport(MPI_COMM_WORLD);
  if (transport.size() == 1) return;
  heddle::LinkOptions options = quick;
  options.wait.watchdog = 0.3;
  if (transport.rank() == Rank{1}) {
    while (!transport.aborted()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK_THAT(transport.aborted()->reason, ContainsSubstring(" does not answer"));
  } else {
    CHECK_THROWS_AS(heddle::measure_links(transport, options), heddle::communication_error);
  }
}

}  // namespace

}  // namespace test_measure_links
