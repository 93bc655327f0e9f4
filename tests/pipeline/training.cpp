// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3 4
// timeout: 900

// The GPT trained over ranks against the same training on one rank without a schedule: every
// division of the ranks into pipe and data, uneven stages, microbatches that do not divide.
// every_schedule.cpp has all schedules, with a smaller model.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/schedule/pass/recompute.hpp>
#include <heddle/schedule/pass/split_backward.hpp>

#include "gpt_training.hpp"
#include "support/cases.hpp"
#include "support/world.hpp"

namespace test_training {

namespace hd = heddle;
using namespace examples;
using hd::test::world_size;

namespace {

const Text& words() {
  static const Text text = Text::load({}, 64);
  return text;
}

GptTraining small(int layers, int microbatches, int replicas) {
  GptTraining training;
  training.model = {.layers = layers, .width = 16, .heads = 2, .context = 8, .sequences = 2};
  training.microbatches = microbatches;
  training.replicas = replicas;
  training.optimizer.learning_rate = 1e-2;
  return training;
}

struct Case {
  hd::Schedule schedule;
  GptTraining training;
  hd::StagesOptions stages = {};
  hd::RunOptions run = {};
};

/// 10 steps of `c`, or 20 in the long form, on a mesh of its schedule's ranks and its replicas.
template <class Real>
void expect_serial(const Case& c) {
  const double loss_bound = std::is_same_v<Real, double> ? 1e-10 : 1e-4;
  const int pipe = c.schedule.ranks();
  INFO(c.schedule.name() << " x " << c.training.replicas << ", " << c.training.model.layers
                         << " layers");
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}, {"data", c.training.replicas}});
  auto model = make_gpt<Real>(c.training, c.stages);
  hd::Runner run(model, c.schedule, mesh, c.run);
  SerialGpt<Real> serial(c.training);
  const auto steps = static_cast<int>(hd::test::cases(10, 20));
  for (int step = 0; step < steps; ++step) {
    const auto tokens = batch(c.training, words(), step, mesh.coordinate("data"));
    const double loss = run.step(tokens, weight(c.training)).loss;
    const double reference = serial.step(words(), step);
    INFO("step " << step);
    REQUIRE(std::abs(loss - reference) <= loss_bound * reference);
    if (step > 0) continue;
    const auto gradients = gather<Real>(model, mesh, [](auto& stage) { return stage.gradients(); });
    const GradientDifference<Real> difference(gradients, serial.gradients(),
                                              serial.stage().tensors());
    INFO("tensor " << difference.where);
    REQUIRE(gradients.size() == serial.stage().parameter_count());
    REQUIRE(difference.worst <= (std::is_same_v<Real, double> ? 1e-11 : 1e-4));
  }
  // The model has learned something: the comparison is not one of standing still.
  CHECK(serial.step(words(), steps) < 0.97 * std::log(256));
}

/// Calls `visit(pipe, data)` for every division of the ranks.
template <class Visit>
void for_each_division(Visit&& visit) {
  for (int pipe = 1; pipe <= world_size(); ++pipe)
    if (world_size() % pipe == 0) visit(pipe, world_size() / pipe);
}

/// 1F1B with every B split, its W put off by `delay` actions of the rank.
hd::Schedule split_backward(int stages, int microbatches, std::size_t delay) {
  hd::Orders orders = hd::schedule::one_f_one_b(stages, microbatches);
  for (auto& rank : orders.ranks) {
    std::vector<hd::Order> split;
    std::vector<std::pair<std::size_t, hd::Order>> put_off;
    for (const hd::Order& order : rank) {
      if (order.kind != hd::Kind::backward) {
        split.push_back(order);
      } else {
        split.push_back({hd::Kind::backward_input, order.stage, order.item});
        put_off.push_back(
            {split.size() + delay, {hd::Kind::backward_weight, order.stage, order.item}});
      }
      if (!put_off.empty() && put_off.front().first <= split.size()) {
        split.push_back(put_off.front().second);
        put_off.erase(put_off.begin());
      }
    }
    for (const auto& [when, order] : put_off) split.push_back(order);
    rank = std::move(split);
  }
  return hd::weave(orders);
}

}  // namespace

TEST_CASE("GPipe and 1F1B train as one rank does, in double") {
  for_each_division([](int pipe, int data) {
    for (const int microbatches : {1, 5}) {
      const auto training = small(7, microbatches, data);
      const hd::schedule::PipelineOptions options = {.ranks = pipe, .microbatches = microbatches};
      expect_serial<double>({hd::schedule::gpipe(options), training});
      expect_serial<double>({hd::schedule::one_f_one_b(options), training});
    }
  });
}

TEST_CASE("interleaved 1F1B trains as one rank does, in double") {
  for_each_division([](int pipe, int data) {
    for (const int microbatches : {1, pipe + 1, 2 * pipe}) {
      if (microbatches % std::max(1, microbatches / pipe) != 0) continue;
      expect_serial<double>(
          {hd::schedule::interleaved(
               {.ranks = pipe, .stages_per_rank = 2, .microbatches = microbatches}),
           small(9, microbatches, data)});
    }
  });
}

