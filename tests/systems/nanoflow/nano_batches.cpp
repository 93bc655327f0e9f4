// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Nano-batches: dependencies against a test of all intervals, closed forms of two operations, the
// sum of the units at every event, streams with the same times, and what is rejected.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/nanoflow/nano_batches.hpp>
#include <heddle/systems/nanoflow/nano_search.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/coverage.hpp"

namespace test_nano_batches {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using systems::NanoLayer;
using systems::NanoPiece;
using systems::NanoPlan;

namespace {

/// Numbers of one random case after another.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : m_random(seed, "nano_batches") {}
  std::int64_t from(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(
                       m_random.below(m_next++, static_cast<std::uint64_t>(most - least + 1)));
  }

 private:
  Random m_random;
  std::uint64_t m_next = 0;
};

struct Case {
  NanoLayer layer;
  NanoPlan plan;
};

/// A random graph of operations with random ranges, in a random order that is possible.
Case random_case(std::uint64_t seed) {
  Draws draw(seed);
  Case made;
  NanoLayer& layer = made.layer;
  layer.samples = draw.from(1, 30);
  layer.units = static_cast<int>(draw.from(1, 10));
  const std::int64_t resources = draw.from(1, 4);
  for (std::int64_t r = 0; r < resources; ++r) {
    std::vector<double> row;
    for (int u = 1; u <= layer.units; ++u) row.push_back(u < layer.units ? 0.25 + 0.05 * u : 1);
    layer.performance.push_back(row);
  }
  made.plan.pieces.samples = layer.samples;
  const std::int64_t operations = draw.from(1, 6);
  for (std::int64_t o = 0; o < operations; ++o) {
    systems::NanoOperation operation;
    operation.resource = static_cast<std::uint32_t>(draw.from(0, resources - 1));
    for (std::uint32_t input = 0; input < o; ++input)
      if (draw.from(0, 2) == 0) operation.inputs.push_back(input);
    operation.batch = static_cast<double>(draw.from(0, 9));
    operation.piece = 0.5 * static_cast<double>(draw.from(0, 2));
    layer.operations.push_back(operation);
    std::vector<std::int64_t> shares;
    for (std::int64_t left = layer.samples; left > 0; left -= shares.back())
      shares.push_back(shares.size() == 4 ? left : draw.from(1, left));
    made.plan.pieces.stages.push_back(shares);
  }
  for (std::uint32_t o = 0; o < operations; ++o)
    for (std::uint32_t p = 0; p < made.plan.pieces.stages[o].size(); ++p)
      made.plan.order.push_back({o, p, static_cast<std::uint16_t>(draw.from(1, layer.units))});
  // Pieces of operations that are not connected change places; so do those of one operation.
  auto& order = made.plan.order;
  for (int i = 0; i < 20 && order.size() > 1; ++i) {
    const auto at =
        static_cast<std::size_t>(draw.from(0, static_cast<std::int64_t>(order.size()) - 2));
    const auto& inputs = layer.operations[order[at + 1].operation].inputs;
    if (std::ranges::find(inputs, order[at].operation) == inputs.end())
      std::swap(order[at], order[at + 1]);
  }
  return made;
}

/// First and last sample of a piece, summed up here.
std::pair<std::int64_t, std::int64_t> samples_of_piece(const Case& each, const NanoPiece& piece) {
  std::int64_t first = 0;
  const auto& shares = each.plan.pieces.stages[piece.operation];
  for (std::uint32_t p = 0; p < piece.piece; ++p) first += shares[p];
  return {first, first + shares[piece.piece] - 1};
}

/// Whether the operation of `late` reads that of `early`.
bool reads(const Case& each, const NanoPiece& late, const NanoPiece& early) {
  const auto& inputs = each.layer.operations[late.operation].inputs;
  return std::ranges::find(inputs, early.operation) != inputs.end();
}

/// Whether two pieces have other samples.
bool partly(const Case& each, const NanoPiece& late, const NanoPiece& early) {
  return samples_of_piece(each, late) != samples_of_piece(each, early);
}

/// Whether `late` reads a sample that `early` writes, sample by sample.
bool depends(const Case& each, const NanoPiece& late, const NanoPiece& early) {
  if (!reads(each, late, early)) return false;
  const auto [a, b] = samples_of_piece(each, late);
  const auto [c, d] = samples_of_piece(each, early);
  for (std::int64_t s = a; s <= b; ++s)
    if (c <= s && s <= d) return true;
  return false;
}

/// Whether an action reads a part that another one writes.
bool shares_a_part(const Schedule& schedule, ActionId reader, ActionId writer) {
  for (const Use& in : schedule.uses(reader))
    for (const Use& out : schedule.uses(writer))
      if (!in.writes() && out.writes() && in.buffer == out.buffer &&
          std::max(in.first, out.first) < std::min(in.first + in.count, out.first + out.count))
        return true;
  return false;
}

/// What is wrong with the dependencies of a case, or nothing.
std::string wrong_edges(const Case& each, test::Coverage& coverage) {
  const Schedule schedule = systems::nano_schedule(each.layer, each.plan);
  const auto& order = each.plan.order;
  if (schedule.size() != order.size()) return "a piece lacks its action";
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto [first, last] = samples_of_piece(each, order[i]);
    if (schedule::samples_of(schedule, ActionId{i}) != last - first + 1)
      return text("samples of ", i);
    std::vector<std::size_t> latest(schedule.queues().size(), i);  // by queue; i: none
    for (std::size_t j = 0; j < i; ++j) {
      const bool edge = depends(each, order[i], order[j]);
      if (edge != shares_a_part(schedule, ActionId{i}, ActionId{j}))
        return text("edge ", j, " -> ", i, " is ", edge);
      const QueueId queue = schedule[ActionId{j}].queue;
      if (edge && queue != schedule[ActionId{i}].queue) latest[+queue] = j;
      coverage.count("edges", edge);
      coverage.count("edges to part of a piece", edge && partly(each, order[i], order[j]));
      coverage.count("inputs of other samples", !edge && reads(each, order[i], order[j]));
    }
    // The Schedule keeps the latest dependency of each other queue.
    std::vector<std::size_t> expected, derived;
    for (const std::size_t j : latest)
      if (j != i) expected.push_back(j);
    for (const After& after : schedule.after(ActionId{i})) derived.push_back(after.action);
    std::ranges::sort(expected);
    std::ranges::sort(derived);
    if (expected != derived) return text("dependencies of ", i);
  }
  return {};
}

