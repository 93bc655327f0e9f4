// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Checks the Schedule of a plan: its ranks, samples, bytes and casts against the plan, and its
// simulated time against simulated_step() for random plans.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <heddle/plan.hpp>
#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"

namespace test_plan_schedule {

using namespace heddle;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using test::message_of;
using Random = std::mt19937;

namespace {

int in(Random& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}
double time_in(Random& random) { return std::uniform_real_distribution<>(0.5, 2)(random); }

plan::Profile random_profile(Random& random, int layers) {
  plan::Profile profile{.model = "random", .input = 40, .layers = {}, .reference = "gpu"};
  for (int l = 0; l < layers; ++l) {
    plan::ProfiledLayer layer{.name = "layer",
                              .output = Bytes(4 * in(random, 1, 200)),
                              .saved = 80,
                              .delta = 12,
                              .parameters = Bytes(4 * in(random, 1, 100))};
    layer.measured = {
        {"gpu", 1, 1, {time_in(random), time_in(random), time_in(random), time_in(random)}},
        {"gpu", 1, 4, {5 + time_in(random), 5 + time_in(random), 5 + time_in(random), 9}}};
    profile.layers.push_back(std::move(layer));
  }
  return profile;
}

/// Also measured on two ranks that divide a layer.
plan::Profile with_degrees(Random& random, plan::Profile profile) {
  for (plan::ProfiledLayer& layer : profile.layers)
    layer.measured.push_back(
        {"gpu", 2, 2, {time_in(random), time_in(random), time_in(random), time_in(random)}});
  return profile;
}

/// Devices of several speeds, and a private link with its own bandwidth for each pair.
Machine random_machine(Random& random, int ranks, Seconds latency) {
  std::vector<Device> devices;
  std::vector<Link> links;
  for (int r = 0; r < ranks; ++r) devices.push_back({.name = "other", .speed = time_in(random)});
  for (int i = 0; i < ranks * ranks; ++i)
    links.push_back({latency * time_in(random), 400 * time_in(random)});
  return Machine::from_links(std::move(devices), std::move(links));
}

/// Divides layers and ranks at random; a stage has `most` ranks at most.
Plan random_plan(Random& random, int layers, int ranks, int most) {
  Plan plan{.microbatches = in(random, 1, 6), .schedule = "1f1b"};
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  const int stages = in(random, 1, std::min(layers, ranks));
  const int samples = in(random, most, most + 4);
  int layer = 0, used = 0;
  for (int s = 0; s < stages; ++s) {
    const int last = s + 1 == stages ? layers : in(random, layer + 1, layers - (stages - s - 1));
    const int width = in(random, 1, std::min(most, ranks - used - (stages - s - 1)));
    PlanStage stage{.layers = {layer, last}};
    int left = samples;
    for (int i = 0; i < width; ++i) {
      stage.ranks.push_back(Rank{order[static_cast<std::size_t>(used + i)]});
      stage.samples.push_back(i + 1 == width ? left : in(random, 1, left - (width - i - 1)));
      left -= static_cast<int>(stage.samples.back());
    }
    plan.stages.push_back(std::move(stage));
    layer = last;
    used += width;
  }
  return plan;
}

Seconds simulated(const Plan& plan, const plan::Profile& profile, const Machine& machine) {
  return simulate(plan::schedule(plan, profile, {.ranks = machine.ranks()}),
                  plan::costs(plan, profile, machine))
      .makespan();
}

/// Two stages: three ranks in descending order, then one; rank 2 is left out.
Plan plan_3_to_1() {
  return {.stages = {{.layers = {0, 2}, .ranks = {Rank{4}, Rank{3}, Rank{0}}, .samples = {3, 4, 1}},
                     {.layers = {2, 3}, .ranks = {Rank{1}}, .samples = {8}}},
          .microbatches = 3};
}

}  // namespace

TEST_CASE("with one rank a stage the Schedule takes simulated_step()") {
  Random random(1);
  const std::vector<std::string> names{"1f1b", "gpipe", "dapple", "zb-h1", "zb-h2"};
  for (std::uint64_t c = 0; c < test::cases(60, 5000); ++c) {
    const int layers = in(random, 1, 6), ranks = in(random, 1, 5);
    const plan::Profile profile = random_profile(random, layers);
    const Machine machine = random_machine(random, ranks, 0);
    Plan plan = random_plan(random, layers, ranks, 1);
    plan.schedule = names[c % names.size()];
    plan.buckets = in(random, 1, 3);
    if (c % 3 == 0)
      for (std::size_t s = 0; s + 1 < plan.stages.size(); ++s)
        plan.casts.push_back(s % 2 == 0 ? std::optional(Codec{.type = Scalar::i8, .block = 64})
                                        : std::nullopt);
    const plan::PlanProblem problem(profile, machine, {.batch = plan.batch()});
    INFO("case " << c << ": " << plan);
    CHECK_THAT(simulated(plan, profile, machine),
               WithinRel(plan::simulated_step(plan, problem), 1e-12));
  }
}

TEST_CASE("with shares, latencies or recomputation it is between the busiest rank and the price") {
  Random random(2);
  int faster = 0;
  for (std::uint64_t c = 0; c < test::cases(90, 5000); ++c) {
    const int layers = in(random, 1, 6), ranks = in(random, 2, 7);
    const plan::Profile profile = random_profile(random, layers);
    const Machine machine = random_machine(random, ranks, c % 2 == 0 ? 0 : 0.3);
    Plan plan = random_plan(random, layers, ranks, in(random, 1, 4));
    for (PlanStage& stage : plan.stages) stage.recompute = in(random, 0, 3) == 0;
    plan.buckets = in(random, 0, 1) == 0 ? 1 : in(random, 2, 4);
    const plan::PlanProblem problem(profile, machine, {.batch = plan.batch()});
    const plan::RankCosts costs = plan::costs(plan, profile, machine);
    Seconds busiest = 0;
    for (const PlanStage& stage : plan.stages) {
      const Seconds sum = plan::ring_all_reduce_time(
          machine, stage.ranks, static_cast<double>(profile.parameters(stage.layers)));
      for (const Rank rank : stage.ranks) {
        const plan::LayerTimes& times = costs.times(rank);
        const Seconds passes = times.forward * (stage.recompute ? 2 : 1) + times.backward();
        const Seconds behind = plan.buckets > 1 ? 0 : sum + times.update;
        busiest = std::max(busiest, plan.microbatches * passes + behind);
      }
    }
    INFO("case " << c << ": " << plan);
    const Seconds step = simulated(plan, profile, machine);
    const Seconds price = plan::simulated_step(plan, problem);
    CHECK(step <= price * (1 + 1e-12));
    CHECK(step >= busiest * (1 - 1e-12));
    faster += step < price * 0.999;
  }
  CHECK(faster > 10);
}

TEST_CASE("shares that take equal times over free links take simulated_step()") {
  plan::Profile profile{.model = "even", .input = 4, .layers = {}, .reference = "gpu"};
  profile.layers.assign(
      6, {.output = 4, .saved = 4, .parameters = 4, .measured = {{"gpu", 1, 1, {1, 2, 1, 0.5}}}});
  const Machine machine =
      Machine::from_links({{"gpu"}, {"half", 0.5}, {"double", 2}, {"gpu"}}, std::vector<Link>(16));
  const Plan plan{
      .stages = {{.layers = {0, 3}, .ranks = {Rank{0}, Rank{1}, Rank{2}}, .samples = {2, 1, 4}},
                 {.layers = {3, 6}, .ranks = {Rank{3}}, .samples = {7}}},
      .microbatches = 5};
  const plan::PlanProblem problem(profile, machine, {.batch = plan.batch()});
  // Stage 0: 6 and 18 a microbatch; stage 1: 21 and 63, so it is busy from 6 on; then stage 0 ends.
  // The update of a rank of speed 0.5 takes 3.
  const Seconds expected = 6 + 5 * 84 + 18 + 3;
  CHECK_THAT(plan::simulated_step(plan, problem), WithinRel(expected, 1e-12));
  CHECK_THAT(simulated(plan, profile, machine), WithinRel(expected, 1e-12));
}

TEST_CASE("ranks, samples and bytes of the Schedule are those of the plan") {
  Random random(3);
  const plan::Profile profile = random_profile(random, 3);
  Plan plan = plan_3_to_1();
  plan.stages[0].recompute = true;
  const Schedule made = plan::schedule(plan, profile, {.ranks = 6});
  REQUIRE(made.ranks() == 6);
  CHECK(plan::schedule(plan, profile).ranks() == 5);
  const std::vector<std::int64_t> samples{1, 8, 0, 4, 3, 0};  // by rank
  std::vector<int> forwards(6), again(6);
  std::vector<Bytes> sent(6);
  int sums = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    const ActionId id{i};
    const Action& action = made[id];
    const Queue& queue = made[action.queue];
    if (action.kind == Kind::forward || action.kind == Kind::backward)
      CHECK(schedule::samples_of(made, id) == samples[+queue.from]);
    if (action.kind == Kind::forward)
      ++((action.flags & flag::again) != 0 ? again : forwards)[+queue.from];
    if (action.kind == Kind::move) sent[+queue.from] += made.bytes(made.uses(id).front());
    if (action.kind != Kind::group) continue;
    ++sums;
    CHECK(made.uses(id).size() == 3);
    CHECK(made.bytes(made.uses(id).front()) == profile.parameters({0, 2}));
  }
  CHECK(forwards == std::vector<int>{3, 3, 0, 3, 3, 0});
  CHECK(again == std::vector<int>{3, 0, 0, 3, 3, 0});
  CHECK(sums == 1);
  const Bytes output = 3 * profile.layers[1].output;  // a sample of each microbatch
  CHECK(sent == std::vector<Bytes>{output, 8 * output, 0, 4 * output, 3 * output, 0});
  // What each rank saves, sends and has as weights.
  for (const Buffer& buffer : made.buffers()) {
    const auto share = static_cast<Bytes>(samples[+buffer.rank]);
    const LayerRange layers = plan.stages[+buffer.stage].layers;
    if (made[buffer.label] == role::weights) CHECK(buffer.bytes == profile.parameters(layers));
    if (made[buffer.label] == role::saved)
      CHECK(buffer.bytes % (share * profile.saved(layers)) == 0);
    if (made[buffer.label] == role::output) CHECK(buffer.bytes == share * output);
  }

