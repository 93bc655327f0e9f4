// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// When a rank turns slow, another plan is chosen, and the first one again when it recovers. Steps
// are simulated with noise on a machine that the choice does not know.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/core.hpp>
#include <heddle/core/text.hpp>
#include <heddle/machine.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>
#include <heddle/systems/planners.hpp>

#include "support/complaint.hpp"

namespace test_plan_choice {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using heddle::test::message_of;
using plan::PlanChoice;
using plan::PlanChoiceOptions;

namespace {

constexpr int layers = 12;
constexpr Bytes layer_bytes = 1200;

/// Equal layers: three of them take F = 1 and B = 2 for a microbatch of one sample.
plan::Profile equal_layers() {
  plan::Profile profile{.model = "equal", .input = 4, .layers = {}, .reference = "gpu"};
  constexpr Seconds third = 1.0 / 3;
  profile.layers.assign(layers, {.name = "layer",
                                 .output = 4,
                                 .saved = 4,
                                 .parameters = layer_bytes,
                                 .measured = {{"gpu", 1, 1, {third, third, third, 0}}}});
  return profile;
}

/// Links that cost nothing, or `link`.
Machine four(Link link = {}) {
  return Machine::from_links(std::vector<Device>(4, {.name = "gpu"}), std::vector<Link>(16, link));
}

Plan stages_of(const std::vector<int>& counts, int microbatches) {
  Plan plan{.microbatches = microbatches};
  int layer = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    plan.stages.push_back(
        {.layers = {layer, layer + counts[s]}, .ranks = {Rank{s}}, .samples = {1}});
    layer += counts[s];
  }
  return plan;
}

PlanChoiceOptions options_of(int microbatches) {
  return {.search = {.batch = microbatches, .microbatches = {microbatches}},
          .planners = systems::planners()};
}

/// What really happens: the costs of a plan by the profile, times the slowness of each rank and a
/// random factor for each action.
class Reality {
 public:
  using Time = Seconds;
  Reality(const Plan& plan, const Machine& machine, std::vector<double> slowness, double noise,
          std::uint64_t step)
      : m_costs(plan::costs(plan, equal_layers(), machine)),
        m_slowness(std::move(slowness)),
        m_noise(noise),
        m_random(step, "noise") {}
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    return m_costs.time(schedule, id) * m_slowness[+schedule[schedule[id].queue].from] *
           (1 + m_noise * (2 * m_random.uniform(+id) - 1));
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    return m_costs.transfer(schedule, id);
  }

 private:
  plan::RankCosts m_costs;
  std::vector<double> m_slowness;
  double m_noise;
  Random m_random;
};

Timeline really(const PlanChoice& choice, const std::vector<double>& slowness, double noise,
                std::uint64_t step, const Machine& machine = four()) {
  return simulate(choice.schedule(), Reality(choice.plan(), machine, slowness, noise, step));
}

/// The least time of a step over all divisions of the layers, by trying all of them.
Seconds least_of_all(int microbatches, const std::vector<double>& slowness) {
  Seconds least = std::numeric_limits<Seconds>::infinity();
  plan::for_each_composition(layers, 4, [&](std::span<const int> numbers) {
    const Plan plan = stages_of({numbers.begin(), numbers.end()}, microbatches);
    least = std::min(least, simulate(plan::schedule(plan, equal_layers(), {.ranks = 4}),
                                     Reality(plan, four(), slowness, 0, 0))
                                .makespan());
  });
  return least;
}

}  // namespace

TEST_CASE("a rank that turns half as fast gets fewer layers, and its layers back") {
  // Steps of 55 and 38 1/3, 103 and 70 1/3.
  const struct {
    int microbatches;
    Seconds slow, replanned;
    double gain;
  } cases[] = {{8, 55, 115.0 / 3, 1.43}, {16, 103, 211.0 / 3, 1.46}};
  for (const auto& [microbatches, slow, replanned, gain] : cases) {
    CAPTURE(microbatches);
    PlanChoice choice(equal_layers(), four(), options_of(microbatches));
    const Plan equal = stages_of({3, 3, 3, 3}, microbatches);
    REQUIRE(choice.plan() == equal);
    const std::vector<double> healthy(4, 1), hurt{1, 1, 2, 1};
    constexpr std::int64_t steps = 200, every = 4;
    std::vector<std::pair<std::int64_t, Plan>> changes;
    for (std::int64_t step = 0; step < steps; ++step) {
      const bool slow_now = step >= 40 && step < 120;
      const Timeline timeline =
          really(choice, slow_now ? hurt : healthy, 0.1, static_cast<std::uint64_t>(step));
      if (step % every == every - 1 && choice.observe(timeline, steps - step - 1))
        changes.emplace_back(step, choice.plan());
    }
    REQUIRE(changes.size() == 2);  // exactly one each way
    CHECK(choice.changes() == 2);
    // With the second look at the slow rank, and with the second look after it.
    CHECK(changes[0].first == 40 + 2 * every - 1);
    CHECK(changes[0].second == stages_of({4, 4, 1, 3}, microbatches));
    CHECK(changes[1].first == 120 + 2 * every - 1);
    CHECK(changes[1].second == equal);
    CHECK(choice.slowness(Rank{2}) == choice.slowness(Rank{1}));

    // What the change gains, without noise.
    const auto time_of = [&](const Plan& plan) {
      return simulate(plan::schedule(plan, equal_layers(), {.ranks = 4}),
                      Reality(plan, four(), hurt, 0, 0))
          .makespan();
    };
    CHECK_THAT(time_of(equal), WithinRel(slow, 1e-12));
    CHECK_THAT(time_of(changes[0].second), WithinRel(replanned, 1e-12));
    CHECK(time_of(equal) / time_of(changes[0].second) >= gain);
    CHECK_THAT(least_of_all(microbatches, hurt), WithinRel(replanned, 1e-12));
    // Layer 3 goes to rank 0, layers 6 and 7 to rank 1, each with three times its weights.
    const PlanChoice other(equal_layers(), four(), options_of(microbatches), equal);
    CHECK(plan::moved(other.migration_to(changes[0].second)) ==
          plan::Moved{3 * 3 * layer_bytes, 2});
  }
}

