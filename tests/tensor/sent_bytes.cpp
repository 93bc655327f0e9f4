// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 6 8
// space: its own
// program: its own

// What random redistributions and halos give MPI to send, rank by rank, against their plans; and
// which of it MPI gathers, against their tables.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/core/text.hpp>
#include <heddle/tensor.hpp>

#include "support/halo_case.hpp"
#include "support/path_tables.hpp"
#include "support/redistribution_case.hpp"
#include "support/sent_bytes.hpp"
#include "support/world.hpp"

namespace test_sent_bytes {

namespace hd = heddle;
using hd::test::count_sent_bytes;
using hd::test::gathered_messages;
using hd::test::HaloCase;
using hd::test::RedistributionCase;
using hd::test::sent_bytes;
using hd::test::sent_to;
using hd::test::world_rank;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;

/// What this rank is to send to each other one, `times` times.
std::map<int, std::uint64_t> planned(const hd::schedule::BlockExchange& plan, std::uint64_t times) {
  std::map<int, std::uint64_t> bytes;
  plan.for_each_message([&](hd::Rank from, hd::Rank to, hd::Bytes count) {
    if (static_cast<int>(+from) == world_rank()) bytes[static_cast<int>(+to)] += times * count;
  });
  return bytes;
}

/// What all ranks have sent.
std::uint64_t sent_by_all() {
  std::uint64_t bytes = sent_bytes;
  MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return bytes;
}

/// Calls `visit` with a null pointer to the Data of so many dimensions.
template <class T, class Visit>
bool in_dims(std::size_t dims, Visit&& visit) {
  switch (dims) {
    case 1: return visit(static_cast<T**>(nullptr));
    case 2: return visit(static_cast<T***>(nullptr));
    case 3: return visit(static_cast<T****>(nullptr));
    default: return visit(static_cast<T*****>(nullptr));
  }
}

/// Whether what was counted is `times` the plan: each rank to each other one, and all together.
bool as_planned(const hd::schedule::BlockExchange& plan, std::uint64_t times) {
  return sent_to == planned(plan, times) && sent_by_all() == times * plan.bytes();
}

/// Messages of this rank that MPI gathers by a table that has datatypes for longer runs only.
std::uint64_t gathered(const hd::schedule::BlockExchange& plan) {
  std::uint64_t count = 0;
  for (const hd::schedule::BlockExchange::Step& step : plan.steps)
    for (const hd::schedule::BlockExchange::Delivery& delivery : step.deliveries)
      for (const hd::schedule::Piece& source : plan.sources(delivery)) {
        if (static_cast<int>(+source.rank) != world_rank() ||
            source.rank == plan.target(delivery).rank || source.contiguous())
          continue;
        std::uint64_t runs = 0;
        for (const hd::StridedBlock& block : source.blocks) runs += block.bytes() / block.run();
        count += delivery.bytes / runs > 11 ? 1u : 0u;
      }
  return count;
}

}  // namespace

TEST_CASE("a redistribution sends the bytes of its plan, and no others") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::size_t bad = 0;
  std::uint64_t all = 0;
  std::string first;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const RedistributionCase test = RedistributionCase::draw(seed, comm.size(), 9);
    const auto plan = hd::schedule::redistribution(test.source, test.target, comm.size(), 4);
    const bool good = in_dims<float>(test.source.dims(), [&]<class Data>(Data*) {
      const hd::Sharded<Data, Exec> source(comm, test.source), target(comm, test.target);
      count_sent_bytes();
      // Twice: planned first, then as it is kept.
      hd::redistribute(Exec{}, source, target);
      hd::redistribute(Exec{}, source, target);
      return as_planned(plan.exchange, 2);
    });
    if (!good && first.empty()) first = hd::text("seed ", seed, ": ", plan);
    bad += good ? 0u : 1u;
    all += plan.bytes();
  }
  INFO(first);
  CHECK(bad == 0);
  CHECK((all > 0) == (comm.size() > 1));
}

TEST_CASE("a halo of any age sends the bytes of its exchange once a call") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  std::size_t bad = 0;
  std::uint64_t all = 0;
  std::string first;
  for (std::uint64_t seed = 0; seed < 90; ++seed) {
    const HaloCase test = HaloCase::draw(seed, comm.size());
    const hd::schedule::Staleness age{static_cast<int>(seed / 3 % 3),
                                      static_cast<int>(seed / 9 % 4)};
    const auto plan = hd::schedule::halo_exchange(test.layout, comm.size(), 4, test.options);
    const bool good = in_dims<std::int32_t>(test.layout.dims(), [&]<class Data>(Data*) {
      const hd::Sharded<Data, Exec> tensor(comm, test.layout);
      count_sent_bytes();
      {
        hd::Halo halo(tensor, test.options, age);
        for (int call = 0; call < 5; ++call) halo.exchange(Exec{}, tensor);
      }
      return as_planned(plan, 5);
    });
    if (!good && first.empty()) first = hd::text("seed ", seed, ", ", age, ": ", test.layout);
    bad += good ? 0u : 1u;
    all += plan.bytes();
  }
  INFO(first);
  CHECK(bad == 0);
  CHECK((all > 0) == (comm.size() > 1));
}

TEST_CASE("a table says which messages MPI gathers, and none where they may be under way") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const std::optional<hd::PathTable> paths = hd::test::by_length_of_runs();
  std::size_t bad = 0;
  std::uint64_t all = 0;
  std::string first;
  const auto compare = [&](std::uint64_t found, const hd::schedule::BlockExchange& plan,
                           std::uint64_t times, const auto& what) {
    const std::uint64_t meant = times * gathered(plan);
    all += meant;
    if (found == meant) return;
    ++bad;
    if (first.empty()) first = hd::text(what, ": ", found, " gathered, expected ", meant);
  };
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const RedistributionCase test = RedistributionCase::draw(seed, comm.size(), 9);
    const auto plan = hd::schedule::redistribution(test.source, test.target, comm.size(), 4);
    const bool good = in_dims<float>(test.source.dims(), [&]<class Data>(Data*) {
      const hd::Sharded<Data, Exec> source(comm, test.source), target(comm, test.target);
      count_sent_bytes();
      hd::redistribute(Exec{}, source, target, {}, paths);
      compare(gathered_messages, plan.exchange, 1, plan);
      // One without a table is another.
      hd::redistribute(Exec{}, source, target);
      hd::redistribute(Exec{}, source, target, {}, paths);
      compare(gathered_messages, plan.exchange, 2, plan);
      return as_planned(plan.exchange, 3);
    });
    bad += good ? 0u : 1u;
  }
  for (std::uint64_t seed = 0; seed < 90; ++seed) {
    const HaloCase test = HaloCase::draw(seed, comm.size());
    const int age = static_cast<int>(seed / 3 % 3);
    const auto plan = hd::schedule::halo_exchange(test.layout, comm.size(), 4, test.options);
    const bool good = in_dims<std::int32_t>(test.layout.dims(), [&]<class Data>(Data*) {
      const hd::Sharded<Data, Exec> tensor(comm, test.layout);
      count_sent_bytes();
      {
        hd::Halo halo(tensor, test.options, {.age = age}, paths);
        for (int call = 0; call < 3; ++call) halo.exchange(Exec{}, tensor);
      }
      compare(gathered_messages, plan, age > 0 ? 0 : 3, test.layout);
      return as_planned(plan, 3);
    });
    bad += good ? 0u : 1u;
  }
  INFO(first);
  CHECK(bad == 0);
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  CHECK((all > 0) == (comm.size() > 1));
}

}  // namespace test_sent_bytes