  // With a cast the same messages have one byte an element, and the two ends of others do not.
  plan.casts = {Codec{.type = Scalar::i8, .block = 0}};
  const Schedule narrow = plan::schedule(plan, profile, {.ranks = 6});
  Bytes bytes = 0, expected = 0;
  for (std::size_t i = 0; i < narrow.size(); ++i)
    if (narrow[ActionId{i}].kind == Kind::move) {
      const Use& use = narrow.uses(ActionId{i}).front();
      CHECK(narrow[use.buffer].type == Scalar::i8);
      bytes += narrow.bytes(use);
    }
  for (const Bytes each : sent) expected += each / 4;
  CHECK(bytes == expected);
}

TEST_CASE("ranks that divide layers share the samples of their group, and sum by parts") {
  Random random(5);
  plan::Profile profile = with_degrees(random, random_profile(random, 3));
  for (plan::ProfiledLayer& layer : profile.layers) layer.parameters *= 2;
  Plan plan{.stages = {{.layers = {0, 2},
                        .ranks = {Rank{4}, Rank{3}, Rank{0}, Rank{2}},
                        .samples = {4, 2},
                        .tensor = 2},
                       {.layers = {2, 3}, .ranks = {Rank{1}}, .samples = {6}}},
            .microbatches = 3};
  const Schedule made = plan::schedule(plan, profile);
  const std::vector<std::int64_t> samples{1, 6, 1, 2, 2};  // by rank, between the layers
  std::vector<Bytes> sent(5);
  std::vector<std::vector<Rank>> sums;
  for (std::size_t i = 0; i < made.size(); ++i) {
    const ActionId id{i};
    const Action& action = made[id];
    const Rank from = made[action.queue].from;
    if (action.kind == Kind::forward) CHECK(schedule::samples_of(made, id) == samples[+from]);
    if (action.kind == Kind::move) sent[+from] += made.bytes(made.uses(id).front());
    if (action.kind != Kind::group) continue;
    std::vector<Rank>& ranks = sums.emplace_back();
    for (const Use& use : made.uses(id)) {
      ranks.push_back(made[use.buffer].rank);
      CHECK(made.bytes(use) == profile.parameters({0, 2}, 2));
    }
  }
  CHECK(sums == std::vector<std::vector<Rank>>{{Rank{4}, Rank{0}}, {Rank{3}, Rank{2}}});
  const Bytes output = 3 * profile.layers[1].output;
  CHECK(sent == std::vector<Bytes>{output, 6 * output, output, 2 * output, 2 * output});
  // A group alone has nothing to sum.
  plan.stages[0] = {.layers = {0, 2}, .ranks = {Rank{2}, Rank{0}}, .samples = {6}, .tensor = 2};
  const Schedule alone = plan::schedule(plan, profile);
  CHECK(std::ranges::none_of(alone.actions(),
                             [](const Action& action) { return action.kind == Kind::group; }));
}

