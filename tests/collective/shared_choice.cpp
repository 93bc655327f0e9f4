// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 3 4
// space: its own

// Calls that a table of costs leads to memory that ranks share: within a host, in levels over
// several, which ranks of one host act as here, and by messages where it would be too much.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/collective.hpp>
#include <heddle/collective/impl/shared_performer.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/machine/network.hpp>
#include <heddle/plan/collective_choice.hpp>
#include <heddle/plan/shared_collective.hpp>

namespace test_shared_choice {

namespace hd = heddle;
using hd::Bytes;
using hd::plan::CollectiveChoice;
using hd::schedule::Algorithm;
using hd::schedule::Collective;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<std::int64_t*, Kokkos::HostSpace>;

/// A table of `ranks` that leads every collective to `choice` but where that does not count; then
/// to a ring.
std::shared_ptr<const hd::plan::CostTable> leading_to(const CollectiveChoice& choice, int ranks) {
  const auto p = static_cast<std::size_t>(ranks);
  const std::vector<std::vector<hd::Link>> links(p, std::vector<hd::Link>(p, {1e-6, 1e9}));
  hd::plan::CostTable table(hd::network(links, {.name = "node"}));
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::broadcast}) {
    CollectiveChoice mine = choice;
    if (!hd::schedule::why_not(collective, mine.algorithm, {.ranks = ranks}).empty())
      mine.algorithm = Algorithm::ring;
    table.set(collective, 1 << 16, mine, 1e-6);
    table.set(collective, 1 << 16, {.algorithm = Algorithm::ring}, 1e-3);
    table.set(collective, 1 << 16, {.library = true}, 1);
  }
  return std::make_shared<const hd::plan::CostTable>(std::move(table));
}

View filled(const hd::Communicator& comm, std::size_t size, std::int64_t round) {
  View view("view", size);
  for (std::size_t i = 0; i < size; ++i)
    view(i) = static_cast<std::int64_t>(+comm.rank() * 1000003 + i * 7) + round;
  return view;
}

std::size_t differing(const View& a, const View& b) {
  std::size_t count = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) count += a(i) != b(i);
  return count;
}

/// Differences from what the library's calls leave, of two calls in other memory.
std::size_t differing(const hd::Communicator& comm, std::size_t size,
                      const hd::CallOptions& options) {
  std::size_t count = 0;
  const auto p = static_cast<std::size_t>(comm.size());
  for (int round = 0; round < 2; ++round) {
    const View a = filled(comm, size, round), b = filled(comm, size, round);
    hd::all_reduce(Exec{}, a, hd::Sum{}, comm, options);
    hd::all_reduce(Exec{}, b, hd::Sum{}, comm);
    count += differing(a, b);
    const View whole = filled(comm, p * size, round), again = filled(comm, p * size, round);
    hd::reduce_scatter(Exec{}, whole, a, hd::Sum{}, comm, options);
    hd::reduce_scatter(Exec{}, again, b, hd::Sum{}, comm);
    count += differing(a, b);
    hd::broadcast(Exec{}, a, hd::Rank{1}, comm, options);
    hd::broadcast(Exec{}, b, hd::Rank{1}, comm);
    count += differing(a, b);
  }
  return count;
}

/// Messages and copies between different ranks of the Schedule of a prepared all-reduce.
template <class Prepared>
std::size_t messages(const Prepared& prepared) {
  const hd::Schedule schedule = prepared.schedule();
  std::size_t count = 0;
  for (const hd::Action& action : schedule.actions()) count += !schedule[action.queue].local();
  return count;
}

/// Bytes that ranks of different domains send each other.
Bytes sent(const hd::Schedule& schedule) {
  Bytes sum = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (!schedule[schedule[hd::ActionId{i}].queue].local())
      sum += schedule.bytes(schedule.uses(hd::ActionId{i})[0]);
  return sum;
}

hd::impl::SharedLine& line_of(const hd::Communicator& comm, int domain = 0) {
  return comm.attached<hd::impl::SharedPlace>().line([] {}, {.domain = domain});
}

}  // namespace

TEST_CASE("a table leads to shared memory within a host") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto table = leading_to({.piece = hd::shared_piece, .shared = true}, comm.size());
  CHECK(differing(comm, 20011, {.costs = table}) == 0);
  CHECK(line_of(comm).bytes() > 0);
  const View view("view", 20011);
  const auto call = hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, comm, {.costs = table});
  CHECK(messages(call) == 0);
  CHECK(call.schedule().domains().size() == static_cast<std::size_t>(comm.size()));
}

