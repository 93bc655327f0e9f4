// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// Stages whose ranks divide the samples of every microbatch, and microbatches of unequal sizes:
// losses and gradients of the serial model. In whole numbers, so that equal means equal.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/comm/planned_mesh.hpp>
#include <heddle/heddle.hpp>
#include <heddle/plan/plan_schedule.hpp>
#include <heddle/schedule/pass/in_shares.hpp>
#include <heddle/schedule/pass/recompute.hpp>

#include "support/cases.hpp"
#include "support/complaint.hpp"
#include "support/world.hpp"

namespace test_pipeline_shares {

namespace hd = heddle;
using hd::schedule::in_shares;
using hd::test::world_size;

namespace {

constexpr std::size_t width = 2;
constexpr int layers = 4;

double datum(std::size_t item, std::size_t sample, std::size_t d) {
  return static_cast<double>(1 + item + 2 * sample + 3 * d);
}
/// The weight of the sample in the loss.
double target(std::size_t item, std::size_t sample, std::size_t d) {
  return static_cast<double>(1 + (item + sample + d) % 3);
}
double first_weight(std::size_t layer, std::size_t d) {
  return static_cast<double>(1 + (layer + d) % 3);
}
/// The optimiser: weights stay small whole numbers.
double next_weight(double gradient) { return std::fmod(gradient, 5) + 1; }

struct Expected {
  std::vector<double> losses;                       ///< by step
  std::vector<std::vector<double>> last_gradients;  ///< by layer
  std::vector<std::vector<double>> last_weights;    ///< by layer
};

/// The layers y = w x + 1 one after another, sample by sample.
Expected serial(const hd::StageShares& shares, std::size_t items, int steps) {
  std::vector<std::vector<double>> weights(layers);
  for (std::size_t l = 0; l < layers; ++l)
    for (std::size_t d = 0; d < width; ++d) weights[l].push_back(first_weight(l, d));
  Expected expected;
  for (int step = 0; step < steps; ++step) {
    std::vector gradients(layers, std::vector<double>(width, 0));
    double loss = 0;
    for (std::size_t m = 0; m < items; ++m)
      for (std::size_t i = 0; i < static_cast<std::size_t>(shares.samples_of(hd::Item{m})); ++i)
        for (std::size_t d = 0; d < width; ++d) {
          std::vector<double> x{datum(m, i, d)};
          for (std::size_t l = 0; l < layers; ++l) x.push_back(weights[l][d] * x[l] + 1);
          loss += target(m, i, d) * x.back();
          double gradient = target(m, i, d);
          for (std::size_t l = layers; l-- > 0;) {
            gradients[l][d] += gradient * x[l];
            gradient *= weights[l][d];
          }
        }
    for (std::size_t l = 0; l < layers; ++l)
      for (std::size_t d = 0; d < width; ++d) weights[l][d] = next_weight(gradients[l][d]);
    expected.losses.push_back(loss);
    expected.last_gradients = gradients;
    expected.last_weights = weights;
  }
  return expected;
}

/// Those layers of one place, for its samples.
class ShareStage {
 public:
  using scalar_type = double;
  using memory_space = Kokkos::HostSpace;

  ShareStage(const hd::StagePlace& place, const hd::StageShares& shares)
      : m_place(place), m_shares(shares), m_gradients(count() * width) {
    while (m_shares.range(place.stage, m_number, m_shares.samples) != place.samples) ++m_number;
    for (std::size_t l = 0; l < count(); ++l)
      for (std::size_t d = 0; d < width; ++d) m_weights.push_back(first_weight(first() + l, d));
  }

  std::size_t input_size() const { return first() == 0 ? 0 : elements(); }
  std::size_t output_size() const { return m_place.layers.last == layers ? 0 : elements(); }
  std::size_t saved_size() const { return count() * elements(); }
  std::size_t delta_size() const { return count() * elements(); }
  std::size_t parameter_count() const { return m_weights.size(); }
  double* parameters() { return m_weights.data(); }
  double* gradients() { return m_gradients.data(); }
  const hd::StagePlace& place() const { return m_place; }