TEST_CASE("with tensor degrees it is between the busiest rank and the price") {
  Random random(6);
  int divided = 0;
  for (std::uint64_t c = 0; c < test::cases(60, 5000); ++c) {
    const int layers = in(random, 1, 6), ranks = in(random, 1, 4);
    const plan::Profile profile = with_degrees(random, random_profile(random, layers));
    const Machine machine = random_machine(random, 2 * ranks, c % 2 == 0 ? 0 : 0.3);
    Plan plan = random_plan(random, layers, ranks, in(random, 1, 3));
    for (PlanStage& stage : plan.stages) {
      for (std::int64_t& samples : stage.samples) samples *= 2;
      if (in(random, 0, 1) == 0) continue;
      stage.tensor = 2;
      ++divided;
      for (std::size_t i = 0; i < stage.ranks.size(); i += 2)  // beside each of them another one
        stage.ranks.insert(stage.ranks.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                           Rank{+stage.ranks[i] + static_cast<std::size_t>(ranks)});
    }
    const plan::PlanProblem problem(profile, machine, {.batch = plan.batch()});
    const plan::RankCosts costs = plan::costs(plan, profile, machine);
    Seconds busiest = 0;
    for (const PlanStage& stage : plan.stages)
      for (const Rank rank : stage.ranks)
        busiest = std::max(busiest, plan.microbatches *
                                        (costs.times(rank).forward + costs.times(rank).backward()));
    INFO("case " << c << ": " << plan);
    const Seconds step = simulated(plan, profile, machine);
    CHECK(step <= plan::simulated_step(plan, problem) * (1 + 1e-12));
    CHECK(step >= busiest * (1 - 1e-12));
  }
  CHECK(divided > 30);
}

