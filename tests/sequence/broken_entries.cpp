// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2
// space: its own

// Options, shapes and plans of sharded sequences that programs fill by hand: every door rejects a
// broken entry and names it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/communicator.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/sequence.hpp>
#include <heddle/systems/flexsp/plan_sequence_groups.hpp>
#include <heddle/systems/flexsp/sequence_groups.hpp>

#include "support/broken_entries.hpp"
#include "support/world.hpp"

namespace test_sequence_broken_entries {

using namespace heddle;
using test::BrokenEntry;
using test::check_broken;
using test::world_rank;
using test::world_size;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Line = SequenceLine<double, Exec>;
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace>;
using Vector = Kokkos::View<double*, Kokkos::LayoutRight, Kokkos::HostSpace>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t half = std::size_t{1} << 63;

SequenceShape changed(const std::function<void(SequenceShape&)>& change) {
  SequenceShape shape{.sequences = 1, .context = 4, .heads = {2, 2, 2}};
  change(shape);
  return shape;
}

}  // namespace

TEST_CASE("lines of a sequence reject options that are none, on every rank") {
  const Communicator world(MPI_COMM_WORLD);
  const Communicator self = world.split(world_rank(), 0);
  std::vector<BrokenEntry> table;
  for (const bool everywhere : {true, false}) {
    const auto add = [&](const char* name, const SequenceOptions& options, const char* word) {
      const bool broken = everywhere || world_rank() == world_size() - 1;
      const SequenceOptions given =
          broken ? options : SequenceOptions{.method = SequenceMethod::ring};
      table.push_back({name, [=, &world, &self] { Line(self, world, given); }, {word}});
    };
    using enum SequenceMethod;
    add("method", {.method = static_cast<SequenceMethod>(77)}, "method = 77");
    add("near", {.method = ring, .near = static_cast<plan::NearAxis>(9)}, "near = 9");
    add("watchdog", {.method = ring, .wait = {.watchdog = -1}}, "watchdog = -1");
    add("watchdog is no number", {.method = ring, .wait = {.watchdog = nan}}, "watchdog = nan");
    add("grace", {.method = ring, .wait = {.grace = -1}}, "grace = -1");
    add("idle", {.method = ring, .wait = {.idle = static_cast<Idle>(9)}}, "idle = 9");
    if (everywhere || world_size() == 1) {
      add("ways", {.method = ring, .ways = 3}, "ways = 3");
      add("no machine", {.method = automatic}, "needs a machine");
    }
  }
  check_broken(table);
}

TEST_CASE("every call of a line rejects a shape that is none") {
  const Communicator world(MPI_COMM_WORLD);
  const Communicator self = world.split(world_rank(), 0);
  const Machine machine = Machine::uniform(world_size(), {}, {1e-6, 1e9});
  const Line ring(self, world, {.method = SequenceMethod::ring});
  const Line chooses(
      self, world,
      {.method = SequenceMethod::automatic, .machine = machine, .saved_limit = Bytes{1} << 20});
  std::vector<BrokenEntry> table;
  const auto add = [&](const char* name, const SequenceShape& shape, const char* word) {
    const Matrix none("none", 0, 0);
    const Vector saved("saved", 0);
    for (const Line& line : {Line(), ring, chooses}) {
      table.push_back({name,
                       [=] { sequence_attention_forward(line, Exec{}, shape, none, saved, none); },
                       {"sequence_attention_forward", word}});
      table.push_back(
          {name,
           [=] { sequence_attention_backward(line, Exec{}, shape, none, saved, none, none); },
           {"sequence_attention_backward", word}});
      table.push_back({name, [=] { (void)line.rows(shape); }, {word}});
      table.push_back({name, [=] { (void)line.ring_rows(shape); }, {word}});
      table.push_back({name, [=] { (void)line.saved_size(shape); }, {word}});
      table.push_back({name, [=] { (void)line.explain(shape, machine); }, {word}});
    }
    table.push_back({name, [=] { (void)chooses.method(shape); }, {word}});
    table.push_back({name, [=] { (void)chooses.ways(shape); }, {word}});
  };
  add("context", changed([](SequenceShape& s) { s.context = -5; }), "context = -5");
  add("heads", changed([](SequenceShape& s) { s.heads.heads = 0; }), "heads 0");
  add("kv_heads", changed([](SequenceShape& s) { s.heads.kv_heads = 0; }), "kv_heads 0");
  add("no divisor", changed([](SequenceShape& s) { s.heads.heads = 3; }), "heads 3");
  add("width", changed([](SequenceShape& s) { s.heads.head_width = 0; }), "head_width 0");
  // Numbers of 64 bits, which a form of attention would cut to 32 bits.
  add("many heads", changed([](SequenceShape& s) {
        s.heads = {4294967298, 2, 2};
      }),
      "heads = 4294967298");
  add("wide heads", changed([](SequenceShape& s) { s.heads.head_width = 4294967298; }),
      "head_width = 4294967298");
  // Four positions of so many sequences seem to have no row.
  add("sequences", changed([](SequenceShape& s) { s.sequences = half; }),
      "sequences = 9223372036854775808");
  add("segments", changed([](SequenceShape& s) { s.mask = {true, {2, 1}}; }), "position 1");
  check_broken(table);
}

TEST_CASE("groups of sequences reject plans whose groups are elsewhere") {
  const Communicator world(MPI_COMM_WORLD);
  const systems::SequenceGroups groups(world);
  const auto group = [&](std::vector<systems::SequenceGroup> each) {
    return [=, &groups] { (void)groups.group(systems::SequenceMicrobatch{each, 0}); };
  };
  const auto one = [](int first, int degree) {
    return systems::SequenceGroup{Rank{first}, degree, {}, 0, 0};
  };
  std::vector<BrokenEntry> table{
      {"no groups", group({}), {"0 ranks"}},
      {"degree", group({one(0, 0)}), {"group 0 of 0 ranks"}},
      {"degree below 0", group({one(0, -2)}), {"group 0 of -2 ranks"}},
      {"degree of all", group({one(0, 3)}), {"group 0 of 3 ranks"}},
      {"more ranks", group({one(0, 8)}), {"8 ranks"}},
      {"first", group({one(1, world_size())}), {"groups[0].first is rank 1"}},
      {"level", [&] { (void)groups.level(-1); }, {"level -1"}},
  };
  if (world_size() == 2)
    table.push_back(
        {"counted from 1", group({one(1, 1), one(2, 1)}), {"groups[0].first is rank 1"}});
  if (world_size() == 2)
    table.push_back({"exchanged", group({one(1, 1), one(0, 1)}), {"groups[0].first is rank 1"}});
  check_broken(table);
}

}  // namespace test_sequence_broken_entries
