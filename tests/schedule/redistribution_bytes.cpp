// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Bytes of redistributions against a closed form, against the fewest that a search finds, and
// against sequences of steps along one axis.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <variant>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core.hpp>
#include <heddle/schedule.hpp>

#include "support/fewest_messages.hpp"
#include "support/redistribution_case.hpp"

namespace test_redistribution_bytes {

using namespace heddle;
using namespace heddle::schedule;
using test::RedistributionCase;

namespace {

using Number = std::int32_t;
using Indices = std::vector<std::int64_t>;

/// The least elements that must be sent, by the closed form.
std::int64_t least(const RedistributionCase& test) {
  std::int64_t sum = 0;
  for (const test::MovedElement& element : test::moved_elements(test))
    sum += test::least_messages(element);
  return sum;
}

/// Elements that a collective along `axis` sends to bring `from` to `to`, which differ in the
/// placement there only; each element is told to whoever lacks it. None: there is no such step.
std::optional<std::int64_t> step_cost(const Layout& from, const Layout& to, std::size_t axis) {
  const Placement& before = from.placements()[axis];
  const Placement& after = to.placements()[axis];
  if (std::holds_alternative<Partial>(after)) return std::nullopt;
  // Others shard what this axis leaves to them: not along one line then.
  const auto dim_of = [](const Placement& one) {
    const Shard* const shard = std::get_if<Shard>(&one);
    return shard == nullptr ? -1 : shard->dim;
  };
  for (std::size_t later = axis + 1; later < from.placements().size(); ++later) {
    const int dim = dim_of(from.placements()[later]);
    if (dim >= 0 && (dim == dim_of(before) || dim == dim_of(after))) return std::nullopt;
  }
  return least({from, to});
}

/// The least of all sequences of steps along one axis, by Dijkstra's algorithm over the placements
/// of `palette` on each axis.
std::int64_t least_of_sequences(const RedistributionCase& test,
                                const std::vector<Placement>& palette) {
  std::vector<Layout> known = {test.source};
  std::vector<std::int64_t> cost = {0};
  using Entry = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
  next.emplace(0, 0);
  while (!next.empty()) {
    const auto [so_far, at] = next.top();
    next.pop();
    if (so_far > cost[at]) continue;
    const Layout here = known[at];
    if (here == test.target) return so_far;
    for (std::size_t axis = 0; axis < here.placements().size(); ++axis)
      for (const Placement& placement : palette) {
        if (placement == here.placements()[axis]) continue;
        auto placements = here.placements();
        placements[axis] = placement;
        const Layout there = here.with(placements);
        const auto price = step_cost(here, there, axis);
        if (!price) continue;
        const auto found = std::ranges::find(known, there);
        const auto number = static_cast<std::size_t>(found - known.begin());
        if (found == known.end()) {
          known.push_back(there);
          cost.push_back(so_far + *price);
        } else if (so_far + *price < cost[number]) {
          cost[number] = so_far + *price;
        } else {
          continue;
        }
        next.emplace(cost[number], number);
      }
  }
  FAIL("there is always a way by Replicate");
  return 0;
}

/// Of two axes.
std::vector<std::vector<Placement>> all_placements() {
  const std::vector<Placement> each = {Shard{0}, Shard{1}, Replicate{}, Partial{}};
  std::vector<std::vector<Placement>> all;
  for (const Placement& a : each)
    for (const Placement& b : each) all.push_back({a, b});
  return all;
}

Redistribution plan_of(const RedistributionCase& test, int ranks) {
  return redistribution(test.source, test.target, ranks, sizeof(Number));
}

}  // namespace

TEST_CASE("no plan sends less, element by element") {
  for (std::uint64_t seed = 5000; seed < 5600; ++seed) {
    const int ranks = static_cast<int>(1 + seed % 8);
    const RedistributionCase test = seed % 5 == 4 ? RedistributionCase::draw(seed, ranks, 3, 8)
                                                  : RedistributionCase::draw(seed, ranks, 5);
    const Redistribution plan = plan_of(test, ranks);
    INFO("seed " << seed << ": " << plan);
    REQUIRE(plan.bytes() == sizeof(Number) * static_cast<Bytes>(least(test)));
    // What the schedule moves between ranks is the same.
    const Schedule schedule = to_schedule(plan, Scalar::i32);
    Bytes moved = 0;
    for (std::size_t i = 0; i < schedule.size(); ++i)
      if (!schedule[schedule[ActionId{i}].queue].local())
        moved += schedule.bytes(schedule.uses(ActionId{i})[0]);
    REQUIRE(moved == plan.bytes());
  }
}

TEST_CASE("of up to four ranks the closed form is the fewest of all messages that can be sent") {
  test::FewestMessages search;
  for (int drawn = 0; drawn < 625; ++drawn)  // each rank has one of four parts, or none
    for (int needed = 1; needed < 16; ++needed) {
      test::MovedElement element;
      for (std::size_t rank = 0, rest = static_cast<std::size_t>(drawn); rank < 4;
           ++rank, rest /= 5) {
        if (rest % 5 > 0) element.holds[rank] = {static_cast<int>(rest % 5)};
        if ((needed >> rank & 1) != 0) element.needs.insert(rank);
      }
      INFO("parts " << drawn << " in base 5, needed by " << needed << " in base 2");
      if (drawn > 0) REQUIRE(search(element) == test::least_messages(element));
    }
}

TEST_CASE("on small meshes no plan sends more than the fewest messages for each element") {
  test::FewestMessages search;
  const auto check = [&](const RedistributionCase& test, int ranks) {
    const Redistribution plan = plan_of(test, ranks);
    INFO(plan);
    Bytes fewest = 0;
    for (const test::MovedElement& element : test::moved_elements(test))
      fewest += sizeof(Number) * static_cast<Bytes>(search(element));
    REQUIRE(plan.bytes() <= fewest);
  };
  for (std::uint64_t seed = 9000; seed < 9600; ++seed) {
    const int ranks = static_cast<int>(1 + seed % 4);
    check(RedistributionCase::draw(seed, ranks, 5), ranks);
  }
  for (const MeshShape& mesh : {MeshShape{{"a", 2}, {"b", 1}}, MeshShape{{"a", 3}, {"b", 1}},
                                MeshShape{{"a", 4}, {"b", 1}}, MeshShape{{"a", 2}, {"b", 2}}})
    for (const auto& from : all_placements())
      for (const auto& to : all_placements()) {
        bool possible = true;
        for (std::size_t axis = 0; axis < to.size(); ++axis)
          possible &= to[axis] != Placement(Partial{}) || from[axis] == to[axis];
        if (possible) check({Layout(mesh, {5, 3}, from), Layout(mesh, {5, 3}, to)}, mesh.size());
      }
}

TEST_CASE("no sequence of steps along one axis sends less") {
  const std::vector<Placement> palette = {Shard{0}, Shard{1}, Replicate{}};
  std::size_t fewer = 0;
  for (const MeshShape& mesh : {MeshShape{{"a", 2}, {"b", 2}}, MeshShape{{"a", 2}, {"b", 3}}})
    for (const Indices& sizes : {Indices{4, 6}, Indices{5, 3}, Indices{1, 7}}) {
      for (const auto& from : all_placements())
        for (const auto& to : all_placements()) {
          const Layout source(mesh, sizes, from);
          const Layout target(mesh, sizes, to);
          if (target.partial()) continue;
          const RedistributionCase test{source, target};
          const Redistribution plan = plan_of(test, mesh.size());
          INFO(plan);
          const auto sequence =
              sizeof(Number) * static_cast<Bytes>(least_of_sequences(test, palette));
          CHECK(plan.bytes() <= sequence);
          if (plan.bytes() < sequence) ++fewer;
        }
    }
  CHECK(fewer > 0);  // going straight there pays
}

}  // namespace test_redistribution_bytes
