// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// space: its own
// timeout: 300

// Every synchronous schedule of the catalogue, and more of Chimera's, executed, over MPI ranks and
// over threads, and after every pass, against the whole model on one rank: gradients, losses, and
// weights through the next step.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/pipeline/partition.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/pass/cast_at_cut.hpp>
#include <heddle/schedule/pass/fill_idle_with_weights.hpp>
#include <heddle/schedule/pass/fuse.hpp>
#include <heddle/schedule/pass/gradient_sum.hpp>
#include <heddle/schedule/pass/group.hpp>
#include <heddle/schedule/pass/merge_backward.hpp>
#include <heddle/schedule/pass/recompute.hpp>
#include <heddle/schedule/pass/split_backward.hpp>
#include <heddle/schedule/pass/two_bp.hpp>
#include <heddle/systems/chimera/choose_chimera.hpp>

#include "support/complaint.hpp"
#include "support/mlp_stage.hpp"
#include "support/shuffled_uses.hpp"
#include "support/world.hpp"

namespace test_every_schedule {

namespace hd = heddle;
using Catch::Matchers::ContainsSubstring;
using hd::schedule::NamedSchedule;
using hd::schedule::PipelineShape;
using hd::test::MlpStage;
using hd::test::PairedMlpStage;
using hd::test::world_size;

namespace {

constexpr double rate = 0.5;

/// Pairs in which a forward comes first that this rank does in a step.
int pairs_of(const hd::Schedule& schedule, hd::Rank rank) {
  return static_cast<int>(std::ranges::count_if(schedule.actions(), [&](const hd::Action& action) {
    return (action.flags & hd::flag::with_next) != 0 && action.kind == hd::Kind::forward &&
           schedule[action.queue].from == rank;
  }));
}

/// The whole model, microbatch after microbatch.
struct Serial {
  std::vector<double> gradients;
  double loss = 0;