TEST_CASE("nothing changes in 200 steps of noise") {
  for (const std::uint64_t seed : {1000u, 2000u, 3000u}) {
    PlanChoice choice(equal_layers(), four(), options_of(8));
    const std::vector<double> healthy(4, 1);
    for (std::uint64_t step = 0; step < 200; ++step)
      REQUIRE_FALSE(choice.observe(really(choice, healthy, 0.1, seed + step), 1'000'000));
    CHECK(choice.changes() == 0);
    CHECK(choice.considered().size() == 1);  // no search was needed
  }
}

TEST_CASE("a single outlier changes nothing") {
  PlanChoice choice(equal_layers(), four(), options_of(8));
  const std::vector<double> healthy(4, 1), hurt{1, 1, 2, 1};
  for (std::uint64_t step = 0; step < 30; ++step)
    CHECK_FALSE(choice.observe(really(choice, step % 3 == 0 ? hurt : healthy, 0.1, step), 1000));
}

TEST_CASE("a clock that shows no time for a rank changes nothing") {
  PlanChoice choice(equal_layers(), four(), options_of(8));
  for (std::uint64_t step = 0; step < 10; ++step)
    CHECK_FALSE(choice.observe(really(choice, {1, 1, 0, 1}, 0.1, step), 1000));
  CHECK(choice.slowness(Rank{2}) == 1);
}

TEST_CASE("a change is taken only if it pays for the migration") {
  const std::vector<double> hurt{1, 1, 2, 1};
  // A layer's state of 3600 bytes takes a second, so two layers from rank 2 to rank 1 take 2 s. The
  // new plan gains 16 2/3 s a step. Messages of activations hardly take time.
  const Machine machine = four({.latency = 0, .bandwidth = 3600});
  const auto decides = [&](std::int64_t left, Seconds pause, double gain) {
    PlanChoiceOptions options = options_of(8);
    options.pause = pause;
    options.gain = gain;
    PlanChoice choice(equal_layers(), machine, options);
    (void)choice.observe(really(choice, std::vector<double>(4, 1), 0, 0, machine), left);
    (void)choice.observe(really(choice, hurt, 0, 0, machine), left);
    return choice.observe(really(choice, hurt, 0, 0, machine), left);
  };
  CHECK(decides(1, 0, 0.05));
  CHECK_FALSE(decides(0, 0, 0.05));
  CHECK(decides(1, 10, 0.05));
  CHECK_FALSE(decides(1, 20, 0.05));  // the pause takes longer than the step gains
  CHECK(decides(2, 20, 0.05));
  CHECK_FALSE(decides(1'000'000, 0, 0.5));  // 1.43 is below the hysteresis
}

TEST_CASE("equal timelines give equal decisions") {
  const std::vector<double> hurt{1, 2.7, 1, 1};
  PlanChoice ours(equal_layers(), four(), options_of(8)), theirs = ours;
  for (std::uint64_t step = 0; step < 10; ++step) {
    const Timeline timeline = really(ours, hurt, 0.1, step);
    REQUIRE(ours.observe(timeline, 100) == theirs.observe(timeline, 100));
    REQUIRE(ours.plan() == theirs.plan());
  }
  CHECK(ours.changes() == 1);
}