/// The largest sum of units at the start of any action, which is when it can grow.
int most_units(const Timeline& timeline) {
  int most = 0;
  for (const Span& event : timeline.spans()) {
    int sum = 0;
    for (std::size_t i = 0; i < timeline.spans().size(); ++i) {
      const Span& span = timeline[ActionId{i}];
      if (span.start <= event.start && event.start < span.end)
        sum += timeline.schedule()[ActionId{i}].units;
    }
    most = std::max(most, sum);
  }
  return most;
}

/// The same times without a machine that counts units.
struct UncountedCosts {
  using Time = Seconds;
  systems::InterferenceCosts costs;
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    return costs.time(schedule, id);
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule&, ActionId) const { return {}; }
};

/// Two operations of one second on two resources, in halves, on 10 units: P(6) = 0.8 for the first
/// and P(4) = 0.5 for the second.
NanoLayer two_operations() {
  NanoLayer layer{.name = "two", .samples = 2, .units = 10};
  layer.operations = {{"a", 0, {}, 1}, {"b", 1, {0}, 1}};
  layer.performance = {{.1, .2, .3, .4, .5, .8, .8, .9, .9, 1},
                       {.1, .2, .3, .5, .5, .6, .7, .8, .9, 1}};
  return layer;
}

Seconds makespan(const NanoLayer& layer, const NanoPlan& plan) {
  return simulate(systems::nano_schedule(layer, plan), systems::InterferenceCosts(layer))
      .makespan();
}

}  // namespace

