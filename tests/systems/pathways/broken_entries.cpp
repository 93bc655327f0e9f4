// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3
// space: its own

// Options, clients and futures of an island that programs give: every door rejects a broken entry
// and names it, on every rank if only one rank has it.

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/systems/pathways/island.hpp>

#include "support/broken_entries.hpp"
#include "support/world.hpp"

namespace test_island_broken_entries {

using namespace heddle;
using test::BrokenEntry;
using test::check_broken;
using test::world_rank;
using test::world_size;
using Vector = Sharded<double*, Kokkos::DefaultHostExecutionSpace>;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

DeviceMesh world() { return {MPI_COMM_WORLD, {{"all", world_size()}}}; }

/// True on the ranks that have a broken entry: all of them, or only the last one.
bool breaks(bool everywhere) { return everywhere || world_rank() == world_size() - 1; }

}  // namespace

TEST_CASE("islands reject options that are none") {
  const DeviceMesh mesh = world();
  std::vector<BrokenEntry> table;
  for (const bool everywhere : {true, false}) {
    const auto add = [&](const char* name, const systems::IslandOptions& options,
                         const char* word) {
      const systems::IslandOptions given = breaks(everywhere) ? options : systems::IslandOptions{};
      table.push_back({name, [=, &mesh] { systems::Island(mesh, given); }, {word}});
    };
    add("policy", {.policy = static_cast<systems::GangPolicy>(9)}, "policy = 9");
    add("ahead", {.ahead = 0}, "ahead = 0");
    add("idle", {.wait = {.idle = static_cast<Idle>(9)}}, "idle = 9");
    add("watchdog", {.wait = {.watchdog = -1}}, "watchdog = -1");
    add("watchdog is no number", {.wait = {.watchdog = nan}}, "watchdog = nan");
  }
  check_broken(table);
}

TEST_CASE("islands reject clients without a function and weights out of range") {
  const DeviceMesh mesh = world();
  std::vector<BrokenEntry> table;
  for (const bool everywhere : {true, false}) {
    const auto add = [&](const char* name, const systems::IslandClientSpec& client,
                         const char* word) {
      std::vector<systems::IslandClientSpec> clients;
      if (breaks(everywhere)) clients.push_back(client);
      table.push_back(
          {name, [=, &mesh] { systems::Island(mesh).serve(clients); }, {"client 'c'", word}});
    };
    const auto run = [](systems::IslandClient&) {};
    add("function", {.name = "c", .run = {}}, "no function");
    add("weight", {.name = "c", .weight = 0, .run = run}, "the weight 0");
    add("large weight", {.name = "c", .weight = ~0u, .run = run}, "the weight 4294967295");
  }
  table.push_back(
      {"no function",
       [&] { systems::Island(mesh).serve(std::function<void(systems::IslandClient&)>()); },
       {"client 'client'", "no function"}});
  check_broken(table);
}

TEST_CASE("a future that refers to nothing has no layout") {
  check_broken({
      {"layout",
       [] { (void)systems::Future<Vector>().layout(); },
       {"Future::layout", "refers to nothing"}},
      {"sized",
       [] { (void)systems::Future<Vector>().sized(); },
       {"Future::sized", "refers to nothing"}},
  });
}

}  // namespace test_island_broken_entries