TEST_CASE("GPipe, 1F1B and interleaved 1F1B train as one rank does, in float") {
  for_each_division([](int pipe, int data) {
    const auto training = small(8, 4, data);
    const hd::schedule::PipelineOptions options = {.ranks = pipe, .microbatches = 4};
    expect_serial<float>({hd::schedule::gpipe(options), training});
    expect_serial<float>({hd::schedule::one_f_one_b(options), training});
    expect_serial<float>(
        {hd::schedule::interleaved({.ranks = pipe, .stages_per_rank = 2, .microbatches = 4}),
         training});
  });
}

TEST_CASE("gradients summed by the MPI library give the same training") {
  for_each_division([](int pipe, int data) {
    expect_serial<double>({hd::schedule::one_f_one_b({.ranks = pipe, .microbatches = 3}),
                           small(5, 3, data),
                           {.gradient_sum = hd::GradientSum::library}});
  });
}

TEST_CASE("stages of unequal size as the caller states them") {
  for_each_division([](int pipe, int data) {
    std::vector<int> layers(static_cast<std::size_t>(pipe), 1);
    layers.back() = 3;
    expect_serial<double>({hd::schedule::one_f_one_b({.ranks = pipe, .microbatches = 4}),
                           small(pipe + 2, 4, data),
                           {.layers_per_stage = layers}});
  });
}

TEST_CASE("a backward pass split into I and W, at once and put off") {
  for_each_division([](int pipe, int data) {
    for (const std::size_t delay : {std::size_t{0}, std::size_t{3}, std::size_t{100}})
      expect_serial<double>({split_backward(pipe, 5, delay), small(6, 5, data)});
  });
}

TEST_CASE("storage, recording and idle policies do not change the training") {
  for_each_division([](int pipe, int data) {
    const auto schedule = hd::schedule::one_f_one_b({.ranks = pipe, .microbatches = 6});
    const auto training = small(4, 6, data);
    expect_serial<double>({schedule, training, {}, {.fold = false}});
    expect_serial<double>({schedule, training, {}, {.slack = 0}});
    expect_serial<double>({schedule, training, {}, {.execute = {.idle = hd::Idle::nap}}});
    expect_serial<double>({schedule, training, {}, {.execute = {.record = true}}});
    // As on a device whose memory MPI does not take, with the host in its place.
    expect_serial<double>({schedule, training, {.path = hd::DevicePath::staged}});
  });
}

TEST_CASE("what does not fit is refused on every rank alike") {
  const int ranks = world_size();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}, {"data", 1}});
  const auto message = [&](const GptTraining& training, const hd::Schedule& schedule,
                           hd::StagesOptions options = {}) -> std::string {
    try {
      auto model = make_gpt<double>(training, std::move(options));
      hd::Runner run(model, schedule, mesh);
    } catch (const hd::error& error) {
      return error.what();
    }
    return "nothing";
  };
  const auto schedule = hd::schedule::one_f_one_b({.ranks = ranks, .microbatches = 2});
  if (ranks > 1)
    CHECK(message(small(ranks - 1, 2, 1), schedule).find("more stages than layers") !=
          std::string::npos);
  CHECK(message(small(ranks + 1, 2, 1), schedule,
                {.layers_per_stage = std::vector<int>(static_cast<std::size_t>(ranks), 9)})
            .find("do not divide the model") != std::string::npos);
  const auto longer = hd::schedule::one_f_one_b({.ranks = ranks + 1, .microbatches = 2});
  CHECK(message(small(9, 2, 1), longer).find("does not fit") != std::string::npos);
  // And the mesh is still good for what does.
  CHECK(message(small(ranks, 2, 1), schedule) == "nothing");
}

TEST_CASE("with activations recomputed a pipeline trains as one rank does, and keeps only one") {
  for_each_division([](int pipe, int data) {
    const auto training = small(7, 5, data);
    const hd::schedule::PipelineOptions options = {.ranks = pipe, .microbatches = 5};
    expect_serial<double>({hd::schedule::recompute(hd::schedule::gpipe(options)), training});
    expect_serial<double>({hd::schedule::recompute(split_backward(pipe, 5, 3)), training});

    hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}, {"data", data}});
    auto model = make_gpt<double>(training);
    const auto live = [&](const hd::Schedule& schedule) {
      hd::Runner run(model, schedule, mesh, {.execute = {.record = true}});
      const auto tokens = batch(training, words(), 0, mesh.coordinate("data"));
      run.step(tokens, weight(training));
      const auto measured = hd::schedule::memory_use(run.timeline());
      const std::size_t mine = +mesh.rank();
      return std::pair(hd::schedule::peak(measured[mine].activations).parts, run.allocated());
    };
    const auto [kept, more] = live(hd::schedule::gpipe(options));
    const auto [again, less] = live(hd::schedule::recompute(hd::schedule::gpipe(options)));
    CHECK(kept == 5);
    CHECK(again == 1);
    CHECK(less < more);
  });
}

TEST_CASE("gradients summed as soon as a stage has them train as one rank does") {
  for_each_division([](int pipe, int data) {
    const auto training = small(9, 2 * pipe, data);
    const hd::Schedule schedule =
        hd::schedule::interleaved({.ranks = pipe, .stages_per_rank = 2, .microbatches = 2 * pipe});
    for (const hd::GradientSum sum : {hd::GradientSum::ring, hd::GradientSum::library})
      expect_serial<double>({schedule, training, {.gradient_sum = sum, .eager_sum = true}});
  });
}

}  // namespace test_training
