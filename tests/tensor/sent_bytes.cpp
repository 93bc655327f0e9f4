// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4 6 8
// space: its own
// program: its own

// What random redistributions and halos give MPI to send, rank by rank, against their plans.

#include <cstdint>
#include <map>
#include <string>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/tensor.hpp>

#include "support/halo_case.hpp"
#include "support/redistribution_case.hpp"
#include "support/sent_bytes.hpp"
#include "support/world.hpp"

namespace test_sent_bytes {

namespace hd = heddle;
using hd::test::count_sent_bytes;
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
    const hd::schedule::Freshness age{static_cast<int>(seed / 3 % 3),
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

}  // namespace test_sent_bytes
