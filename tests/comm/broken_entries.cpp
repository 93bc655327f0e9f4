// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3
// space: its own

// Options and moves of comm/ that programs fill by hand: every door rejects a broken entry and
// names it, on every rank if only one rank has the entry.

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm.hpp>
#include <heddle/core/text.hpp>

#include "support/broken_entries.hpp"
#include "support/world.hpp"

namespace test_comm_broken_entries {

using namespace heddle;
using test::BrokenEntry;
using test::check_broken;
using test::world_rank;
using test::world_size;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr int most = std::numeric_limits<int>::max();
constexpr Bytes large = Bytes{1} << 63;

/// True on the rank that alone has a broken entry: the last one.
bool alone() { return world_rank() == world_size() - 1; }

Plan all_in_one_stage() {
  PlanStage stage{.layers = {0, 1}};
  for (int r = 0; r < world_size(); ++r) stage.ranks.emplace_back(r), stage.samples.push_back(1);
  return {.stages = {stage}, .microbatches = 1};
}

}  // namespace

TEST_CASE("measurements reject times, sizes and rounds that are none, on every rank") {
  const Communicator world(MPI_COMM_WORLD);
  const auto machine = [&](MeasureOptions options) {
    return [=, &world] {
      MpiTransport transport(world.get());
      (void)measure_machine(transport, options);
    };
  };
  const auto links = [&](LinkOptions options) {
    return [=, &world] {
      MpiTransport transport(world.get());
      (void)measure_links(transport, options);
    };
  };
  const auto paths = [&](PathOptions options) {
    return [=, &world] { (void)measure_paths<Exec>(world, options); };
  };
  const auto no_idle = static_cast<Idle>(9);
  check_broken({
      {"short_rounds", machine({.short_rounds = 0}), {"short_rounds = 0"}},
      {"long_rounds", machine({.long_rounds = -2}), {"long_rounds = -2"}},
      {"pairs", machine({.pairs = -1}), {"pairs = -1"}},
      {"too many rounds", machine({.short_rounds = most}), {"short_rounds = 2147483647"}},
      {"idle", machine({.wait = {.idle = no_idle}}), {"idle = 9"}},
      {"watchdog", machine({.wait = {.watchdog = nan}}), {"watchdog = nan"}},
      {"budget", links({.budget = -1}), {"budget = -1"}},
      {"budget is no number", links({.budget = nan}), {"budget = nan"}},
      {"piece", links({.piece = 7}), {"piece = 7"}},
      {"largest", links({.largest = 8}), {"largest = 8"}},
      {"largest of all", links({.largest = large}), {"largest = 9223372036854775808"}},
      {"bursts", links({.bursts = 0}), {"bursts = 0"}},
      {"watchdog of links", links({.wait = {.watchdog = -1}}), {"watchdog = -1"}},
      {"names", links({.names = {"a", "b", "c", "d", "e"}}), {"5 names"}},
  });
  if (world_size() == 1) return;
  std::vector<BrokenEntry> table;
  for (const bool everywhere : {true, false}) {
    const auto add = [&](const char* name, PathOptions options, const char* word) {
      table.push_back({name, paths(everywhere || alone() ? options : PathOptions{}), {word}});
    };
    add("rounds", {.rounds = 0}, "rounds = 0");
    add("no sizes", {.sizes = {}}, "sizes has 0 numbers");
    add("size", {.sizes = {0, 8}}, "sizes[0] = 0");
    add("sizes descend", {.sizes = {16, 8}}, "sizes[1] = 8");
    add("size of all", {.sizes = {large}}, "9223372036854775808");
    add("no runs", {.runs = {}}, "runs has 0 numbers");
    add("run", {.runs = {0}}, "runs[0] = 0");
    add("watchdog", {.wait = {.watchdog = -1}}, "watchdog = -1");
    add("watchdog is no number", {.wait = {.watchdog = nan}}, "watchdog = nan");
    add("grace", {.wait = {.grace = nan}}, "grace = nan");
  }
  check_broken(table);
}