  void forward(const hd::ForwardCall<double>& call) {
    const auto range = range_of(call.item, call.samples);
    double loss = 0;
    for (std::size_t i = 0; i < call.samples * width; ++i) {
      const std::size_t sample = range + i / width, d = i % width;
      double x = first() == 0 ? datum(+call.item, sample, d) : call.input[i];
      for (std::size_t l = 0; l < count(); ++l) {
        call.saved[i * count() + l] = x;
        x = m_weights[l * width + d] * x + 1;
      }
      if (output_size() > 0)
        call.output[i] = x;
      else
        loss += target(+call.item, sample, d) * x;
    }
    m_losses.resize(std::max(m_losses.size(), +call.item + 1));
    m_losses[+call.item] = loss;
  }
  void backward_input(const hd::BackwardCall<double>& call) {
    const auto range = range_of(call.item, call.samples);
    for (std::size_t i = 0; i < call.samples * width; ++i) {
      const std::size_t sample = range + i / width, d = i % width;
      double gradient = output_size() > 0 ? call.output_grad[i] : target(+call.item, sample, d);
      for (std::size_t l = count(); l-- > 0;) {
        call.delta[i * count() + l] = gradient;
        gradient *= m_weights[l * width + d];
      }
      if (first() > 0) call.input_grad[i] = gradient;
    }
  }
  void backward_weight(const hd::BackwardCall<double>& call) {
    for (std::size_t i = 0; i < call.samples * width; ++i)
      for (std::size_t l = 0; l < count(); ++l)
        m_gradients[l * width + i % width] +=
            call.delta[i * count() + l] * call.saved[i * count() + l];
  }
  void zero_gradients() { m_gradients.assign(m_gradients.size(), 0); }
  void update() { update(0, m_weights.size()); }
  void update(std::size_t begin, std::size_t size) {
    for (std::size_t i = begin; i < begin + size; ++i) m_weights[i] = next_weight(m_gradients[i]);
  }
  void fence() const {}
  double loss(hd::Item item) const { return m_losses[+item]; }

  template <class Visitor>
  void visit_state(Visitor&& visitor) {
    for (std::size_t l = 0; l < count(); ++l)
      visitor(hd::whole_array<memory_space>(static_cast<int>(l), "weights",
                                            m_weights.data() + l * width, width));
  }

 private:
  std::size_t first() const { return static_cast<std::size_t>(m_place.layers.first); }
  std::size_t count() const {
    return static_cast<std::size_t>(m_place.layers.last - m_place.layers.first);
  }
  std::size_t elements() const { return static_cast<std::size_t>(m_place.samples.size()) * width; }
  /// The first sample of a microbatch here. The call must have the samples of this share.
  std::size_t range_of(hd::Item item, std::size_t samples) const {
    const hd::SampleRange range =
        m_shares.range(m_place.stage, m_number, m_shares.samples_of(item));
    // Not by REQUIRE: stages of several ranks compute on threads.
    if (static_cast<std::size_t>(range.size()) != samples)
      throw hd::contract_error(
          {"test", "a call with other samples", hd::text(range.size(), ", ", samples)});
    return static_cast<std::size_t>(range.begin);
  }

