// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

/// @file
/// DeviceMesh: its communicators against arithmetic on ranks, and what it refuses.

#include <algorithm>
#include <cstddef>
#include <string_view>
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

/// The ranks of a communicator, as numbers of the world.
std::vector<int> members_of(const heddle::Communicator& line) {
  std::vector<int> members(static_cast<std::size_t>(line.size()));
  const int me = world_rank();
  MPI_Allgather(&me, 1, MPI_INT, members.data(), 1, MPI_INT, line.get());
  return members;
}

TEST_CASE("a line over several axes holds the ranks that differ on these axes only") {
  const int n = world_size();
  for (int a = 1; a <= n; ++a)
    for (int b = 1; a * b <= n; ++b) {
      if (n % (a * b) != 0) continue;
      const DeviceMesh mesh(MPI_COMM_WORLD, {{"a", a}, {"b", b}, {"one", 1}, {"c", n / a / b}});
      const std::vector<std::vector<std::string_view>> sets = {
          {"a", "b"}, {"a", "c"}, {"c", "b"}, {"one", "b"}, {"c", "one", "a"}, {"c", "a", "b"}};
      for (const auto& names : sets) {
        std::vector<int> expected;  // in the order of the ranks
        for (int r = 0; r < n; ++r) {
          bool same = true;
          for (std::size_t axis = 0; axis < mesh.shape().axes().size(); ++axis)
            same =
                same && (std::ranges::find(names, mesh.shape().axes()[axis].name) != names.end() ||
                         mesh.shape().coordinate(Rank{r}, axis) ==
                             mesh.shape().coordinate(mesh.rank(), axis));
          if (same) expected.push_back(r);
        }
        INFO(text(mesh, ", axes ", names.front(), " to ", names.back()));
        CHECK(members_of(mesh[names]) == expected);
      }
      // Made once, whatever the order of the names; one name is the line of that axis.
      CHECK(&mesh[{"a", "c"}] == &mesh[{"c", "a"}]);
      CHECK(&mesh[{"b", "c"}] == &mesh[sets[2]]);
      CHECK(&mesh[{"b"}] == &mesh["b"]);
    }
}

TEST_CASE("a line over several axes stays where it is when the mesh moves") {
  DeviceMesh first(MPI_COMM_WORLD, {{"a", world_size()}, {"b", 1}});
  const heddle::Communicator* const line = &first[{"a", "b"}];
  const DeviceMesh second(std::move(first));
  CHECK(&second[{"b", "a"}] == line);
  CHECK(line->size() == world_size());
}

TEST_CASE("a line over unknown, repeated or no axes is refused") {
  const DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", world_size()}, {"data", 1}});
  const auto complains = [&](const std::vector<std::string_view>& names, const char* phrase) {
    CHECK_THROWS_MATCHES(static_cast<void>(mesh[names]), heddle::contract_error,
                         MessageMatches(ContainsSubstring(phrase) && ContainsSubstring("pipe")));
  };
  complains({"data", "dta"}, "no axis 'dta'");
  complains({"data", "pipe", "data"}, "the axis 'data' is named twice");
  complains({}, "no axis is named");
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