TEST_CASE("a user's planner or a fixed list takes the place of the planners") {
  const std::vector<double> hurt{1, 1, 2, 1};
  PlanChoiceOptions options = options_of(8);
  const Plan equal = stages_of({3, 3, 3, 3}, 8), other = stages_of({4, 3, 2, 3}, 8);
  options.candidates = plan::fixed_plans({equal, other});
  PlanChoice listed(equal_layers(), four(), options);
  CHECK(listed.plan() == equal);
  int asked = 0;
  options.candidates = [&](const plan::PlanProblem& problem, const Plan& present) {
    ++asked;
    return std::vector<Plan>{present.stages.empty() ? equal : plan::rebalanced(present, problem)};
  };
  PlanChoice own(equal_layers(), four(), options);
  for (std::uint64_t step = 0; step < 4; ++step)
    for (PlanChoice* choice : {&listed, &own})
      (void)choice->observe(really(*choice, hurt, 0, step), 50);
  CHECK(listed.plan() == other);
  CHECK(own.plan() == stages_of({4, 4, 1, 3}, 8));
  CHECK(asked == 2);  // at the start, and when the slow rank was seen
  CHECK_THAT(text(own), ContainsSubstring("rank 2 takes 2 of the planned time"));
}

TEST_CASE("with many layers a plan is rebalanced by single moves, and no worse") {
  plan::Profile profile = equal_layers();
  profile.layers.resize(24, profile.layers[0]);
  Machine machine = four();
  machine.set_device(Rank{2}, {.name = "slow", .speed = 0.5});
  const plan::PlanProblem problem(profile, machine, {.batch = 8, .microbatches = {8}});
  const Plan equal = stages_of({6, 6, 6, 6}, 8);
  const auto price = [&](const Plan& plan) {
    return simulate(plan::schedule(plan, profile, {.ranks = 4}),
                    plan::costs(plan, profile, machine))
        .makespan();
  };
  const Plan moves = plan::rebalanced(equal, problem),
             all = plan::rebalanced(equal, problem, 10'000);
  CHECK(price(moves) <= 1.02 * price(all));
  CHECK(price(all) <= price(moves));
  CHECK(price(moves) < price(equal) / 1.3);
}

TEST_CASE("plans of other ranks, layers or batches are refused") {
  const auto refused = [](const Plan& plan) {
    return message_of<contract_error>(
        [&] { PlanChoice(equal_layers(), four(), options_of(8), plan); });
  };
  CHECK_THAT(refused(stages_of({4, 4, 4}, 8)),
             ContainsSubstring("another number of ranks") && ContainsSubstring("it uses 3 ranks"));
  CHECK_THAT(refused(stages_of({3, 3, 2, 2, 2}, 8)), ContainsSubstring("rank 4"));
  CHECK_THAT(refused(stages_of({3, 3, 3, 2}, 8)), ContainsSubstring("layers"));
  CHECK_THAT(refused(stages_of({3, 3, 3, 3}, 4)), ContainsSubstring("4 samples"));
  // migration() does not know the parts of these plans, so a run could not leave or reach them.
  Plan divided = stages_of({6, 3, 3}, 8);
  divided.stages[2].ranks = {Rank{2}, Rank{3}};
  divided.stages[2].tensor = 2;
  CHECK(refused(divided) ==
        "heddle::plan::PlanChoice: the ranks of a group divide layers in a way that only the model "
        "has (the first plan has tensor degree 2 at stage 2, migration() moves the state of degree "
        "1 only); use migration_pieces() with the elements of each rank");
  PlanChoiceOptions options = options_of(8);
  options.candidates = plan::fixed_plans({stages_of({3, 3, 3, 3}, 8), divided});
  CHECK_THAT(message_of<contract_error>([&] { PlanChoice(equal_layers(), four(), options); }),
             ContainsSubstring("a candidate has tensor degree 2 at stage 2"));
  Plan levels = stages_of({3, 3, 3, 3}, 8);
  levels.sharding = "three-level";
  CHECK_THAT(refused(levels), ContainsSubstring("the first plan has the sharding 'three-level'"));
  options.candidates = plan::fixed_plans({stages_of({6, 6}, 8)});
  CHECK_THAT(message_of<contract_error>([&] { PlanChoice(equal_layers(), four(), options); }),
             ContainsSubstring("a candidate has another number of ranks"));
  options.all_ranks = false;
  CHECK(PlanChoice(equal_layers(), four(), options).plan().stages.size() == 2);
  options.candidates = plan::fixed_plans({});
  CHECK_THAT(message_of<infeasible>([&] { PlanChoice(equal_layers(), four(), options); }),
             ContainsSubstring("there is no plan to begin with"));
  options = options_of(8);
  options.planners.clear();
  CHECK_THAT(message_of<contract_error>([&] { PlanChoice(equal_layers(), four(), options); }),
             ContainsSubstring("there are neither planners nor candidates"));
  options = options_of(8);
  options.state = {1, 2};
  CHECK_THAT(message_of<contract_error>([&] { PlanChoice(equal_layers(), four(), options); }),
             ContainsSubstring("2 entries, 12 layers"));
}

}  // namespace test_plan_choice