TEST_CASE("over several hosts, hosts are one level of the algorithm") {
  for (const Algorithm outer : {Algorithm::ring, Algorithm::recursive_doubling, Algorithm::star}) {
    const hd::Communicator comm(MPI_COMM_WORLD);
    static_cast<void>(line_of(comm, 2));
    const auto table =
        leading_to({.algorithm = outer, .piece = 16 << 10, .shared = true}, comm.size());
    CHECK(differing(comm, 20011, {.costs = table}) == 0);
    const View view("view", 20011);
    const auto call = hd::all_reduce<hd::Prepared>(Exec{}, view, hd::Sum{}, comm, {.costs = table});
    if (comm.size() == 2) CHECK(messages(call) == 0);
    // Each rank sends a half of the data, whichever the algorithm among two hosts.
    if (comm.size() == 4) CHECK(sent(call.schedule()) == 2 * Bytes{20011 * sizeof(std::int64_t)});
  }
}

TEST_CASE("without a table, a reduction that MPI does not know goes over hosts in levels, too") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  static_cast<void>(line_of(comm, 2));
  using Partial = hd::WeightedMean::Partial<double>;
  const Kokkos::View<Partial*, Kokkos::HostSpace> view("view", 50021);
  for (std::size_t i = 0; i < view.size(); ++i) view(i) = {1, static_cast<double>(+comm.rank())};
  auto call = hd::all_reduce<hd::Prepared>(Exec{}, view, hd::WeightedMean{}, comm);
  call();
  const double mean = (comm.size() - 1) / 2.0;
  std::size_t wrong = 0;
  // P - 1 merges, of a few roundings each, of numbers below 4.
  for (std::size_t i = 0; i < view.size(); ++i)
    wrong += view(i).weight != comm.size() || !(std::abs(view(i).mean - mean) < 1e-14);
  CHECK(wrong == 0);
  CHECK(line_of(comm).bytes() > 0);
  const hd::Schedule schedule = call.schedule();
  std::vector<std::uint32_t> hosts{0, 0, 2, 2};
  hosts.resize(static_cast<std::size_t>(comm.size()));
  CHECK(std::ranges::equal(schedule.domains(), hosts));
  if (comm.size() == 2) CHECK(sent(schedule) == 0);
  if (comm.size() == 4) CHECK(sent(schedule) == 2 * Bytes{50021 * sizeof(Partial)});
}

TEST_CASE("what shared memory cannot serve goes by messages") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const auto table = leading_to({.piece = hd::shared_piece, .shared = true}, comm.size());
  // Where it would be too much, again and again.
  CHECK(differing(comm, 20011, {.costs = table, .shared_bytes = 100}) == 0);
  CHECK(line_of(comm).bytes() == 0);
  // More room is used, and what fits of several calls is kept.
  CHECK(differing(comm, 20011, {.costs = table}) == 0);
  const Bytes all = line_of(comm).bytes();
  CHECK(all > 0);
  CHECK(differing(comm, 30011, {.costs = table, .shared_bytes = all}) == 0);
  CHECK(line_of(comm).bytes() <= all);
  // Requests, and calls that are told so.
  const View a = filled(comm, 20011, 0), b = filled(comm, 20011, 0);
  hd::all_reduce<hd::Request>(Exec{}, a, hd::Sum{}, comm, {.costs = table}).wait();
  hd::all_reduce(Exec{}, b, hd::Sum{}, comm, {.costs = table, .shared_memory = false});
  CHECK(differing(a, b) == 0);
  auto prepared = hd::all_reduce<hd::Prepared>(Exec{}, a, hd::Sum{}, comm, {.costs = table});
  prepared.start().wait();
  hd::all_reduce(Exec{}, b, hd::Sum{}, comm);
  CHECK(differing(a, b) == 0);
}

TEST_CASE("a measured table has times over shared memory") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const hd::plan::CostTable table = hd::measure_collectives(
      comm, {.sizes = {1 << 10, 1 << 18}, .candidates = 1, .budget = 0.05, .links = {}});
  const auto shared = [&](Bytes bytes) {
    std::size_t count = 0;
    for (const auto& entry : table.times(Collective::all_reduce, bytes))
      count += entry.choice.shared;
    return count;
  };
  CHECK(shared(1 << 10) == 0);
  CHECK(shared(1 << 18) == 1);
}

}  // namespace test_shared_choice