  hd::StagePlace m_place;
  hd::StageShares m_shares;
  std::size_t m_number = 0;
  std::vector<double> m_weights, m_gradients, m_losses;
};

/// Trains two steps on the mesh and compares. `lines` lines compute the same samples.
void check(const hd::Orders& plain, const hd::StageShares& shares, std::size_t items,
           int lines = 1) {
  INFO(plain.name);
  const hd::Orders orders = in_shares(plain, shares);
  const int pipe = static_cast<int>(orders.ranks.size());
  REQUIRE(pipe * lines == world_size());
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"data", lines}, {"pipe", pipe}});
  hd::Stages<ShareStage> model(
      layers, [&](const hd::StagePlace& place) { return ShareStage(place, shares); });
  hd::Runner run(model, weave(orders), mesh);
  const int steps = lines == 1 ? 2 : 1;
  const Expected expected = serial(shares, items, steps);
  for (int step = 0; step < steps; ++step)
    CHECK(run.step().loss == lines * expected.losses[static_cast<std::size_t>(step)]);
  model.for_each([&](hd::Stage number, ShareStage& stage) {
    INFO("stage " << number);
    for (std::size_t i = 0; i < stage.parameter_count(); ++i) {
      const auto layer = static_cast<std::size_t>(stage.place().layers.first) + i / width;
      CHECK(stage.gradients()[i] == lines * expected.last_gradients[layer][i % width]);
    }
  });
}

}  // namespace

TEST_CASE("stages in shares have the losses and gradients of the serial model") {
  using hd::StageShares;
  const std::vector<std::int64_t> unequal{8, 8, 5};
  std::vector<StageShares> all;
  if (world_size() == 1) all = {{8, {{8}}}, {8, {{8}}, unequal}};
  if (world_size() == 2) all = {{8, {{5, 3}}}, {8, {{5, 3}}, unequal}, {8, {{8}, {8}}, unequal}};
  if (world_size() == 3)
    all = {{8, {{3, 3, 2}}}, {8, {{5, 3}, {8}}, unequal}, {8, {{8}, {2, 6}}, unequal}};
  if (world_size() == 4)
    all = {{8, {{3, 3, 2}, {8}}},
           {8, {{5, 3}, {2, 6}}, unequal},
           {8, {{8}, {2, 6}, {8}}, unequal},
           {8, {{8}, {8}, {8}, {8}}, unequal}};
  for (const StageShares& shares : all) {
    const int stages = static_cast<int>(shares.stages.size());
    for (const hd::Orders& orders :
         {hd::schedule::gpipe(stages, 3), hd::schedule::one_f_one_b(stages, 3),
          hd::schedule::zb_h1(stages, 3)})
      check(orders, shares, 3);
  }
}

TEST_CASE("several stages on a rank, and lines of stages in shares") {
  if (world_size() != 4) return;
  // ZB-V: ranks 2 and 3 have stages 1 and 2, and copy the samples that they keep.
  check(hd::schedule::zb_v(2, 4), {8, {{5, 3}, {4, 4}, {1, 7}, {6, 2}}}, 4);
  check(hd::schedule::interleaved(2, 2, 4), {8, {{5, 3}, {4, 4}, {1, 7}, {6, 2}}}, 4);
  check(hd::schedule::one_f_one_b(1, 3), {8, {{5, 3}}}, 3, 2);
}

TEST_CASE("the guide's 8 samples in 3 microbatches, and a stage made for whole microbatches") {
  if (world_size() != 2) return;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 2}});
  const hd::StageShares shares{
      .samples = 3, .stages = {{3}, {3}}, .microbatches = hd::schedule::microbatch_sizes(8, 3)};
  const hd::Orders orders = in_shares(hd::schedule::one_f_one_b(2, 3), shares);
  hd::Stages<ShareStage> model(
      layers, [&](const hd::StagePlace& place) { return ShareStage(place, shares); });
  hd::Runner run(model, weave(orders), mesh);
  CHECK(run.step().loss == serial(shares, 3, 1).losses[0]);
  // Two ranks of one stage, each of which builds it for a whole microbatch of 7 samples.
  const hd::StageShares divided{7, {{4, 3}}};
  hd::Stages<ShareStage> whole(layers, [&](const hd::StagePlace& place) {
    return ShareStage({place.stage, place.layers, {0, 7}}, {7, {{7}}});
  });
  CHECK_THAT(hd::test::message_of<hd::contract_error>([&] {
               hd::Runner refused(whole, weave(in_shares(hd::schedule::gpipe(1, 2), divided)),
                                  mesh);
             }),
             Catch::Matchers::ContainsSubstring("make the stage for StagePlace::samples"));
}

