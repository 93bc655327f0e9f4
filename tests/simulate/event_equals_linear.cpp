// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Where queues share nothing, the order of time and the order of the list give the same times.

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/simulate.hpp>
#include <heddle/simulate/any_time.hpp>

#include "support/random_schedule.hpp"
#include "support/rational.hpp"
#include "support/shared_costs.hpp"

namespace test_event_equals_linear {

using namespace heddle;

namespace {

constexpr double unlimited = Ports::unlimited;

/// Every ordered pair of ranks has a line of its own which takes no time; so the event engine runs,
/// its messages queue up in its heap, and nothing is shared. Devices have more units than lanes.
Machine lines_of_their_own(int ranks) {
  Machine machine = Machine::uniform(ranks, {.name = "device", .units = 64}, {});
  for (int a = 0; a < ranks; ++a)
    for (int b = 0; b < ranks; ++b) machine.share(text(a, '-', b), unlimited, {{Rank{a}, Rank{b}}});
  return machine;
}
/// Units alone: moves do not enter the heap.
Machine units_alone(int ranks) { return Machine::uniform(ranks, {.units = 64}, {}); }

/// Costs that differ from action to action.
template <class T>
struct Uneven : test::SharedCosts<T> {
  using Base = test::SharedCosts<T>;

  [[nodiscard]] T time(const Schedule& schedule, ActionId id) const {
    return Base::time(schedule, id) * T(1 + static_cast<int>((7 * +id + +id / 3) % 5));
  }
  [[nodiscard]] T fused(const Schedule& schedule, ActionId id) const {
    return Base::fused(schedule, id) + T(static_cast<int>(+id % 3));
  }
  [[nodiscard]] Transfer<T> transfer(const Schedule& schedule, ActionId id) const {
    Transfer<T> transfer = Base::transfer(schedule, id);
    transfer.latency = transfer.latency * T(static_cast<int>(+id % 4));
    return transfer;
  }
  [[nodiscard]] T occupancy(const Schedule&, ActionId, const Shared&) const { return T(0); }
};

template <class T>
void compare(const Schedule& schedule, const BasicStageCosts<T>& stage) {
  const Uneven<T> alone{{stage, Machine::uniform(schedule.ranks(), {}, {})}};
  REQUIRE_FALSE(alone.machine().shares());
  for (const Sending sending : {Sending::eager, Sending::rendezvous}) {
    const auto linear = simulate(schedule, alone, sending);
    for (const Machine& machine :
         {lines_of_their_own(schedule.ranks()), units_alone(schedule.ranks())}) {
      const auto event = simulate(schedule, Uneven<T>{{stage, machine}}, sending);
      for (std::size_t i = 0; i < schedule.size(); ++i) {
        const auto& a = linear.spans()[i];
        const auto& b = event.spans()[i];
        if (!(a.start == b.start && a.end == b.end && a.arrival == b.arrival))
          FAIL(schedule.name() << ", action " << i << " of kind " << schedule[ActionId{i}].kind
                               << ": linear " << a.start << ' ' << a.end << ' ' << a.arrival
                               << ", event " << b.start << ' ' << b.end << ' ' << b.arrival);
      }
    }
  }
}

const StageCosts costs{.forward = 1.25,
                       .backward_input = 1.1,
                       .backward_weight = 0.9,
                       .forward_backward = 2.7,
                       .combine = 0.01,
                       .cast = 0.02,
                       .group = 1.5,
                       .update = 0.3,
                       .user = 0.7,
                       .latency = 0.37,
                       .per_byte = 0.031};

}  // namespace

TEST_CASE("the event engine gives every schedule of the catalogue the times of the linear one") {
  int schedules = 0;
  for (const auto& [ranks, microbatches, stages_per_rank] :
       {std::tuple{2, 4, 2}, {4, 8, 2}, {4, 12, 3}, {8, 16, 2}}) {
    for (const auto& entry : schedule::catalogue()) {
      try {
        compare(weave(entry.orders({ranks, microbatches, stages_per_rank}), {.activation = 24}),
                costs);
        ++schedules;
      } catch (const infeasible&) {  // not for this shape
      }
    }
  }
  CHECK(schedules > 40);
}

TEST_CASE("the event engine gives rings and branches the times of the linear one") {
  for (const int p : {1, 2, 3, 5, 8})
    for (const int c : {1, 3})
      compare(schedule::collective(schedule::Collective::all_reduce, schedule::Algorithm::ring,
                                   {.ranks = p, .bytes = 1000, .chunks = c}),
              costs);
  compare(schedule::flexpipe({.ranks = 4,
                              .microbatches = 8,
                              .interactions = {{0, 0, 1, 1}},
                              .sizes = {.activation = 100}}),
          costs);
}

TEST_CASE("the event engine gives every collective the times of the linear one") {
  int schedules = 0;
  for (const int p : {1, 2, 5, 8})
    for (std::size_t c = 0; c < schedule::collective_count; ++c)
      for (std::size_t a = 0; a < schedule::algorithm_count; ++a) {
        const auto kind = static_cast<schedule::Collective>(c);
        const auto algorithm = static_cast<schedule::Algorithm>(a);
        const schedule::CollectiveOptions options{.ranks = p, .bytes = 8 * 80, .chunks = 2};
        if (!schedule::why_not(kind, algorithm, options).empty()) continue;
        const Schedule apart = collective(kind, algorithm, options);
        compare(apart, costs);
        compare(schedule::share_memory(apart,
                                       std::vector<std::uint32_t>(static_cast<std::size_t>(p), 0)),
                costs);
        ++schedules;
      }
  CHECK(schedules > 60);
}

TEST_CASE("the event engine gives random schedules the times of the linear one") {
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    compare(test::random_schedule(seed, 1 + static_cast<int>(seed % 5), 60), costs);
}

TEST_CASE("the event engine gives random schedules the times of the linear one, exactly") {
  using test::Rational;
  const BasicStageCosts<Rational> exact{.forward = {1, 3},
                                        .backward_input = {1, 2},
                                        .backward_weight = {2, 3},
                                        .combine = {1, 12},
                                        .cast = {1, 6},
                                        .group = {3, 2},
                                        .update = {1, 4},
                                        .user = {5, 12},
                                        .latency = {7, 12},
                                        .per_byte = {1, 24}};
  for (std::uint64_t seed = 1000; seed < 1100; ++seed)
    compare(test::random_schedule(seed, 3, 80), exact);
}

}  // namespace test_event_equals_linear
