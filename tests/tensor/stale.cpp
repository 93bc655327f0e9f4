// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// timeout: 240

// What is some steps old when it is used: an iteration finds the same fixed point, with a warm-up
// of all steps it is the fresh one, and sums are off by what the other ranks have changed, no more.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/device.hpp>
#include <heddle/tensor.hpp>

#include "space.hpp"
#include "support/complaint.hpp"

namespace test_stale {

namespace hd = heddle;
using examples::Space;
using hd::Correction;
using hd::schedule::Staleness;

namespace {

constexpr std::int64_t size = 41;

/// What keeps element `i` of the field from 0.
KOKKOS_FUNCTION double source(std::int64_t i) { return 0.01 * static_cast<double>(1 + i % 7); }

/// A step of Jacobi's iteration for (1 + 3/4) u = mean of neighbours + source, of n elements within
/// a halo of 1.
struct Relax {
  Kokkos::View<double*, Kokkos::LayoutRight, Space::memory_space> now, next;
  std::int64_t first;
  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    next(i + 1) =
        (0.5 * (now(i) + now(i + 2)) + source(first + static_cast<std::int64_t>(i))) / 1.75;
  }
};

/// The field after every step, until none of its elements changes by 1e-12, or for `steps` steps.
struct Iteration {
  std::vector<double> field;  ///< of all ranks
  int steps = 0;
};

Iteration iterate(const hd::Communicator& comm, const Staleness& staleness, int most = 1000) {
  using Field = hd::Sharded<double*, Space>;
  const hd::Layout layout(hd::MeshShape{{"patches", comm.size()}}, {size}, {hd::Shard{0, {}, 1}});
  const Field a(comm, layout), b(comm, layout);
  hd::Halo halo(a, {}, staleness);
  const Field* now = &a;
  const Field* next = &b;
  const std::size_t owned = a.parts().size() - 2;
  const std::int64_t first = a.indices(0)[0];
  Iteration made;
  for (double change = 1; change > 1e-12 && made.steps < most; ++made.steps) {
    halo.exchange(Space{}, *now);
    Kokkos::parallel_for(Kokkos::RangePolicy<Space>(0, owned),
                         Relax{now->parts(), next->parts(), first});
    Space{}.fence();
    const auto before = hd::host_mirror(now->parts()), after = hd::host_mirror(next->parts());
    Kokkos::deep_copy(before, now->parts());
    Kokkos::deep_copy(after, next->parts());
    change = 0;
    for (std::size_t i = 1; i <= owned; ++i)
      change = std::max(change, std::abs(after(i) - before(i)));
    MPI_Allreduce(MPI_IN_PLACE, &change, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    std::swap(now, next);
  }
  made.field.assign(size, 0);
  const auto host = hd::host_mirror(now->parts());
  Kokkos::deep_copy(host, now->parts());
  for (std::size_t i = 0; i < owned; ++i)
    made.field[static_cast<std::size_t>(first) + i] = host(i + 1);
  MPI_Allreduce(MPI_IN_PLACE, made.field.data(), size, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return made;
}

/// The largest difference of two fields.
double difference(const Iteration& a, const Iteration& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.field.size(); ++i)
    most = std::max(most, std::abs(a.field[i] - b.field[i]));
  return most;
}

using Values = hd::StaleSum<double, Space>::View;

/// Sums of two values on each rank, r + 1 times the number of the call and a constant, in every
/// call.
std::vector<double> sums(const hd::Communicator& comm, const Staleness& staleness,
                         Correction correction, int calls) {
  hd::StaleSum<double, Space> sum(comm, 2, staleness, correction);
  std::vector<double> first;
  for (int call = 1; call <= calls; ++call) {
    const Values values("heddle::test::values", 2);
    const auto host = hd::host_mirror(values);
    host(0) = static_cast<double>((+comm.rank() + 1) * static_cast<std::size_t>(call));
    host(1) = 5;
    Kokkos::deep_copy(values, host);
    sum(Space{}, values);
    Kokkos::deep_copy(host, values);
    CHECK(host(1) == 5 * comm.size());
    first.push_back(host(0));
  }
  return first;
}

}  // namespace

TEST_CASE("an iteration with old neighbours finds the same fixed point") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Iteration fresh = iterate(comm, {});
  REQUIRE(fresh.steps > 10);
  REQUIRE(fresh.steps < 500);
  for (const Staleness staleness : {Staleness{1, 0}, Staleness{1, 4}}) {
    const Iteration stale = iterate(comm, staleness);
    INFO(staleness << ": " << stale.steps << " steps, fresh " << fresh.steps);
    CHECK(difference(stale, fresh) < 1e-6);
    CHECK(stale.steps * 2 <= fresh.steps * 3);
    CHECK((comm.size() == 1 || stale.steps > fresh.steps));  // it is not the fresh one
  }
  CHECK(difference(iterate(comm, {.age = 3}), fresh) < 1e-6);
}