namespace {

/// Layers of any cost: stages say their sizes themselves.
hd::plan::Profile any_profile() {
  hd::plan::Profile profile{.model = "any"};
  profile.layers.assign(layers, {.output = 8, .saved = 8, .delta = 8, .parameters = 8});
  return profile;
}

/// Trains two steps by a plan on its PlannedMesh, and compares. If replicas divide the update, only
/// a part of the gradients of each is a sum, and the weights are compared.
void check_plan(const hd::Plan& plan, hd::GradientSum sum) {
  INFO(plan);
  hd::PlannedMesh places(MPI_COMM_WORLD, plan, {.ranks = world_size()});
  hd::StageShares shares{.samples = plan.microbatch_samples()};
  const hd::Plan buckets = hd::schedule::in_buckets(plan);
  for (const hd::PlanStage& stage : buckets.stages) shares.stages.push_back(stage.samples);
  hd::Stages<ShareStage> model(
      layers, [&](const hd::StagePlace& place) { return ShareStage(place, shares); },
      {.gradient_sum = sum});
  hd::Runner run(model, hd::plan::schedule(plan, any_profile(), {.ranks = world_size()}), places);
  const auto items = static_cast<std::size_t>(plan.microbatches);
  const Expected expected = serial(shares, items, 2);
  for (int step = 0; step < 2; ++step)
    CHECK(run.step().loss == expected.losses[static_cast<std::size_t>(step)]);
  int held = 0;  // layers
  model.for_each([&](hd::Stage number, ShareStage& stage) {
    held += stage.place().layers.size();
    CHECK((plan.bucket_count() > 1 || places.stage() == +number));
    CHECK(stage.place().layers == buckets.stages[+number].layers);
    CHECK(stage.place().samples == places.samples());
    for (std::size_t i = 0; i < stage.parameter_count(); ++i) {
      const auto layer = static_cast<std::size_t>(stage.place().layers.first) + i / width;
      CHECK(stage.parameters()[i] == expected.last_weights[layer][i % width]);
      if (sum != hd::GradientSum::sharded)
        CHECK(stage.gradients()[i] == expected.last_gradients[layer][i % width]);
    }
  });
  CHECK(held == (places.stage() ? plan.stages[*places.stage()].layers.size() : 0));
}

}  // namespace

TEST_CASE("plans on a PlannedMesh have the losses and gradients of the serial model") {
  using hd::Rank;
  std::vector<hd::Plan> plans;
  const auto add = [&](std::vector<hd::PlanStage> stages) {
    plans.push_back({.stages = std::move(stages), .microbatches = 3});
  };
  if (world_size() == 1) add({{.layers = {0, 4}, .ranks = {Rank{0}}, .samples = {8}}});
  if (world_size() == 2) {
    add({{.layers = {0, 4}, .ranks = {Rank{1}, Rank{0}}, .samples = {6, 2}}});
    add({{.layers = {0, 4}, .ranks = {Rank{1}}, .samples = {8}}});  // rank 0 is left out
    add({{.layers = {0, 1}, .ranks = {Rank{1}}, .samples = {2}, .recompute = true},
         {.layers = {1, 4}, .ranks = {Rank{0}}, .samples = {2}}});
  }
  if (world_size() == 3) {
    add({{.layers = {0, 4}, .ranks = {Rank{2}, Rank{0}, Rank{1}}, .samples = {4, 2, 2}}});
    add({{.layers = {0, 3}, .ranks = {Rank{2}, Rank{0}}, .samples = {6, 2}, .recompute = true},
         {.layers = {3, 4}, .ranks = {Rank{1}}, .samples = {8}}});
  }
  if (world_size() == 4) {
    add({{.layers = {0, 1}, .ranks = {Rank{3}, Rank{1}}, .samples = {5, 3}},
         {.layers = {1, 4}, .ranks = {Rank{0}, Rank{2}}, .samples = {2, 6}, .recompute = true}});
    add({{.layers = {0, 2}, .ranks = {Rank{1}}, .samples = {8}},
         {.layers = {2, 4}, .ranks = {Rank{3}, Rank{2}, Rank{0}}, .samples = {4, 2, 2}}});
  }
  for (hd::Plan& plan : plans)
    for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
      plan.schedule = schedule;
      for (const int buckets : {1, 2, 8}) {
        plan.buckets = buckets;
        for (const auto sum :
             {hd::GradientSum::ring, hd::GradientSum::library, hd::GradientSum::sharded})
          check_plan(plan, sum);
      }
    }
}

