// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/rational.hpp"

namespace test_memory_curves {

using namespace heddle;
using test::Rational;

namespace {

/// An action on rank 0, by hand: when it is, and what it touches of one buffer of 3 parts.
struct Touch {
  Span span;
  std::vector<Use> uses;
  std::uint8_t flags = 0;
};

Timeline timeline_of(const std::vector<Touch>& touches, bool transient, const char* label) {
  Builder builder("touches", 1);
  builder.add_buffer(
      {.parts = 3, .label = builder.label(label), .transient = transient, .bytes = 30});
  std::vector<Span> spans;
  for (const Touch& touch : touches) {
    builder.add({.kind = Kind::user, .queue = builder.local(Rank{0}), .flags = touch.flags},
                touch.uses);
    spans.push_back(touch.span);
  }
  return {std::move(builder).build(), std::move(spans)};
}

/// A curve as (time, parts).
template <class Time>
std::vector<std::pair<Time, std::uint64_t>> parts(const MemoryCurve<Time>& curve) {
  std::vector<std::pair<Time, std::uint64_t>> steps;
  for (const auto& [at, holds] : curve) steps.emplace_back(at, holds.parts);
  return steps;
}

/// What a curve says of a time.
template <class Time>
Footprint at(const MemoryCurve<Time>& curve, const Time& time) {
  Footprint now;
  for (const auto& step : curve)
    if (!(time < step.at)) now = step.holds;
  return now;
}

using Steps = std::vector<std::pair<double, std::uint64_t>>;
constexpr BufferId data{0};

/// Live activations at `time`, counted from the definition: forwards begun, backwards not ended.
std::uint64_t between_forward_and_backward(const BasicTimeline<Rational>& timeline, Rank rank,
                                           const Rational& time) {
  const Schedule& schedule = timeline.schedule();
  std::int64_t live = 0;
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Action& action = schedule[ActionId{i}];
    if (schedule[action.queue].from != rank) continue;
    const auto& span = timeline[ActionId{i}];
    if (action.kind == Kind::forward && !(time < span.start)) ++live;
    if (action.kind == Kind::backward && !(time < span.end)) --live;
  }
  return static_cast<std::uint64_t>(live);
}

}  // namespace

TEST_CASE("a curve steps where values begin and end, once for all that do at a time") {
  using namespace schedule;
  const Timeline timeline = timeline_of({{{0, 1, 1}, {write(data, 0)}},
                                         {{1, 2, 2}, {write(data, 1, 2)}},
                                         {{4, 5, 5}, {read(data, 0), read(data, 1)}},
                                         {{5, 6, 6}, {write(data, 0)}}},
                                        true, "data");
  const auto use = schedule::memory_use(timeline);
  REQUIRE(use.size() == 1);
  CHECK(parts(use[0].all) == Steps{{0, 1}, {1, 3}, {2, 2}, {5, 1}, {6, 0}});
  CHECK(use[0].all[1].holds == Footprint{3, 30});
  CHECK(schedule::peak(use[0].all) == Footprint{3, 30});
  CHECK(use[0].activations.empty());
  CHECK(use[0].weights.empty());
  CHECK(schedule::peak(use[0].weights) == Footprint{});
}

TEST_CASE("what is held for no time shows as a second step") {
  using namespace schedule;
  const Timeline timeline =
      timeline_of({{{0, 2, 2}, {write(data, 0)}}, {{1, 1, 1}, {write(data, 1)}}}, true, "data");
  CHECK(parts(schedule::memory_use(timeline)[0].all) == Steps{{0, 1}, {1, 2}, {1, 1}, {2, 0}});
}

TEST_CASE("a value that crosses steps is there from the begin or to the end") {
  using namespace schedule;
  // Part 0 is read, and written for the next step; part 1 comes and goes; part 2 nobody touches.
  const Timeline timeline = timeline_of({{{1, 2, 2}, {read(data, 0)}},
                                         {{2, 3, 3}, {write(data, 1)}},
                                         {{3, 4, 4}, {read(data, 1)}},
                                         {{5, 6, 6}, {write(data, 0)}},
                                         {{6, 8, 8}, {}}},
                                        false, role::weights);
  CHECK(parts(schedule::memory_use(timeline)[0].weights) == Steps{{1, 2}, {4, 1}, {5, 2}, {8, 0}});
}

TEST_CASE("a fused pair holds what either needs as long as both last") {
  using namespace schedule;
  const std::vector<Touch> alone = {{{0, 1, 1}, {write(data, 0)}},
                                    {{1, 3, 3}, {write(data, 1)}},
                                    {{3, 4, 4}, {read(data, 0)}},
                                    {{5, 6, 6}, {read(data, 1)}}};
  CHECK(parts(schedule::memory_use(timeline_of(alone, true, role::saved))[0].activations) ==
        Steps{{0, 1}, {1, 2}, {4, 1}, {6, 0}});
  std::vector<Touch> pair = alone;
  pair[0].uses.push_back(write(data, 2));
  pair[1] = {{1, 3, 3}, {write(data, 1), read(data, 2)}, flag::with_next};  // as it is measured
  CHECK(parts(schedule::memory_use(timeline_of(pair, true, role::saved))[0].activations) ==
        Steps{{0, 2}, {1, 3}, {4, 1}, {6, 0}});
  // The second of the two begins its values with the first.
  pair[2].uses = {read(data, 0), write(data, 2)};
  pair[0].uses = {write(data, 0)};
  pair[1].uses = {write(data, 1)};
  CHECK(parts(schedule::memory_use(timeline_of(pair, true, role::saved))[0].activations) ==
        Steps{{0, 1}, {1, 3}, {4, 1}, {6, 0}});
}

