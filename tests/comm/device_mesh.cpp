// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// DeviceMesh: its communicators against arithmetic on ranks, and what it refuses.

#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/text.hpp>

#include "support/transport_battery.hpp"
#include "support/world.hpp"

namespace test_device_mesh {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using heddle::DeviceMesh;
using heddle::MeshShape;
using heddle::Rank;
using heddle::text;
using heddle::test::world_rank;
using heddle::test::world_size;

TEST_CASE("the lines of a mesh hold the ranks that differ on one axis only") {
  const int n = world_size();
  for (int pipe = 1; pipe <= n; ++pipe) {
    if (n % pipe != 0) continue;
    const int data = n / pipe;
    const DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}, {"one", 1}, {"data", data}});
    CHECK(mesh.size() == n);
    CHECK(mesh.rank() == Rank{world_rank()});
    CHECK(mesh.all().size() == n);
    CHECK(mesh.coordinate("pipe") == world_rank() / data);
    CHECK(mesh.coordinate("one") == 0);
    CHECK(mesh.coordinate("data") == world_rank() % data);
    CHECK(mesh["one"].size() == 1);
    for (const auto& [axis, first, step, length] :
         {std::tuple{"pipe", world_rank() % data, data, pipe},
          std::tuple{"data", world_rank() / data * data, 1, data}}) {
      const heddle::Communicator& line = mesh[axis];
      CHECK(line.size() == length);
      CHECK(line.rank() == Rank{mesh.coordinate(axis)});
      std::vector<int> members(static_cast<std::size_t>(length));
      const int me = world_rank();
      MPI_Allgather(&me, 1, MPI_INT, members.data(), 1, MPI_INT, line.get());
      for (int i = 0; i < length; ++i)
        CHECK(members[static_cast<std::size_t>(i)] == first + i * step);
    }
  }
}

TEST_CASE("a mesh that does not fit the ranks is refused on every rank") {
  const int n = world_size();
  CHECK_THROWS_MATCHES(
      DeviceMesh(MPI_COMM_WORLD, {{"pipe", n}, {"data", 2}}), heddle::contract_error,
      MessageMatches(ContainsSubstring(text("pipe=", n, " x data=2 makes ", 2 * n, " ranks")) &&
                     ContainsSubstring(text("the communicator has ", n)) &&
                     ContainsSubstring(text("start it with mpiexec -n ", 2 * n))));
  // The communicator is as usable as before.
  int sum = 0;
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == n);
}

TEST_CASE("ranks with different shapes are told which rank differs, all of them") {
  const int n = world_size();
  if (n == 1) return;
  for (const int odd : {1, n - 1}) {
    // As many ranks, but other lines: without the comparison the collective calls do not match.
    const MeshShape common{{"pipe", n}, {"data", 1}};
    const MeshShape other{{"pipe", 1}, {"data", n}};
    CHECK_THROWS_MATCHES(
        DeviceMesh(MPI_COMM_WORLD, world_rank() >= odd ? other : common), heddle::contract_error,
        MessageMatches(
            ContainsSubstring("the ranks do not have the same mesh") &&
            ContainsSubstring(text("rank ", odd, " differs from rank 0, which has ", common))));
  }
}

TEST_CASE("an axis that a mesh has not is named, with those that it has") {
  const DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}, {"data", 1}});
  for (const auto& ask : {+[](const DeviceMesh& m) { static_cast<void>(m["dta"]); },
                          +[](const DeviceMesh& m) { static_cast<void>(m.coordinate("dta")); }})
    CHECK_THROWS_MATCHES(
        ask(mesh), heddle::contract_error,
        MessageMatches(ContainsSubstring("no axis 'dta'") && ContainsSubstring("pipe, data")));
}

TEST_CASE("a mesh prints itself") {
  const DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}, {"data", 1}});
  CHECK(text(mesh) == text("device mesh pipe=", world_size(), " x data=1, rank ", world_rank(),
                           " at (pipe ", world_rank(), ", data 0)"));
}

TEST_CASE("the transport of a mesh survives its move") {
  DeviceMesh first(MPI_COMM_WORLD, {{"all", world_size()}}, {.max_message = 1009});
  heddle::MpiTransport* const transport = &first.transport();
  DeviceMesh second(std::move(first));
  REQUIRE(&second.transport() == transport);
  CHECK(second.transport().size() == world_size());
  REQUIRE_NOTHROW(heddle::test::transport_battery(second.transport()));
}

}  // namespace

}  // namespace test_device_mesh