TEST_CASE("ranks that divide sequences hand on among themselves and sum their gradients") {
  Random random(5);
  for (const int tensor : {1, 2}) {
    const plan::Profile profile = with_degrees(random, random_profile(random, 3));
    // Group after group; in a group part after part of the sequences.
    Plan plan{.stages = {{.layers = {0, 1}, .ranks = {7, 2, 0, 5}, .samples = {4}},
                         {.layers = {1, 3}, .ranks = {1, 3, 4, 6}, .samples = {4}}},
              .microbatches = 3,
              .schedule = "1f1b"};
    for (PlanStage& stage : plan.stages) {
      stage.tensor = tensor;
      stage.sequence = 2;
      if (tensor == 1) stage.samples = {3, 1};
    }
    const auto part_of = [&](Rank rank) {
      for (const PlanStage& stage : plan.stages)
        for (std::size_t i = 0; i < stage.ranks.size(); ++i)
          if (stage.ranks[i] == rank) return static_cast<int>(i) / tensor % 2;
      return -1;
    };
    const Schedule made = plan::schedule(plan, profile);
    CHECK(made.ranks() == 8);
    std::vector<Bytes> moved(2, 0);  // by part
    std::vector<int> sums(8, 0);     // by rank
    for (std::size_t i = 0; i < made.size(); ++i) {
      const Action& action = made[ActionId{i}];
      const Queue& queue = made[action.queue];
      if (action.kind == Kind::move && !queue.local()) {
        CHECK(part_of(queue.from) == part_of(queue.to));
        moved[static_cast<std::size_t>(part_of(queue.from))] +=
            made.bytes(made.uses(ActionId{i})[0]);
      }
      if (action.kind != Kind::group) continue;
      CHECK(made.uses(ActionId{i}).size() == (tensor == 1 ? 4 : 2));
      for (const Use& use : made.uses(ActionId{i})) ++sums[+made[use.buffer].rank];
    }
    // Activations and their gradients: half of every sample for each part, in whole elements.
    const Bytes half = (profile.layers[0].output + 7) / 8 * 4;
    CHECK(moved == std::vector<Bytes>(2, 2 * 3 * 4 * half));
    CHECK(sums == std::vector<int>(8, 1));
    // Each rank takes the time of half of its group's samples.
    const Machine machine = Machine::uniform(8, {.name = "gpu"}, {1e-3, 1e3});
    const plan::RankCosts costs = plan::costs(plan, profile, machine);
    const PlanStage& first = plan.stages[0];
    for (std::size_t i = 0; i < first.ranks.size(); ++i)
      CHECK(costs.times(first.ranks[i]).forward ==
            profile
                .times(
                    first.layers, machine.device(first.ranks[i]), tensor,
                    static_cast<double>(first.samples[i / (2 * static_cast<std::size_t>(tensor))]) /
                        2)
                .forward);
  }
}