TEST_CASE("transports reject sizes and times that are none, on every rank") {
  std::vector<BrokenEntry> table;
  for (const bool everywhere : {true, false}) {
    const bool broken = everywhere || alone();
    const auto messages = [&](const char* name, MpiOptions options, const char* word) {
      if (!broken) options = {};
      table.push_back({name, [=] { MpiTransport(MPI_COMM_WORLD, options); }, {word}});
    };
    const auto shared = [&](const char* name, SharedOptions options, const char* word) {
      if (!broken) options = {};
      table.push_back({name, [=] { SharedTransport(MPI_COMM_WORLD, options); }, {word}});
    };
    messages("max_message", {.max_message = 0}, "max_message");
    messages("max_message of all", {.max_message = large}, "max_message");
    messages("patience", {.patience = -1}, "the patience of rank ");
    messages("patience is no number", {.patience = nan}, "the patience of rank ");
    shared("domain", {.domain = -1}, "domain = -1");
    shared("watchdog", {.watchdog = -1}, "watchdog = -1");
    shared("watchdog is no number", {.watchdog = nan}, "watchdog = nan");
    shared("messages", {.messages = {.patience = nan}}, "the patience of rank ");
  }
  check_broken(table);
}

TEST_CASE("meshes of plans reject numbers of ranks that are none, on every rank") {
  std::vector<BrokenEntry> table;
  for (const int ranks : {-1, world_size() + 1, most})
    for (const bool everywhere : {true, false}) {
      const PlannedMeshOptions options{.ranks = everywhere || alone() ? ranks : 0};
      table.push_back({"ranks",
                       [=] { PlannedMesh(MPI_COMM_WORLD, all_in_one_stage(), options); },
                       {text(ranks)}});
    }
  check_broken(table);
  const PlannedMesh mesh(MPI_COMM_WORLD, all_in_one_stage(), {.ranks = world_size()});
  CHECK(mesh.data().size() == world_size());
}

TEST_CASE("exchanges of boxes reject ranks and times that are none") {
  const Communicator world(MPI_COMM_WORLD);
  const StridedMove good{Rank{world_size() - 1}, {}}, bad{Rank{world_size()}, StridedBlock(8)};
  const auto exchange = [&](std::vector<StridedMove> sends, std::vector<StridedMove> receives,
                            ExecuteOptions execute = {}) {
    return [=, &world] {
      StridedExchange<Exec>(world, sends, receives, {.paths = {}, .wait = execute});
    };
  };
  const std::string rank = text("rank ", world_size(), " of ", world_size());
  check_broken({
      {"sends", exchange({good, bad}, {}), {"sends[1]", rank}},
      {"receives", exchange({}, {bad}), {"receives[0]", rank}},
      {"watchdog", exchange({good}, {}, {.watchdog = -1}), {"watchdog = -1"}},
      {"grace", exchange({good}, {}, {.grace = nan}), {"grace = nan"}},
      {"no blocks", [] { BlockDatatype(std::vector<StridedBlock>{}); }, {"0 blocks"}},
  });
}

TEST_CASE("agreements and environments reject levels and times that are none") {
  const Communicator world(MPI_COMM_WORLD);
  const auto agree = [&](double watchdog) {
    return [=, &world] {
      heddle::impl::check_agreement(
          world,
          [] {
            return heddle::impl::CollectiveCall{"heddle::test", {}};
          },
          ContractLevel::communication, watchdog);
    };
  };
  if (world_size() > 1) {
    for (const bool everywhere : {true, false})
      for (const double watchdog : {-1.0, nan})
        check_broken({{"watchdog",
                       agree(everywhere || alone() ? watchdog : 120),
                       {text("watchdog = ", watchdog)}}});
  }
  int argc = 0;
  check_broken({{"thread_level",
                 [&] { Environment(argc, nullptr, static_cast<ThreadLevel>(9)); },
                 {"thread_level = 9"}}});
}

}  // namespace test_comm_broken_entries