TEST_CASE("pieces depend on each other exactly if their ranges overlap: random graphs and ranges") {
  test::Coverage coverage("pairs of pieces");
  for (std::uint64_t seed = 0; seed < test::cases(10'000, 1'000'000); ++seed) {
    const std::string wrong = wrong_edges(random_case(seed), coverage);
    if (!wrong.empty()) FAIL("seed " << seed << ": " << wrong);
  }
  std::cout << coverage;
  CHECK(coverage.rarer_than(1000) == "");
}

TEST_CASE("units never sum to more than the device, and streams take the same time") {
  int full = 0;
  for (std::uint64_t seed = 0; seed < test::cases(1'000, 100'000); ++seed) {
    const Case each = random_case(seed);
    const systems::InterferenceCosts costs(each.layer);
    const Timeline timeline = simulate(systems::nano_schedule(each.layer, each.plan), costs);
    const int most = most_units(timeline);
    full += most == each.layer.units;
    const Timeline streams =
        simulate(systems::in_streams(timeline, each.layer.units), UncountedCosts{costs});
    if (most > each.layer.units || most_units(streams) > each.layer.units ||
        streams.makespan() > timeline.makespan())
      FAIL("seed " << seed << ": " << most << " and " << most_units(streams) << " of "
                   << each.layer.units << " units, " << timeline.makespan() << " s, in streams "
                   << streams.makespan() << " s");
  }
  CHECK(full > 100);
}

TEST_CASE("two operations in two pieces with 6 and 4 units of 10 have the closed forms") {
  const NanoLayer layer = two_operations();
  CHECK(makespan(layer, systems::serial_nano_plan(layer, {2})) == 2.0);
  CHECK(makespan(layer, systems::serial_nano_plan(layer, {1, 1})) == 2.0);
  const double a = 0.5 / 0.8, b = 0.5 / 0.5;
  const StageShares halves{.samples = 2, .stages = {{1, 1}, {1, 1}}};
  // a0, then a1 beside b0, then b1: alone with the units of both, or with all units.
  CHECK(makespan(layer, {halves, {{0, 0, 6}, {1, 0, 4}, {0, 1, 6}, {1, 1, 4}}}) ==
        a + std::max(a, b) + b);
  CHECK(makespan(layer, {halves, {{0, 0, 10}, {1, 0, 4}, {0, 1, 6}, {1, 1, 10}}}) ==
        0.5 + std::max(a, b) + 0.5);
  // 7 + 4 units do not fit beside each other.
  CHECK(makespan(layer, {halves, {{0, 0, 10}, {1, 0, 4}, {0, 1, 7}, {1, 1, 10}}}) ==
        0.5 + b + 0.5 / 0.8 + 0.5);
  // A cost of each piece is paid as often as there are pieces.
  NanoLayer loads = layer;
  loads.operations[0].piece = 0.25;
  CHECK(makespan(loads, systems::serial_nano_plan(layer, {2})) == 2.25);
  CHECK(makespan(loads, systems::serial_nano_plan(layer, {1, 1})) == 2.5);
}

TEST_CASE("a row of the interference table is on straight lines") {
  const auto row = systems::performance_between(10, {{0.4, 0.8}});
  REQUIRE(row.size() == 10);
  CHECK(row[3] == 0.8);
  CHECK(row[9] == 1);
  for (const auto& [units, speed] : {std::pair{1u, 0.2}, {3u, 0.6}, {7u, 0.9}})
    CHECK(std::abs(row[units - 1] - speed) < 1e-15);
  CHECK(systems::performance_between(1, {}) == std::vector<double>{1});
  CHECK_THAT(test::message_of<contract_error>([] {
               (void)systems::performance_between(4, {{0.5, 0.9}, {0.6, 0.8}});
             }),
             ContainsSubstring("(0.6, 0.8) follows (0.5, 0.9)"));
  CHECK_THAT(test::message_of<contract_error>([] { (void)systems::performance_between(0, {}); }),
             ContainsSubstring("units = 0"));
}

TEST_CASE("a layer of the guide is faster in pieces") {
  enum : std::uint32_t { compute, memory, network };
  systems::NanoLayer layer{.name = "layer", .samples = 2048, .units = 10};
  layer.operations = {
      {"KQV", compute, {}, 0.14e-3, 0.01e-3},  // name, resource, inputs, batch, piece
      {"attention", memory, {0}, 0.39e-3},
      {"O", compute, {1}, 0.11e-3, 0.01e-3},
      {"all-reduce", network, {2}, 0.45e-3},
      {"FFN", compute, {3}, 1.16e-3, 0.09e-3}};
  layer.performance = {
      systems::performance_between(10, {{0.8, 0.85}}),  // of 0.8 of the device: 0.85
      systems::performance_between(10, {{0.4, 0.8}}),
      systems::performance_between(10, {{0.4, 0.8}})};
  const systems::FoundNanoPlan found =
      systems::search_nano_plan(layer, {.divisions = {{640, 1408}, {1024, 1024}}});
  const Schedule pieces = systems::nano_schedule(layer, found.plan);
  const Timeline timeline = simulate(pieces, systems::InterferenceCosts(layer));
  const Schedule streams = systems::in_streams(timeline, layer.units);
  CHECK(timeline.makespan() == found.makespan);
  CHECK(makespan(layer, systems::serial_nano_plan(layer, {2048})) >= 1.07 * found.makespan);
  CHECK(streams.ranks() == 3);
}

TEST_CASE("layers and plans that do not fit are rejected by name") {
  const NanoLayer good = two_operations();
  const NanoPlan halves = systems::serial_nano_plan(good, {1, 1});
  const auto layer_error = [&](auto&& change) {
    NanoLayer layer = good;
    change(layer);
    return test::message_of<contract_error>([&] { (void)systems::nano_schedule(layer, halves); });
  };
  const auto plan_error = [&](auto&& change) {
    NanoPlan changed = halves;
    change(changed);
    return test::message_of<contract_error>([&] { (void)systems::nano_schedule(good, changed); });
  };
  CHECK_THAT(layer_error([](NanoLayer& layer) { layer.operations[0].inputs = {0}; }),
             ContainsSubstring("operation 0 'a' reads 0"));
  CHECK_THAT(layer_error([](NanoLayer& layer) { layer.operations[1].resource = 2; }),
             ContainsSubstring("operation 1 'b' uses resource 2 of 2"));
  CHECK_THAT(layer_error([](NanoLayer& layer) { layer.operations[1].batch = -1; }),
             ContainsSubstring("operation 1 'b': batch -1"));
  CHECK_THAT(layer_error([](NanoLayer& layer) { layer.performance[1].pop_back(); }),
             ContainsSubstring("resource 1 has 9 speeds, units = 10"));
  CHECK_THAT(layer_error([](NanoLayer& layer) { layer.performance[0][3] = 0; }),
             ContainsSubstring("resource 0 has the speed 0"));
  CHECK_THAT(layer_error([](NanoLayer& layer) { layer.units = 0; }),
             ContainsSubstring("units = 0"));
  CHECK_THAT(layer_error([](NanoLayer& layer) { layer.samples = 3; }),
             ContainsSubstring("2 samples, the layer has 2 and 3"));
  CHECK_THAT(plan_error([](NanoPlan& plan) {
               plan.pieces.stages[1] = {1, 2};
             }),
             ContainsSubstring("stage 1: 1 + 2 = 3"));
  CHECK_THAT(plan_error([](NanoPlan& plan) { std::swap(plan.order[1], plan.order[3]); }),
             ContainsSubstring("piece 1 of 'b' reads piece 1 of 'a'"));
  CHECK_THAT(plan_error([](NanoPlan& plan) { plan.order.pop_back(); }),
             ContainsSubstring("the order lacks pieces (3 of 4)"));
  CHECK_THAT(plan_error([](NanoPlan& plan) { plan.order[1] = plan.order[0]; }),
             ContainsSubstring("piece 0 of operation 0"));
  CHECK_THAT(plan_error([](NanoPlan& plan) { plan.order[2].units = 11; }),
             ContainsSubstring("piece 0 of 'b' has 11 of 10 units"));
  const auto search_error = [&](systems::NanoSearchOptions options) {
    return test::message_of<contract_error>(
        [&] { (void)systems::search_nano_plan(good, options); });
  };
  CHECK_THAT(search_error({.divisions = {{1, 2}}}), ContainsSubstring("1 + 2 = 3"));
  CHECK_THAT(search_error({.units = {{4}}}), ContainsSubstring("1 rows for 2 resources"));
  CHECK_THAT(search_error({.units = {{4}, {11}}}), ContainsSubstring("resource 1: 11 of 10"));
  CHECK_THAT(search_error({.restarts = -1}), ContainsSubstring("-1"));
  const Timeline wide =
      simulate(systems::nano_schedule(good, halves), systems::InterferenceCosts(good));
  CHECK_THAT(test::message_of<contract_error>([&] { (void)systems::in_streams(wide, 9); }),
             ContainsSubstring("action 0 starts with 10 units, 9 of 9 are free"));
}

}  // namespace test_nano_batches