TEST_CASE("schedule() names what it cannot express") {
  Random random(4);
  const plan::Profile profile = random_profile(random, 3);
  Plan divided = plan_3_to_1();
  divided.stages[1].sequence = 2;
  divided.stages[1].ranks.push_back(Rank{2});
  CHECK_THAT(message_of<contract_error>([&] { (void)plan::schedule(divided, profile); }),
             ContainsSubstring("stage 0 has sequence degree 1, stage 1 has 2"));
  CHECK_THAT(message_of<contract_error>(
                 [&] { (void)plan::costs(divided, profile, random_machine(random, 5, 0)); }),
             ContainsSubstring("stage 0 has sequence degree 1, stage 1 has 2"));
  divided.stages[1].sequence = 1;
  divided.stages[1].tensor = 2;
  for (PlanStage& stage : divided.stages) stage.samples.back() += 1;
  CHECK_THAT(message_of<contract_error>([&] { (void)plan::schedule(divided, profile); }),
             ContainsSubstring("stage 1, group 0 has 9 samples and tensor degree 2") &&
                 ContainsSubstring("executable"));
  // Bytes a sample are rounded up to whole elements: two of f32, or three of f16.
  plan::Profile odd = profile, even = profile;
  odd.layers[1].output = 6;
  even.layers[1].output = 8;
  for (const Scalar type : {Scalar::f32, Scalar::f16}) {
    const Schedule a = plan::schedule(plan_3_to_1(), odd, {.type = type});
    const Schedule b = plan::schedule(plan_3_to_1(), even, {.type = type});
    Bytes of_a = 0, of_b = 0;
    for (const Buffer& buffer : a.buffers()) of_a += buffer.bytes;
    for (const Buffer& buffer : b.buffers()) of_b += buffer.bytes;
    CHECK((of_a == of_b) == (type == Scalar::f32));
  }
  CHECK_THROWS_AS(plan::schedule(plan_3_to_1(), profile, {.ranks = 4}), contract_error);
  Plan other = plan_3_to_1();
  other.schedule = "interleaved";
  other.microbatches = 4;
  other.schedule = "chimera";
  CHECK_THAT(message_of<contract_error>([&] { (void)plan::schedule(other, profile); }),
             ContainsSubstring("plan::schedule") && ContainsSubstring("does not fit the plan"));
  other.schedule = "pipedream";
  CHECK_THROWS_AS(plan::schedule(other, profile), contract_error);
}

TEST_CASE("the Schedule of a plan is proved equal to the serial step") {
  Random random(7);
  const std::vector<std::string> names{"1f1b", "gpipe", "dapple", "zb-h1", "zb-h2"};
  for (std::uint64_t c = 0; c < test::cases(60, 3000); ++c) {
    const int layers = in(random, 1, 6), ranks = in(random, 1, 5);
    const plan::Profile profile = random_profile(random, layers);
    Plan plan = random_plan(random, layers, ranks, 4);
    plan.schedule = names[c % names.size()];
    plan.buckets = in(random, 1, 3);
    int sequence = in(random, 1, 2);
    for (PlanStage& stage : plan.stages) {
      stage.recompute = in(random, 0, 2) == 0;
      stage.sequence = sequence;
      std::vector<Rank> all;  // each rank, and one behind the ranks of all others
      for (const Rank rank : stage.ranks)
        for (int part = 0; part < sequence; ++part)
          all.push_back(Rank{static_cast<int>(+rank) + part * ranks});
      stage.ranks = all;
    }
    if (c % 3 == 0)
      for (std::size_t s = 0; s + 1 < plan.stages.size(); ++s)
        plan.casts.push_back(s % 2 == 0 ? std::optional(Codec{.type = Scalar::f16}) : std::nullopt);
    INFO("case " << c << ": " << plan);
    const int all_ranks = sequence * ranks + 1;  // the last one is left out
    const Schedule made = plan::schedule(plan, profile, {.ranks = all_ranks});
    schedule::SerialStep step = schedule::serial_step(plan, all_ranks);
    REQUIRE(schedule::why_not_equivalent(made, step) == "");
    step.microbatches += 1;
    REQUIRE(schedule::why_not_equivalent(made, step).find("lacks microbatch") != std::string::npos);
  }
}

}  // namespace test_plan_schedule
