// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// SharedTransport: the batteries of transports, blocks that are seen by all ranks of a host and
/// given back, collectives in place, over copies and over hosts, and ranks that fail.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/shared_transport.hpp>
#include <heddle/execute.hpp>
#include <heddle/schedule.hpp>

#include "support/complaint.hpp"
#include "support/shared_collectives.hpp"
#include "support/transport_battery.hpp"
#include "support/world.hpp"

namespace test_shared_transport {

namespace {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Data;
using test::world_rank;
using test::world_size;

TEST_CASE("the batteries of transports, sharing memory") {
  {
    SharedTransport transport(MPI_COMM_WORLD);
    REQUIRE_NOTHROW(test::transport_battery(transport, 1'000'003));
  }
  for (int failing = 0; failing < world_size(); ++failing) {
    SharedTransport transport(MPI_COMM_WORLD);
    const SharedBlocks kept = transport.share(100);
    REQUIRE_NOTHROW(test::transport_abort_battery(transport, Rank{failing}));
  }
}

TEST_CASE("the ranks of a host are one domain, or as many as are asked for") {
  const auto size = static_cast<std::size_t>(world_size());
  CHECK(SharedTransport(MPI_COMM_WORLD).domains() == std::vector<std::uint32_t>(size, 0));
  for (const int domain : {1, 2, 3}) {
    std::vector<std::uint32_t> expected;
    for (std::size_t r = 0; r < size; ++r)
      expected.push_back(static_cast<std::uint32_t>(r) / static_cast<std::uint32_t>(domain) *
                         static_cast<std::uint32_t>(domain));
    CHECK(SharedTransport(MPI_COMM_WORLD, {.domain = domain}).domains() == expected);
  }
  CHECK_THAT(
      test::message_of<contract_error>([] { SharedTransport(MPI_COMM_WORLD, {.domain = -1}); }),
      ContainsSubstring("heddle::SharedTransport") && ContainsSubstring("domain = -1"));
}

TEST_CASE("blocks are zeros, aligned, of any sizes, and every rank sees what the others write") {
  SharedTransport transport(MPI_COMM_WORLD, {.domain = 3});
  const std::size_t self = +transport.rank();
  const std::vector<std::uint32_t> domains = transport.domains();
  const auto bytes_of = [](std::size_t rank, std::size_t round) {
    return Bytes{(rank * 7919 + round * 104'729) % 70'001 * (round % 3)};
  };
  std::vector<SharedBlocks> kept;
  for (std::size_t round = 0; round < 30; ++round) {
    const Bytes bytes = bytes_of(self, round);
    SharedBlocks blocks = transport.share(bytes);
    for (std::size_t r = 0; r < domains.size(); ++r) {
      REQUIRE((blocks.of[r] != nullptr) == (domains[r] == domains[self]));
      REQUIRE(reinterpret_cast<std::uintptr_t>(blocks.of[r]) % 64 == 0);
    }
    std::byte* const mine = blocks.of[self];
    REQUIRE(std::all_of(mine, mine + bytes, [](std::byte byte) { return byte == std::byte{0}; }));
    const auto value = [&](std::size_t rank) { return static_cast<std::byte>(3 * rank + round); };
    std::fill(mine, mine + bytes, value(self));
    MPI_Barrier(MPI_COMM_WORLD);
    for (std::size_t r = 0; r < domains.size(); ++r)
      if (blocks.of[r] != nullptr)
        REQUIRE(std::all_of(blocks.of[r], blocks.of[r] + bytes_of(r, round),
                            [&](std::byte byte) { return byte == value(r); }));
    if (round % 4 == self % 4) kept.push_back(std::move(blocks));  // let go at other times
    MPI_Barrier(MPI_COMM_WORLD);
    if (round % 10 == 9) kept.clear();
  }
}

TEST_CASE("collectives of one host are as the serial list") {
  SharedTransport transport(MPI_COMM_WORLD);
  REQUIRE(test::difference_of_collectives(transport, Data::shared) == "");
  REQUIRE(test::difference_of_collectives(transport, Data::pushed) == "");
  REQUIRE(test::difference_of_collectives(transport, Data::own) == "");
}

TEST_CASE("collectives over hosts are as the serial list, messages between them") {
  for (const int domain : {1, 2}) {
    SharedTransport transport(MPI_COMM_WORLD, {.domain = domain});
    REQUIRE(test::difference_of_collectives(transport, Data::pushed) == "");
    REQUIRE(test::difference_of_collectives(transport, Data::own) == "");
  }
}

TEST_CASE("what a host has not is refused on all ranks, which go on") {
  for (const int domain : {0, 1, 2}) {
    SharedTransport transport(MPI_COMM_WORLD, {.domain = domain});
    const bool last = world_rank() + 1 == world_size();
    const SharedBlocks before = transport.share(8);
    CHECK_THAT(test::message_of<out_of_memory>(
                   [&] { static_cast<void>(transport.share(last ? Bytes{1} << 46 : 8)); }),
               ContainsSubstring("the host cannot provide so much shared memory") &&
                   ContainsSubstring("bytes of this rank"));
    const SharedBlocks after = transport.share(8);
    CHECK(after.of[+transport.rank()] != before.of[+transport.rank()]);
    CHECK(*after.of[+transport.rank()] == std::byte{0});
  }
}

TEST_CASE("many small collectives, one after the other") {
  SharedTransport transport(MPI_COMM_WORLD);
  const int p = transport.size();
  const SharedBlocks data = transport.share(8 * 3);
  const Schedule sum = schedule::share_memory(
      schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                           {.ranks = p, .bytes = 8 * 3, .type = Scalar::i64}),
      transport.domains());
  SharedExecutor executor(transport, sum,
                          [&](BufferId, const Buffer& buffer) { return data.of[+buffer.rank]; });
  auto* const mine = reinterpret_cast<std::int64_t*>(data.of[+transport.rank()]);
  for (std::int64_t round = 0; round < 2000; ++round) {
    for (int i = 0; i < 3; ++i) mine[i] = round * (i + 1) + world_rank();
    executor.step(&perform_on_host);
    for (int i = 0; i < 3; ++i) REQUIRE(mine[i] == p * round * (i + 1) + p * (p - 1) / 2);
  }
}

TEST_CASE("a rank that throws in place stops the others, who say at what") {
  if (world_size() == 1) return;
  for (int failing = 0; failing < world_size(); ++failing) {
    SharedTransport transport(MPI_COMM_WORLD);
    const SharedBlocks data = transport.share(8 * 300);
    const Schedule sum = schedule::share_memory(
        schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                             {.ranks = transport.size(), .bytes = 8 * 300, .type = Scalar::i64}),
        transport.domains());
    const auto body = [&] {
      SharedExecutor executor(
          transport, sum, [&](BufferId, const Buffer& buffer) { return data.of[+buffer.rank]; });
      for (int step = 0; step < 3; ++step)
        executor.step([&](const Task& task) {
          if (step == 1 && world_rank() == failing) throw std::runtime_error("no more");
          perform_on_host(task);
        });
    };
    if (world_rank() == failing)
      CHECK_THROWS_AS(body(), std::runtime_error);
    else
      CHECK_THAT(test::message_of<communication_error>(body),
                 ContainsSubstring("failed at") && ContainsSubstring("no more"));
  }
}

TEST_CASE("a rank that does not come is named by the watchdog") {
  if (world_size() == 1) return;
  for (const Seconds at_first : {0.2, 100.0}) {
    SharedTransport transport(MPI_COMM_WORLD, {.messages = {.patience = 1}, .watchdog = at_first});
    if (at_first > 1) transport.watchdog(0.2);
    if (world_rank() == 0) {
      std::optional<Abort> abort;
      while (!(abort = transport.aborted())) continue;
    } else {
      try {
        static_cast<void>(transport.share(1));
        FAIL("rank 0 did not come");
      } catch (const communication_error& error) {
        CHECK_THAT(error.what(), ContainsSubstring("rank 0 does not take part in the call") ||
                                     ContainsSubstring("failed at"));
        CHECK_THAT(error.what(), ContainsSubstring("heddle::SharedTransport::share, rank"));
        if (!transport.aborted()) transport.abort({transport.rank(), "share", error.what()});
      }
    }
  }
}

TEST_CASE("a rank that comes later than the others are patient to give memory back goes on") {
  {
    SharedTransport transport(MPI_COMM_WORLD, {.messages = {.patience = 0.2}});
    static_cast<void>(transport.share(64));  // which is to be given back
    if (world_rank() + 1 == world_size())
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
  }
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == world_size());
}

TEST_CASE("a peer that does not come on is named by the executor's watchdog") {
  if (world_size() == 1) return;
  SharedTransport transport(MPI_COMM_WORLD);
  const SharedBlocks data = transport.share(64);
  const Schedule sum = schedule::share_memory(
      schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                           {.ranks = transport.size(), .bytes = 64, .type = Scalar::i64}),
      transport.domains());
  SharedExecutor executor(transport, sum,
                          [&](BufferId, const Buffer& buffer) { return data.of[+buffer.rank]; },
                          {.watchdog = 0.2});
  if (world_rank() == 0) {
    std::optional<Abort> abort;
    while (!(abort = transport.aborted())) continue;
    CHECK_THAT(abort->reason, ContainsSubstring("has not come so far"));
  } else {
    CHECK_THAT(test::message_of<communication_error>([&] { executor.step(&perform_on_host); }),
               ContainsSubstring("has not come so far") || ContainsSubstring("failed at"));
  }
}

}  // namespace

}  // namespace test_shared_transport