  static std::vector<Serial> steps(int layers, int microbatches, int count) {
    MlpStage stage(0, layers, layers, rate);
    std::vector<double> saved(stage.saved_size()), delta(stage.delta_size());
    std::vector<double> none(MlpStage::activation);  // beyond the ends of the model
    std::vector<Serial> result;
    for (int step = 0; step < count; ++step) {
      stage.begin_step(step, 0, 1.0 / microbatches);
      stage.zero_gradients();
      Serial& here = result.emplace_back();
      for (int m = 0; m < microbatches; ++m) {
        const hd::Item item{m};
        stage.forward(
            {.item = item, .input = none.data(), .output = none.data(), .saved = saved.data()});
        stage.backward_input({.item = item,
                              .saved = saved.data(),
                              .output_grad = none.data(),
                              .delta = delta.data()});
        stage.backward_weight({.item = item,
                               .saved = saved.data(),
                               .output_grad = none.data(),
                               .delta = delta.data()});
        here.loss += stage.loss(item);
      }
      here.gradients.assign(stage.gradients(), stage.gradients() + stage.parameter_count());
      stage.update();
    }
    return result;
  }
};

/// What a run is besides its schedule.
struct Setting {
  int replicas = 1;  ///< of the whole pipeline
  int replica = 0;   ///< that this rank belongs to
  hd::GradientSum sum = hd::GradientSum::ring;
  std::function<hd::Schedule(const hd::Schedule&)> pass = {};  ///< over all that is woven
  /// Of a gradient, in the largest one. The sums have the same terms in another order: some 40 of
  /// them, none larger than the largest gradient by much, so this is two orders more than rounding
  /// can do.
  double tolerance = 1e-12;
};

int stages_of(const hd::Schedule& schedule) {
  int stages = 0;
  for (const hd::Buffer& buffer : schedule.buffers())
    stages = std::max(stages, static_cast<int>(+buffer.stage) + 1);
  return stages;
}

/// Trains two steps on `place`, and returns how far apart the gradients and losses are, in the
/// largest gradient; throws where a gradient of this rank or a loss is not the serial model's.
template <class S = MlpStage, class Place>
double expect_serial(Place& place, const hd::Schedule& schedule, int microbatches,
                     const Setting& setting = {}) {
  const int stages = stages_of(schedule);
  const int layers = stages + 1 + (stages - 1) / 2;  // never a multiple of the stages, but for one
  const auto ranges = hd::partition_layers(layers, stages);
  hd::Stages<S> model(layers,
                      [layers](int first, int last) { return S(first, last, layers, rate); },
                      {.gradient_sum = setting.sum, .pass = setting.pass});
  hd::Runner run(model, schedule, place);
  const int all = microbatches * setting.replicas;
  const auto serial = Serial::steps(layers, all, 2);
  double furthest = 0;
  for (int step = 0; step < 2; ++step) {
    const Serial& reference = serial[static_cast<std::size_t>(step)];
    const double loss = run.step(step, setting.replica * microbatches, 1.0 / all).loss;
    double largest = 0, apart = std::abs(loss - reference.loss);
    for (const double gradient : reference.gradients)
      largest = std::max(largest, std::abs(gradient));
    std::size_t compared = 0;
    model.for_each([&](hd::Stage number, S& stage) {
      const auto first = static_cast<std::size_t>(ranges[+number].first) * MlpStage::per_layer;
      for (std::size_t i = 0; i < stage.parameter_count(); ++i, ++compared) {
        const double difference = std::abs(stage.gradients()[i] - reference.gradients[first + i]);
        if (!(difference <= apart)) apart = difference;  // also what is not a number
      }
    });
    if (compared == 0 || !(apart <= setting.tolerance * largest))
      throw hd::contract_error(
          {schedule.name(), "differs from the serial model",
           hd::text("step ", step, ", rank ", hd::transport_of(place).rank(), ": ", apart, " of ",
                    largest, ", ", compared, " compared")});
    furthest = std::max(furthest, apart / largest);
  }
  if constexpr (std::same_as<S, PairedMlpStage>) {
    int pairs = 0;
    model.for_each([&](hd::Stage, PairedMlpStage& stage) { pairs += stage.pairs; });
    const int expected = 2 * pairs_of(run.schedule(), hd::transport_of(place).rank());
    if (pairs != expected)
      throw hd::contract_error(
          {schedule.name(), "pairs were not done at once", hd::text(pairs, " of ", expected)});
  }
  return furthest;
}

/// The orders of `entry` for a shape; none where it does not exist for it.
std::optional<hd::Orders> orders_for(const NamedSchedule& entry, const PipelineShape& shape) {
  try {
    return entry.orders(shape);
  } catch (const hd::infeasible&) {
    return {};
  }
}

/// The plainest schedule with replicas: the first half of the microbatches goes down the ranks, the
/// other up; all forwards, then all backwards.
hd::Orders both_ways(int ranks, int microbatches) {
  hd::Orders orders{.name = hd::text("both ways P=", ranks, " M=", microbatches),
                    .ranks = {},
                    .graph = hd::StageGraph::replicated_chain(ranks)};
  for (int rank = 0; rank < ranks; ++rank) {
    auto& list = orders.ranks.emplace_back();
    for (const hd::Kind kind : {hd::Kind::forward, hd::Kind::backward})
      for (int m = 0; m < microbatches; ++m)
        list.push_back(
            {kind, hd::Stage{2 * m < microbatches ? rank : ranks - 1 - rank}, hd::Item{m}});
  }
  return orders;
}

/// Calls `visit(orders, microbatches)` for every synchronous schedule and several odd and even
/// numbers of microbatches; returns the names of those that exist for none of them.
template <class Visit>
std::string for_each_orders(int ranks, Visit&& visit) {
  std::string nowhere;
  for (const int microbatches : {1, 4, 7}) visit(both_ways(ranks, microbatches), microbatches);
  for (const int microbatches : {1, 6, 2 * ranks, 4 * ranks}) {
    if (ranks % 4 != 0) continue;
    for (const bool doubled : {false, true})
      visit(hd::schedule::chimera(ranks, microbatches, 2, doubled), microbatches);
  }
  for (const NamedSchedule& entry : hd::schedule::catalogue()) {
    if (!entry.synchronous || entry.branches) continue;  // branches: see branches.cpp
    bool somewhere = false;
    for (const int microbatches : {1, 3, 2 * ranks, 2 * ranks + 1, 4 * ranks}) {
      const auto orders = orders_for(entry, {.ranks = ranks, .microbatches = microbatches});
      if (!orders) continue;
      somewhere = true;
      visit(*orders, microbatches);
    }
    if (!somewhere) nowhere += hd::text(entry.name, ' ');
  }
  return nowhere;
}

bool has(hd::Kind kind, const hd::Schedule& schedule) {
  return std::ranges::any_of(schedule.actions(),
                             [kind](const hd::Action& action) { return action.kind == kind; });
}
bool has_fused(const hd::Orders& orders) {
  return std::ranges::any_of(orders.ranks, [](const std::vector<hd::Order>& list) {
    return std::ranges::any_of(list, [](const hd::Order& order) { return order.fused; });
  });
}

/// Every message between ranks in single precision.
hd::Schedule narrow(const hd::Schedule& schedule) {
  return hd::schedule::cast_at_cut(schedule, hd::Codec{.type = hd::Scalar::f32},
                                   [](hd::Rank, hd::Rank) { return true; });
}

}  // namespace

TEST_CASE("every synchronous schedule over MPI ranks has the gradients of the serial model") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  const std::string nowhere = for_each_orders(ranks, [&](const hd::Orders& orders, int count) {
    INFO(orders.name);
    CHECK_NOTHROW(expect_serial(mesh, hd::weave(orders), count));
  });
  // Two directions need an even number of ranks.
  if (ranks % 2 == 0) CHECK(nowhere == "");
}

