// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks the time of a pass over layers of which some lie in the memory of a peer, against closed
// forms, and that every layer still reads its own weights.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core/random.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/capacity.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/pass/peer_memory.hpp>
#include <heddle/schedule/pass/share_memory.hpp>
#include <heddle/simulate/any_time.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/rational.hpp"
#include "support/schedule_battery.hpp"

namespace test_peer_memory {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using test::Rational;

namespace {

constexpr Bytes layer_bytes = 8;

/// Passes over all layers on rank 0, one after another; rank 1 lends its memory.
Schedule layers_on_one_rank(int layers, int passes) {
  Orders orders{.name = "layers", .ranks = {{}, {}}, .graph = StageGraph::chain(layers)};
  for (int p = 0; p < passes; ++p)
    for (int l = 0; l < layers; ++l) orders.ranks[0].push_back({Kind::forward, Stage{l}, Item{p}});
  return weave(orders, {.parameters = layer_bytes});
}

/// The time from the end of a pass to the end of the next one, when it no longer changes. A layer
/// takes 1, and a copy `copy`.
Rational pass_time(const Schedule& schedule, int layers, const Rational& copy) {
  const auto timeline = simulate(
      schedule, BasicStageCosts<Rational>{.forward = 1, .per_byte = copy / Rational(layer_bytes)},
      Sending::rendezvous);
  std::vector<Rational> ends;
  for (std::size_t i = 0; i < schedule.size(); ++i)
    if (schedule[ActionId{i}].kind == Kind::forward &&
        +schedule[ActionId{i}].stage + 1 == static_cast<std::size_t>(layers))
      ends.push_back(timeline.spans()[i].end);
  const std::size_t n = ends.size();
  REQUIRE(n > 3);
  REQUIRE(ends[n - 1] - ends[n - 2] == ends[n - 2] - ends[n - 3]);
  return ends[n - 1] - ends[n - 2];
}

Rational time_of(int layers, int resident, int slots, const Rational& copy,
                 std::vector<Stage> away = {}) {
  return pass_time(schedule::peer_memory(layers_on_one_rank(layers, 8), resident,
                                         {.slots = slots, .away = std::move(away)}),
                   layers, copy);
}

}  // namespace

TEST_CASE("24 layers, 20 resident: spread copies hide, clustered ones do not") {
  const std::vector<Stage> clustered = {20, 21, 22, 23};
  CHECK(time_of(24, 20, 2, 3) == 24);
  CHECK(time_of(24, 20, 2, 3, clustered) == 28);
  CHECK(time_of(24, 20, 1, 3) == 24);
  CHECK(time_of(24, 20, 1, 3, clustered) == 33);
  CHECK(time_of(24, 20, 2, 30) == 120);
  CHECK(time_of(24, 24, 2, 30) == 24);
}

TEST_CASE("a pass takes n t if the gap hides a copy; clustered, one slot adds m - 1 copies") {
  for (const int away : {1, 2, 3, 4, 6}) {
    const int gap = 24 / away - 1;  // resident layers between two others
    for (const Rational copy : {Rational(1, 2), Rational(gap), Rational(gap) + Rational(1, 3)}) {
      const Rational late = std::max(Rational(0), copy - Rational(gap));
      // If all of them fit in the slots, they are copied only once.
      CHECK(time_of(24, 24 - away, 1, copy) ==
            (away == 1 ? Rational(24) : Rational(24) + Rational(away) * late));
      const Rational bound = std::max(Rational(24), Rational(away) * copy);
      for (const int slots : {2, 3, 7})
        CHECK(time_of(24, 24 - away, slots, copy) == (slots < away ? bound : Rational(24)));
    }
    std::vector<Stage> together;
    for (int l = 24 - away; l < 24; ++l) together.push_back(Stage{l});
    if (away > 1) CHECK(time_of(24, 24 - away, 1, 3, together) == Rational(24 + 3 * (away - 1)));
  }
}

TEST_CASE("the layers away are as far apart as possible, and each copy is of its layer's weights") {
  for (std::uint64_t c = 0; c < test::cases(200, 5000); ++c) {
    const Random random(c, "peers");
    const int layers = 1 + static_cast<int>(random.below(0, 12));
    const int away = 1 + static_cast<int>(random.below(1, static_cast<std::uint64_t>(layers)));
    const int slots = 1 + static_cast<int>(random.below(2, 4));
    const Schedule plain = layers_on_one_rank(layers, 3);
    const Schedule schedule = schedule::peer_memory(plain, layers - away, {.slots = slots});
    std::vector<int> places;
    for (const Buffer& buffer : schedule.buffers())
      if (buffer.rank == 1) places.push_back(static_cast<int>(+buffer.stage));
    REQUIRE(places.size() == static_cast<std::size_t>(away));
    for (std::size_t k = 0; k < places.size(); ++k) {
      const int next = k + 1 < places.size() ? places[k + 1] : places[0] + layers;
      CHECK((next - places[k] == layers / away || next - places[k] == (layers + away - 1) / away));
    }
    // Every forward reads the same values as before, in both of two steps.
    test::Storage before(plain, std::byte{1}), after(schedule, std::byte{2});
    const test::Log expected = test::interpret(plain, before, 2);
    std::vector<std::uint64_t> wanted, found;
    for (const auto& [key, hash] : expected) wanted.push_back(hash);
    for (const auto& [key, hash] : test::interpret(schedule, after, 2)) found.push_back(hash);
    REQUIRE(wanted == found);
    REQUIRE(test::difference_from_oracle(schedule, 2) == "");
    if (c % 20 == 0) test::schedule_battery(schedule);
  }
}

TEST_CASE("in shared domains the weights are read where they lie, without a copy") {
  const Schedule away = schedule::peer_memory(layers_on_one_rank(6, 4), 4);
  const auto moves = [](const Schedule& schedule) {
    return std::ranges::count(schedule.actions(), Kind::move, &Action::kind);
  };
  CHECK(moves(away) == 2);
  const Schedule spread = schedule::peer_memory(layers_on_one_rank(6, 4), 3);
  CHECK(moves(spread) == 3 * 4);
  const Schedule shared = schedule::share_memory(spread, {0, 0});
  CHECK(moves(shared) == 0);
  CHECK(pass_time(shared, 6, 30) == 6);
  REQUIRE(test::difference_from_oracle(shared, 2) == "");
}

TEST_CASE("the rank needs memory for the resident layers and the slots") {
  const Schedule schedule = schedule::peer_memory(layers_on_one_rank(24, 3), 20);
  const Timeline timeline =
      simulate(schedule, {.forward = 1, .per_byte = 3.0 / layer_bytes}, Sending::rendezvous);
  Machine machine = Machine::uniform(2, {.memories = {{"HBM", 22 * layer_bytes}}}, {});
  CHECK_NOTHROW(schedule::check_capacity(timeline, machine));
  machine.set_device(Rank{0}, {.memories = {{"HBM", 22 * layer_bytes - 1}}});
  CHECK_THAT(test::message_of<infeasible>([&] { schedule::check_capacity(timeline, machine); }),
             ContainsSubstring("of rank 0") && ContainsSubstring("so 1 bytes lack"));
}

TEST_CASE("what peer memory cannot do is refused, with a remedy") {
  const Schedule layers = layers_on_one_rank(6, 2);
  const auto complaint = [](const Schedule& schedule, int resident,
                            const schedule::PeerMemoryOptions& options) {
    return test::message_of<contract_error>(
        [&] { (void)schedule::peer_memory(schedule, resident, options); });
  };
  CHECK_THAT(complaint(layers, 7, {}),
             ContainsSubstring("cannot keep 7 stages") && ContainsSubstring("from 0 to 6"));
  CHECK_THAT(complaint(layers, -1, {}), ContainsSubstring("cannot keep -1"));
  CHECK_THAT(complaint(layers, 4, {.slots = 0}), ContainsSubstring("slots = 0"));
  CHECK_THAT(complaint(layers, 4, {.peer = 0}), ContainsSubstring("rank 0, peer 0, 2 ranks"));
  CHECK_THAT(complaint(layers, 4, {.peer = 2}), ContainsSubstring("empty order"));
  CHECK_THAT(complaint(layers, 0, {.rank = 1, .peer = 0}),
             ContainsSubstring("rank 1 holds no weights"));
  CHECK_THAT(complaint(layers, 4, {.away = {1, 9}}),
             ContainsSubstring("it names 2, of which rank 0 has 1"));
  CHECK_THAT(complaint(layers, 4, {.away = {1}}), ContainsSubstring("name 2 different stages"));
  const Schedule trains = schedule::one_f_one_b({.ranks = 2, .microbatches = 2});
  CHECK_THAT(complaint(trains, 0, {}),
             ContainsSubstring("must be constant") && ContainsSubstring("forwards only"));
  // Nothing goes away: nothing changes.
  CHECK(hash(schedule::peer_memory(layers, 6)) == hash(layers));
}

}  // namespace test_peer_memory