TEST_CASE("a warm-up of all steps is the fresh iteration, bit by bit, and on any ranks the same") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const Iteration fresh = iterate(comm, {}, 30);
  CHECK(iterate(comm, {.age = 1, .warmup = 30}, 30).field == fresh.field);
  CHECK(iterate(comm, {.age = 2, .warmup = 99}, 30).field == fresh.field);
  if (comm.size() > 1) CHECK(iterate(comm, {.age = 1}, 30).field != fresh.field);
  const hd::Communicator alone(MPI_COMM_SELF);
  // Every rank adds its own copy of the whole field: divide by their number.
  Iteration serial = iterate(alone, {}, 30);
  const double copies = comm.size();
  if (copies == 1 || copies == 2 || copies == 4) {
    for (double& value : serial.field) value /= copies;
    CHECK(serial.field == fresh.field);
  }
}

TEST_CASE("a stale sum is off by what was changed since, a corrected one by what others changed") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  const int p = comm.size();
  const double all = p * (p + 1) / 2.0, own = static_cast<double>(+comm.rank()) + 1;
  for (const Staleness staleness :
       {Staleness{}, Staleness{1, 0}, Staleness{1, 3}, Staleness{2, 0}, Staleness{0, 2}}) {
    const std::vector<double> plain = sums(comm, staleness, Correction::none, 7);
    const std::vector<double> corrected = sums(comm, staleness, Correction::own, 7);
    for (int call = 1; call <= 7; ++call) {
      INFO(staleness << ", call " << call);
      const auto at = static_cast<std::size_t>(call - 1);
      const double age = staleness.of_call(call);
      CHECK(plain[at] == all * (call - age));
      CHECK(corrected[at] == all * (call - age) + own * age);
    }
  }
}

/// Calls `call(n)` on every rank, but its second time on rank 0 only when all others have returned
/// from theirs: who waited for the ranks in that call would wait for ever.
template <class Call>
void second_time_is_late(const hd::Communicator& comm, Call&& call) {
  call(1);
  int token = 0;
  for (int r = 1; r < comm.size() && comm.rank() == hd::Rank{0}; ++r)
    MPI_Recv(&token, 1, MPI_INT, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  call(2);
  if (comm.rank() != hd::Rank{0}) MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

TEST_CASE("nobody waits for a rank that is late by less than the age") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  hd::StaleSum<double, Space> sum(comm, 1, {.age = 1});
  const Values values("heddle::test::values", 1);
  second_time_is_late(comm, [&](int n) {
    Kokkos::deep_copy(values, n);
    sum(Space{}, values);
  });
  const auto host = hd::host_mirror(values);
  Kokkos::deep_copy(host, values);
  CHECK(host(0) == comm.size() + 1);  // all have put in 1, and this rank 1 more since

  const hd::Layout layout(hd::MeshShape{{"patches", comm.size()}}, {size}, {hd::Shard{0, {}, 1}});
  const hd::Sharded<double*, Space> field(comm, layout);
  hd::Halo halo(field, {}, {.age = 1});
  second_time_is_late(comm, [&](int n) {
    Kokkos::deep_copy(field.parts(), n);
    halo.exchange(Space{}, field);
  });
  if (comm.rank() == hd::Rank{0} && comm.size() > 1) {
    const auto parts = hd::host_mirror(field.parts());
    Kokkos::deep_copy(parts, field.parts());
    CHECK(parts(parts.size() - 1) == 1);  // what the neighbour owned in the first call
  }
}

TEST_CASE("long messages are moved on between the calls of a stale halo") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  constexpr std::int64_t columns = 1 << 18;  // of 8 B: more than an MPI sends at once
  const hd::Layout layout(hd::MeshShape{{"patches", comm.size()}}, {2 * comm.size(), columns},
                          {hd::Shard{0, {}, 1}});
  const hd::Sharded<double**, Space> field(comm, layout);
  hd::Halo halo(field, {}, {.age = 1});
  CHECK(halo.advance(Space{}));
  const auto beyond = [&] {  // what is beyond the last row of this rank
    const auto parts = hd::host_mirror(field.parts());
    Kokkos::deep_copy(parts, field.parts());
    return parts(parts.extent(0) - 1, columns - 1);
  };
  for (int n = 1; n <= 3; ++n) {
    Kokkos::deep_copy(field.parts(), n);
    halo.exchange(Space{}, field);
    if (+comm.rank() + 1 < static_cast<std::size_t>(comm.size()))
      CHECK(beyond() == std::max(n - 1, 1));
    const double begin = MPI_Wtime();
    bool done = false;
    while (!done && MPI_Wtime() < begin + 60) done = halo.advance(Space{});
    CHECK(done);
  }
}

TEST_CASE("a stale sum refuses other sizes, and ages below 0") {
  const hd::Communicator comm(MPI_COMM_WORLD);
  hd::StaleSum<double, Space> sum(comm, 3, {.age = 1});
  CHECK(hd::test::message_of<hd::contract_error>([&] { sum(Space{}, Values("values", 2)); }) ==
        "heddle::StaleSum: the number of values has changed (2, expected 3); use one StaleSum for "
        "each number of values");
  CHECK(hd::test::message_of<hd::contract_error>([&] {
          hd::StaleSum<double, Space>(comm, 3, {.age = -1});
        }) == "heddle::StaleSum: an age must be at least 0 (age = -1); use 0 to wait for new data");
}

}  // namespace test_stale