TEST_CASE("every synchronous schedule over threads has the gradients of the serial model") {
  if (world_size() > 1) return;
  for (const int ranks : {2, 3, 4})
    for_each_orders(ranks, [&](const hd::Orders& orders, int count) {
      INFO(orders.name);
      CHECK_NOTHROW(hd::run_threads(ranks, [&](hd::ThreadTransport& transport) {
        expect_serial(transport, hd::weave(orders), count);
      }));
    });
}

TEST_CASE("Chimera with halved microbatches, where it is the choice, has the serial gradients") {
  const int ranks = world_size();
  for (const int microbatches : {4, 8}) {
    const auto choice = hd::systems::choose_chimera({.ranks = 4, .microbatches = microbatches},
                                                    hd::StageCosts{.forward = 1, .backward = 2});
    REQUIRE(choice.halved);
    const hd::Schedule schedule = hd::weave(choice.orders);
    if (ranks == 4) {
      hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
      CHECK_NOTHROW(expect_serial(mesh, schedule, 2 * microbatches));
    }
    if (ranks == 1)
      CHECK_NOTHROW(hd::run_threads(4, [&](hd::ThreadTransport& transport) {
        expect_serial(transport, schedule, 2 * microbatches);
      }));
  }
}

TEST_CASE("passes over every synchronous schedule leave the gradients as they are") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  int fused = 0;
  for_each_orders(ranks, [&](const hd::Orders& orders, int count) {
    using namespace hd::schedule;
    INFO(orders.name);
    CHECK_NOTHROW(expect_serial(mesh, hd::weave(split_backward(orders)), count));
    CHECK_NOTHROW(expect_serial(mesh, hd::weave(merge_backward(orders)), count));
    const hd::Orders filled = fill_idle_with_weights(split_backward(orders));
    CHECK_NOTHROW(expect_serial(mesh, hd::weave(filled), count));
    CHECK_NOTHROW(expect_serial(mesh, hd::weave(two_bp(orders)), count));
    CHECK_NOTHROW(expect_serial(mesh, hd::weave(group(orders, 2)), 2 * count));
    const hd::Orders pairs = fuse(merge_backward(orders));
    fused += has_fused(pairs);
    CHECK_NOTHROW(expect_serial(mesh, hd::weave(pairs), count));
    const hd::Schedule schedule = hd::weave(orders);
    CHECK_NOTHROW(expect_serial(mesh, hd::schedule::recompute(schedule), count));
    CHECK_NOTHROW(expect_serial(mesh, hd::schedule::eager_sums(schedule), count));
    CHECK_NOTHROW(expect_serial(mesh, hd::schedule::lazy_sums(schedule), count));
    const Setting shuffled{.pass = hd::test::shuffled_uses};
    CHECK_NOTHROW(expect_serial(mesh, schedule, count, shuffled));
    CHECK_NOTHROW(expect_serial(mesh, hd::test::shuffled_uses(hd::weave(filled)), count));
  });
  CHECK(fused > 0);
}