namespace {

/// Returns the numbers `parts` in random order that sum up to `sum`, each at least 1.
std::vector<int> random_parts(std::mt19937& random, int sum, int parts) {
  std::vector<int> cuts(static_cast<std::size_t>(sum - 1));
  std::iota(cuts.begin(), cuts.end(), 1);
  std::ranges::shuffle(cuts, random);
  cuts.resize(static_cast<std::size_t>(parts - 1));
  cuts.push_back(sum);
  std::ranges::sort(cuts);
  std::adjacent_difference(cuts.begin(), cuts.end(), cuts.begin());
  return cuts;
}

constexpr int samples = 8, items = 3;

/// Returns a plan of some of `ranks` ranks in random order, in stages of any numbers of ranks.
hd::Plan random_plan(std::mt19937& random, int ranks) {
  std::vector<int> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  const auto below = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  const int used = below(4) == 0 ? 1 + below(ranks) : ranks;
  const int stages = 1 + below(std::min(used, layers));
  hd::Plan plan{.microbatches = items, .schedule = below(2) == 0 ? "1f1b" : "gpipe"};
  const std::vector<int> groups = random_parts(random, used, stages),
                         counts = random_parts(random, layers, stages);
  auto next = order.begin();
  int layer = 0;
  for (std::size_t s = 0; s < groups.size(); ++s) {
    hd::PlanStage stage{.layers = {layer, layer + counts[s]}};
    layer += counts[s];
    for (int g = 0; g < groups[s]; ++g) stage.ranks.push_back(hd::Rank{*next++});
    for (const int each : random_parts(random, samples, groups[s])) stage.samples.push_back(each);
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

hd::StageShares shares_of(const hd::Plan& plan) {
  hd::StageShares shares{.samples = plan.microbatch_samples()};
  for (const hd::PlanStage& stage : plan.stages) shares.stages.push_back(stage.samples);
  return shares;
}

/// Trains a step by each of `plans`. `begin(plan)` tells the place or the model.
template <class P, class Begin>
void walk(const std::vector<hd::Plan>& plans, P& place, hd::Stages<ShareStage>& model,
          Begin&& begin) {
  const Expected expected = serial({.samples = samples}, items, static_cast<int>(plans.size()));
  const int ranks = hd::transport_of(place).size();
  const std::vector<hd::Bytes> sizes(layers, width * sizeof(double));
  for (std::size_t step = 0; step < plans.size(); ++step) {
    begin(plans[step]);
    hd::Runner run(model, hd::plan::schedule(plans[step], any_profile(), {.ranks = ranks}), place);
    if (step > 0 && plans[step].stages != plans[step - 1].stages) {
      // What a rank has now and had not before, layer by layer.
      hd::Bytes lacking = 0;
      const auto holds = [&](const hd::Plan& plan, int rank, int layer) {
        return std::ranges::any_of(plan.stages, [&](const hd::PlanStage& stage) {
          return stage.layers.first <= layer && layer < stage.layers.last &&
                 std::ranges::find(stage.ranks, hd::Rank{rank}) != stage.ranks.end();
        });
      };
      for (int rank = 0; rank < ranks; ++rank)
        for (int layer = 0; layer < layers; ++layer)
          if (holds(plans[step], rank, layer) && !holds(plans[step - 1], rank, layer))
            lacking += sizes[0];
      const hd::plan::Moved priced =
          hd::plan::moved(hd::plan::migration(plans[step - 1], plans[step], sizes, ranks));
      if (model.migrated().bytes != lacking || priced.bytes != lacking)
        throw hd::contract_error(
            {"test", "other bytes moved",
             hd::text(model.migrated().bytes, ", ", priced.bytes, ", ", lacking)});
    }
    const double loss = run.step().loss;
    if (loss != expected.losses[step])
      throw hd::contract_error(
          {"test", "another loss", hd::text(loss, " instead of ", expected.losses[step])});
    run.drain();
  }
}

std::vector<hd::Plan> random_plans(std::uint32_t seed, int ranks, std::uint64_t count) {
  std::mt19937 random(seed);
  std::vector<hd::Plan> plans;
  while (plans.size() < count) plans.push_back(random_plan(random, ranks));
  return plans;
}

}  // namespace

TEST_CASE("a model goes from plan to plan with other stages, replicas and shares") {
  const int ranks = world_size();
  const auto plans = random_plans(5, ranks, hd::test::cases(30, 1000));
  hd::PlannedMesh places(MPI_COMM_WORLD);
  hd::Stages<ShareStage> model(layers, [](const hd::StagePlace& place) {
    return ShareStage(place, shares_of(place.mesh->plan()));
  });
  CHECK_NOTHROW(walk(plans, places, model, [&](const hd::Plan& plan) { places.begin_plan(plan); }));
}

TEST_CASE("a model goes from plan to plan on threads, too") {
  if (world_size() != 1) return;
  for (const int ranks : {2, 3, 4, 5}) {
    const auto plans = random_plans(static_cast<std::uint32_t>(ranks), ranks, 10);
    CHECK_NOTHROW(hd::run_threads(ranks, [&](hd::ThreadTransport& transport) {
      hd::Plan plan;
      hd::Stages<ShareStage> model(
          layers, [&](const hd::StagePlace& place) { return ShareStage(place, shares_of(plan)); });
      walk(plans, transport, model, [&](const hd::Plan& next) {
        plan = next;
        model.begin_plan(next);
      });
    }));
  }
}

TEST_CASE("replicas divide updates only of stages that can update a part") {
  if (world_size() != 2) return;
  struct WholeStage : ShareStage {
    using ShareStage::ShareStage;
    void update() { ShareStage::update(); }
  };
  const hd::StageShares shares{4, {{3, 1}}};
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 2}});
  hd::Stages<WholeStage> model(
      layers, [&](const hd::StagePlace& place) { return WholeStage(place, shares); },
      {.gradient_sum = hd::GradientSum::sharded});
  const auto orders = in_shares(hd::schedule::gpipe(1, 2), shares);
  CHECK_THAT(hd::test::message_of<hd::contract_error>(
                 [&] { hd::Runner refused(model, weave(orders), mesh); }),
             Catch::Matchers::ContainsSubstring("add the member update(first, count)"));
}

TEST_CASE("Stages rejects a plan of another model, and a schedule of another plan") {
  if (world_size() != 2) return;
  const hd::Plan plan{
      .stages = {{.layers = {0, 4}, .ranks = {hd::Rank{0}, hd::Rank{1}}, .samples = {3, 1}}}};
  hd::PlannedMesh places(MPI_COMM_WORLD, plan);
  const auto run = [&](int count, const hd::Plan& scheduled) {
    hd::Stages<ShareStage> model(count, [&](const hd::StagePlace& place) {
      return ShareStage(place, {4, {{3, 1}}});
    });
    return hd::test::message_of<hd::contract_error>(
        [&] { hd::Runner refused(model, hd::plan::schedule(scheduled, any_profile()), places); });
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(run(5, plan), ContainsSubstring("it divides 4 layers, the model has 5"));
  hd::Plan other = plan;
  other.stages[0].samples = {1, 3};
  CHECK_THAT(run(4, other), ContainsSubstring("rank 0 computes 1 samples of stage 0"));
}

}  // namespace test_pipeline_shares