TEST_CASE("live activations at any time are the microbatches between forward and backward") {
  for (const int p : {1, 2, 3, 5}) {
    for (const int m : {1, 2, 3, 7}) {
      const schedule::PipelineOptions options{
          .ranks = p, .microbatches = m, .sizes = {.saved = 10, .parameters = 3}};
      const auto one = schedule::one_f_one_b(options);
      for (const Schedule& each : {one, schedule::gpipe(options)}) {
        const auto timeline =
            simulate(each, BasicStageCosts<Rational>{.forward = 2, .backward = 3});
        const auto use = schedule::memory_use(timeline);
        REQUIRE(use.size() == static_cast<std::size_t>(p));
        for (int r = 0; r < p; ++r) {
          const auto& rank = use[static_cast<std::size_t>(r)];
          for (const auto& span : timeline.spans()) {
            const Footprint holds = at(rank.activations, span.end);
            CHECK(holds.parts == between_forward_and_backward(timeline, Rank{r}, span.end));
            CHECK(holds.bytes == 10 * holds.parts);
          }
          CHECK(rank.activations.back().holds == Footprint{});
          const auto live = each.name() == one.name() ? std::min(m, p - r) : m;
          CHECK(schedule::peak(rank.activations).parts == static_cast<std::uint64_t>(live));
          CHECK(parts(rank.weights) == std::vector<std::pair<Rational, std::uint64_t>>{
                                           {Rational{0}, 1}, {timeline.end(), 0}});
          CHECK(schedule::peak(rank.weights).bytes == 3);
        }
      }
    }
  }
}

TEST_CASE("the same function measures: a late backward keeps its activation longer") {
  const Schedule schedule = schedule::one_f_one_b({.ranks = 1, .microbatches = 2});
  // F0 B0 F1 B1 and the update.
  const Timeline measured(schedule, {{0, 1, 1}, {4, 5, 5}, {5, 6, 6}, {6, 7, 7}, {7, 7, 7}});
  CHECK(parts(schedule::memory_use(measured)[0].activations) == Steps{{0, 1}, {7, 0}});
}

TEST_CASE("a rank holds the versions of its weights that microbatches under way began with") {
  // 1F1B with an update after every backward, as PipeDream has it. The first k = min(M, P - r)
  // microbatches use version 0, which stays until the k-th backward; of the M - k others each uses
  // one more, and the newest is there too.
  for (const int p : {1, 2, 3, 5}) {
    for (const int m : {1, 2, 7, 10}) {
      Orders orders = schedule::one_f_one_b(p, m);
      for (auto& rank : orders.ranks) {
        std::vector<Order> list;
        for (const Order& order : rank) {
          list.push_back(order);
          if (order.kind == Kind::backward) list.push_back({Kind::update, order.stage, order.item});
        }
        rank = list;
      }
      const Schedule schedule = weave(orders, {.saved = 10, .parameters = 3});
      const auto timeline =
          simulate(schedule, BasicStageCosts<Rational>{.forward = 2, .backward = 3});
      const auto use = schedule::memory_use(timeline);
      for (int r = 0; r < p; ++r) {
        const auto& rank = use[static_cast<std::size_t>(r)];
        const int k = std::min(m, p - r);
        const auto versions = static_cast<std::uint64_t>(std::min(k, m - k + 2));
        INFO("P=" << p << " M=" << m << " rank " << r);
        CHECK(schedule::peak(rank.weights).parts == versions);
        CHECK(schedule::peak(rank.weights).bytes == 3 * versions);
        CHECK(rank.weights.front().holds.parts == 1);
      }
    }
  }
}

TEST_CASE("a fused pair that is woven holds both of its activations") {
  // Rank 0 has done F0 and does F1 with B0, then B1: 2 and not 1, though B0 is first in the list.
  Orders orders{"fused",
                {{{Kind::forward, Stage{0}, Item{0}},
                  {Kind::backward, Stage{0}, Item{0}, true},
                  {Kind::forward, Stage{0}, Item{1}},
                  {Kind::backward, Stage{0}, Item{1}}}}};
  const BasicStageCosts<Rational> costs{.forward = 2, .backward = 3, .forward_backward = 4};
  const auto fused = schedule::memory_use(simulate(weave(orders), costs));
  CHECK(parts(fused[0].activations) ==
        std::vector<std::pair<Rational, std::uint64_t>>{
            {Rational{0}, 1}, {Rational{2}, 2}, {Rational{6}, 1}, {Rational{9}, 0}});
  orders.ranks[0][1].fused = false;
  CHECK(schedule::peak(schedule::memory_use(simulate(weave(orders), costs))[0].activations).parts ==
        1);
}

}  // namespace test_memory_curves