TEST_CASE("a stage that does fused pairs at once gets them all, and the serial gradients") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  using namespace hd::schedule;
  for_each_orders(ranks, [&](const hd::Orders& orders, int count) {
    INFO(orders.name);
    const hd::Schedule pairs = hd::weave(fuse(merge_backward(orders)));
    CHECK_NOTHROW(expect_serial<PairedMlpStage>(mesh, pairs, count));
    CHECK_NOTHROW(expect_serial<PairedMlpStage>(mesh, hd::schedule::recompute(pairs), count));
  });
  if (ranks != 1) return;
  for (const int threads : {2, 3, 4})
    for_each_orders(threads, [&](const hd::Orders& orders, int count) {
      INFO(orders.name);
      const hd::Schedule pairs = hd::weave(fuse(merge_backward(orders)));
      CHECK_NOTHROW(hd::run_threads(threads, [&](hd::ThreadTransport& transport) {
        expect_serial<PairedMlpStage>(transport, pairs, count);
      }));
    });
}

TEST_CASE("messages in single precision change the gradients by their rounding and no more") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  for_each_orders(ranks, [&](const hd::Orders& orders, int count) {
    INFO(orders.name);
    // A message errs by 2^-24 of what it holds; layers and steps carry that on, by far less than a
    // coarser type would.
    const double single = 1e-5;
    const hd::Schedule schedule = hd::weave(orders);
    CHECK(has(hd::Kind::cast, narrow(schedule)) == has(hd::Kind::move, schedule));
    double apart = 0;
    CHECK_NOTHROW(apart = expect_serial(mesh, narrow(schedule), count, {.tolerance = single}));
    CHECK((apart > 1e-12) == has(hd::Kind::move, schedule));
    // And those of the sums over replicas.
    CHECK_NOTHROW(expect_serial(mesh, schedule, count, {.pass = narrow, .tolerance = single}));
  });
}

TEST_CASE("replicas of the pipeline and replicas of its stages are summed at once") {
  if (world_size() != 4) return;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 2}, {"data", 2}});
  for_each_orders(2, [&](const hd::Orders& orders, int count) {
    INFO(orders.name);
    const Setting setting{.replicas = 2, .replica = mesh.coordinate("data")};
    CHECK_NOTHROW(expect_serial(mesh, hd::weave(orders), count, setting));
  });
}

TEST_CASE("the MPI library sums over replicas of the pipeline; those of stages it refuses") {
  if (world_size() % 2 != 0) return;
  const int pipe = world_size() / 2;
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}, {"data", 2}});
  const Setting setting{
      .replicas = 2, .replica = mesh.coordinate("data"), .sum = hd::GradientSum::library};
  for_each_orders(pipe, [&](const hd::Orders& orders, int count) {
    INFO(orders.name);
    const hd::Schedule schedule = hd::weave(orders);
    if (has(hd::Kind::group, schedule))
      CHECK_THAT(hd::test::message_of<hd::infeasible>(
                     [&] { expect_serial(mesh, schedule, count, setting); }),
                 ContainsSubstring(
                     "GradientSum::library cannot sum gradients of replicas within the pipeline") &&
                     ContainsSubstring("use GradientSum::ring"));
    else
      CHECK_NOTHROW(expect_serial(mesh, schedule, count, setting));
  });
}

}  // namespace test_every_schedule
