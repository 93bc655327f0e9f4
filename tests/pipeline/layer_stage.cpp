// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 1 2 3

// LayerStage: layers with split and with whole backward passes, on schedules that split them and on
// such that do not, against MlpStage, which has plain loops and memory of its own.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/kernel/linear.hpp>
#include <heddle/pipeline/partition.hpp>
#include <heddle/schedule/pass/in_shares.hpp>

#include "support/mlp_stage.hpp"
#include "support/world.hpp"

namespace test_layer_stage {

namespace hd = heddle;
namespace hk = heddle::kernel;
using Catch::Matchers::ContainsSubstring;
using hd::test::MlpStage;
using hd::test::world_size;

namespace {

constexpr std::size_t width = MlpStage::width, rows = MlpStage::rows;
constexpr double rate = 0.5;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Exec>;

struct Tanh {
  KOKKOS_FUNCTION double operator()(double z) const { return std::tanh(z); }
};
struct TanhGradient {
  KOKKOS_FUNCTION double operator()(double y, double y_grad) const { return y_grad * (1 - y * y); }
};
struct Difference {
  double weight;
  KOKKOS_FUNCTION double operator()(double y, double target) const { return weight * (y - target); }
};

/// y = tanh(x w + b), with the weights of a layer of MlpStage.
struct SplitDense {
  using scalar_type = double;
  using execution_space = Exec;
  hd::Parameter<double**, Exec::memory_space> w{"w", width, width};
  hd::Parameter<double*, Exec::memory_space> b{"b", width};

  explicit SplitDense(const double* mlp) {
    for (std::size_t i = 0; i < width; ++i) {
      for (std::size_t j = 0; j < width; ++j) w.value(j, i) = mlp[i * width + j];
      b.value(i) = mlp[width * width + i];
    }
  }
  std::size_t inputs() const { return w.value.extent(0); }
  std::size_t outputs() const { return w.value.extent(1); }
  auto parameters() { return std::tie(w, b); }
  void forward(const hd::LayerForward<double, Exec>& call) {
    hk::linear_forward(call.exec, call.input, w.value, b.value, call.output);
    hk::map(call.exec, Tanh{}, call.output, call.output);
  }
  void backward_input(const hd::LayerBackward<double, Exec>& call) {
    hk::map(call.exec, TanhGradient{}, call.delta, call.output, call.output_grad);
    hk::linear_backward_input(call.exec, w.value, call.delta, call.input_grad);
  }
  void backward_weight(const hd::LayerBackward<double, Exec>& call) {
    hk::linear_backward_weight(call.exec, call.input, call.delta, w.gradient, b.gradient);
  }
};

/// The same layer with one backward function.
struct WholeDense {
  using scalar_type = double;
  using execution_space = Exec;
  SplitDense split;

  explicit WholeDense(const double* mlp) : split(mlp) {}
  std::size_t inputs() const { return split.inputs(); }
  std::size_t outputs() const { return split.outputs(); }
  auto parameters() { return split.parameters(); }
  void forward(const hd::LayerForward<double, Exec>& call) { split.forward(call); }
  void backward(const hd::LayerBackward<double, Exec>& call) {
    const Matrix delta("delta", call.output.extent(0), call.output.extent(1));
    hd::LayerBackward<double, Exec> with_delta = call;
    with_delta.delta = delta;
    split.backward_input(with_delta);
    split.backward_weight(with_delta);
  }
};
static_assert(hd::Layer<SplitDense> && hd::SplitLayer<SplitDense>);
static_assert(hd::Layer<WholeDense> && !hd::SplitLayer<WholeDense>);

struct SquaredError {
  double weight;
  double operator()(const Exec& exec, const hk::Matrix<const double, Exec>& y,
                    const hk::Matrix<const double, Exec>& target,
                    const hk::Matrix<double, Exec>& y_grad) const {
    hk::map(exec, Difference{weight}, y_grad, y, target);
    exec.fence("test::squared_error");
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
      sum += (y.data()[i] - target.data()[i]) * (y.data()[i] - target.data()[i]);
    return weight * sum / 2;
  }
};
struct Descent {
  KOKKOS_FUNCTION double operator()(double w, double gradient) const { return w - rate * gradient; }
  void operator()(const Exec& exec, const hk::Vector<double, Exec>& w,
                  const hk::Vector<double, Exec>& gradient) const {
    hk::map(exec, *this, w, w, gradient);
  }
};

/// What MlpStage calls its data, of all microbatches of a step.
Matrix samples(const char* what, int step, int microbatches) {
  const Matrix values(what, rows * static_cast<std::size_t>(microbatches), width);
  const hd::Random random(11, what);
  for (std::size_t i = 0; i < values.size(); ++i)
    values.data()[i] =
        0.8 * random.normal(static_cast<std::size_t>(step) * 1000 * MlpStage::activation + i);
  return values;
}

template <class Dense>
using Stage = hd::LayerStage<Dense, SquaredError, Descent>;
static_assert(hd::PipelineStage<Stage<SplitDense>> && hd::PipelineStage<Stage<WholeDense>>);

template <class Dense>
Stage<Dense> make_stage(int first, int last, int layers, int microbatches) {
  MlpStage mlp(first, last, layers, rate);
  std::vector<Dense> dense;
  for (int l = 0; l < last - first; ++l)
    dense.emplace_back(mlp.parameters() + static_cast<std::size_t>(l) * MlpStage::per_layer);
  return Stage<Dense>(std::move(dense),
                      {.rows = rows,
                       .microbatches = microbatches,
                       .takes_data = first == 0,
                       .computes_loss = last == layers},
                      SquaredError{1.0 / microbatches}, Descent{});
}

/// Two steps of `schedule` against MlpStage, microbatch after microbatch.
template <class Dense>
void expect_serial(const hd::Schedule& schedule, int layers, int microbatches) {
  INFO(schedule.name() << ", " << layers << " layers");
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", schedule.ranks()}});
  hd::Stages<Stage<Dense>> model(layers, [&](int first, int last) {
    return make_stage<Dense>(first, last, layers, microbatches);
  });
  hd::Runner run(model, schedule, mesh);
  MlpStage serial(0, layers, layers, rate);
  std::vector<double> saved(serial.saved_size()), delta(serial.delta_size());
  for (int step = 0; step < 2; ++step) {
    const double loss =
        run.step(samples("input", step, microbatches), samples("target", step, microbatches)).loss;
    serial.begin_step(step, 0, 1.0 / microbatches);
    serial.zero_gradients();
    double expected = 0;
    for (int m = 0; m < microbatches; ++m) {
      const hd::Item item{m};
      serial.forward({.item = item, .saved = saved.data()});
      const hd::BackwardCall<double> call{
          .item = item, .saved = saved.data(), .delta = delta.data()};
      serial.backward_input(call);
      serial.backward_weight(call);
      expected += serial.loss(item);
    }
    REQUIRE(std::abs(loss - expected) <= 1e-12 * expected);
    double apart = 0;
    const auto ranges = hd::partition_layers(layers, schedule.ranks());
    model.for_each([&](hd::Stage number, Stage<Dense>& stage) {
      auto first = static_cast<std::size_t>(ranges[+number].first);
      for (Dense& layer : stage.layers()) {
        const double* const reference = serial.gradients() + first++ * MlpStage::per_layer;
        const auto& [w, b] = layer.parameters();
        for (std::size_t i = 0; i < width; ++i) {
          for (std::size_t j = 0; j < width; ++j)
            apart = std::max(apart, std::abs(w.gradient(j, i) - reference[i * width + j]));
          apart = std::max(apart, std::abs(b.gradient(i) - reference[width * width + i]));
        }
      }
    });
    REQUIRE(apart <= 1e-13);
    serial.update();
  }
}

}  // namespace

TEST_CASE("a model of layers trains as plain loops do, on 1F1B, ZB-H1 and GPipe") {
  const int ranks = world_size();
  for (const int microbatches : {1, ranks, 2 * ranks + 1})
    for (const int layers : {ranks, 2 * ranks + 1}) {
      const hd::schedule::PipelineOptions options{.ranks = ranks, .microbatches = microbatches};
      const hd::Schedule schedules[] = {hd::schedule::one_f_one_b(options),
                                        hd::schedule::zb_h1(options), hd::schedule::gpipe(options)};
      for (const hd::Schedule& schedule : schedules) {
        expect_serial<SplitDense>(schedule, layers, microbatches);
        expect_serial<WholeDense>(schedule, layers, microbatches);
      }
    }
}

namespace {

/// Trains two steps in microbatches of `sizes`, and compares with microbatches of one sample each
/// on one rank.
template <class Dense>
void expect_sum_of_samples(const hd::Orders& plain, const std::vector<std::int64_t>& sizes) {
  const int ranks = world_size(), layers = ranks, all = 8;
  INFO(plain.name);
  const auto train = [&](const hd::Orders& orders, const std::vector<std::int64_t>& each, int pipe,
                         MPI_Comm comm) {
    const std::int64_t most = *std::ranges::max_element(each);
    hd::StageShares shares{.samples = most, .stages = {}, .microbatches = each};
    shares.stages.assign(static_cast<std::size_t>(pipe), {most});
    hd::DeviceMesh mesh(comm, {{"pipe", pipe}});
    hd::Stages<Stage<Dense>> model(layers, [&](int first, int last) {
      MlpStage mlp(first, last, layers, rate);
      std::vector<Dense> dense;
      for (int l = 0; l < last - first; ++l)
        dense.emplace_back(mlp.parameters() + static_cast<std::size_t>(l) * MlpStage::per_layer);
      return Stage<Dense>(std::move(dense),
                          {.rows = static_cast<std::size_t>(most),
                           .microbatches = static_cast<int>(each.size()),
                           .takes_data = first == 0,
                           .computes_loss = last == layers,
                           .sizes = each},
                          SquaredError{1.0 / all}, Descent{});
    });
    hd::Runner run(model, weave(hd::schedule::in_shares(orders, shares)), mesh);
    std::vector<double> losses;
    for (int step = 0; step < 2; ++step) {
      const Matrix inputs("inputs", all, width), targets("targets", all, width);
      const hd::Random random(12, "samples");
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        inputs.data()[i] = random.normal(static_cast<std::size_t>(step) * 1000 + i);
        targets.data()[i] = random.normal(static_cast<std::size_t>(step) * 1000 + 500 + i);
      }
      losses.push_back(run.step(inputs, targets).loss);
    }
    return losses;
  };
  const std::vector<double> ours = train(plain, sizes, ranks, MPI_COMM_WORLD);
  const std::vector<double> serial =
      train(hd::schedule::gpipe(1, all), std::vector<std::int64_t>(all, 1), 1, MPI_COMM_SELF);
  for (std::size_t step = 0; step < 2; ++step)
    CHECK(std::abs(ours[step] - serial[step]) <= 1e-13 * serial[step]);
}

}  // namespace

TEST_CASE("a stage of layers computes a smaller last microbatch") {
  const int ranks = world_size();
  for (const auto& sizes : {hd::schedule::microbatch_sizes(8, 3), {3, 4, 1}})
    for (const hd::Orders& orders :
         {hd::schedule::one_f_one_b(ranks, 3), hd::schedule::zb_h1(ranks, 3)}) {
      expect_sum_of_samples<SplitDense>(orders, sizes);
      expect_sum_of_samples<WholeDense>(orders, sizes);
    }
}

namespace {

/// The loss of a step whose weight changes with its number of microbatches.
struct Weighted {
  const double* weight;
  template <class... Arguments>
  double operator()(const Arguments&... arguments) const {
    return SquaredError{*weight}(arguments...);
  }
};

/// The losses of MlpStage in plain loops, in steps of these numbers of microbatches.
std::vector<double> plain_losses(const std::vector<int>& steps) {
  const int layers = world_size();
  MlpStage serial(0, layers, layers, rate);
  std::vector<double> saved(serial.saved_size()), delta(serial.delta_size()), losses;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    serial.begin_step(static_cast<int>(step), 0, 1.0 / steps[step]);
    serial.zero_gradients();
    losses.push_back(0);
    for (int m = 0; m < steps[step]; ++m) {
      const hd::Item item{m};
      serial.forward({.item = item, .saved = saved.data()});
      const hd::BackwardCall<double> call{
          .item = item, .saved = saved.data(), .delta = delta.data()};
      serial.backward_input(call);
      serial.backward_weight(call);
      losses.back() += serial.loss(item);
    }
    serial.update();
  }
  return losses;
}

/// Trains one model by a Runner for each of `steps`, which are numbers of microbatches and which
/// take turns; `sizes` are the samples of microbatches if they differ. The ranks between the first
/// and the last one get data if `everywhere`. Returns the losses.
template <class Dense>
std::vector<double> alternate(const std::vector<int>& steps, const std::vector<std::int64_t>& sizes,
                              bool everywhere, int ranks, MPI_Comm comm) {
  const int layers = world_size();
  double weight = 0;
  hd::DeviceMesh mesh(comm, {{"pipe", ranks}});
  const std::int64_t most = sizes.empty() ? rows : *std::ranges::max_element(sizes);
  using Stage = hd::LayerStage<Dense, Weighted, Descent>;
  hd::Stages<Stage> model(layers, [&](int first, int last) {
    MlpStage mlp(first, last, layers, rate);
    std::vector<Dense> dense;
    for (int l = 0; l < last - first; ++l)
      dense.emplace_back(mlp.parameters() + static_cast<std::size_t>(l) * MlpStage::per_layer);
    return Stage(std::move(dense),
                 {.rows = static_cast<std::size_t>(most),
                  .microbatches = steps[0],
                  .takes_data = first == 0,
                  .computes_loss = last == layers,
                  .sizes = sizes},
                 {&weight}, {});
  });
  const auto schedule = [&](int count) {
    const hd::Orders orders = hd::schedule::zb_h1(ranks, count);
    if (sizes.empty()) return weave(orders);
    hd::StageShares shares{.samples = most, .stages = {}, .microbatches = sizes};
    shares.microbatches.resize(static_cast<std::size_t>(count));
    shares.stages.assign(static_cast<std::size_t>(ranks), {most});
    return weave(hd::schedule::in_shares(orders, shares));
  };
  using Run = decltype(hd::Runner(model, schedule(1), mesh));
  std::map<int, std::unique_ptr<Run>> runs;
  for (const int count : steps)
    if (!runs.contains(count)) runs[count] = std::make_unique<Run>(model, schedule(count), mesh);
  std::vector<double> losses;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    weight = 1.0 / steps[step];
    Matrix inputs = samples("input", static_cast<int>(step), steps[step]);
    Matrix targets = samples("target", static_cast<int>(step), steps[step]);
    if (!sizes.empty()) {
      const auto all = std::accumulate(sizes.begin(), sizes.begin() + steps[step], std::size_t{0});
      weight = 1.0 / static_cast<double>(all);
      inputs = Matrix("inputs", all, width);
      targets = Matrix("targets", all, width);
      const hd::Random random(14, "alternate");
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        inputs.data()[i] = random.normal(step * 1000 + i);
        targets.data()[i] = random.normal(step * 1000 + 500 + i);
      }
    }
    const int rank = hd::test::world_rank();
    if (!everywhere && rank > 0) inputs = Matrix();
    if (!everywhere && rank < ranks - 1) targets = Matrix();
    losses.push_back(runs.at(steps[step])->step(inputs, targets).loss);
  }
  return losses;
}

}  // namespace

TEMPLATE_TEST_CASE("Runners of several numbers of microbatches take turns on one model", "",
                   SplitDense, WholeDense) {
  const std::vector<int> steps = {3, 1, 5, 3, 2};  // LayerPlace says 3
  const std::vector<double> expected = plain_losses(steps);
  // The first ones of unequal sizes: 5, 3, 5 and 2 samples, against as many of one sample.
  const std::vector<int> some = {3, 2, 3, 1}, each = {5, 3, 5, 2};
  const auto one_by_one =
      alternate<TestType>(each, std::vector<std::int64_t>(5, 1), true, 1, MPI_COMM_SELF);
  for (const bool everywhere : {true, false}) {
    const auto ours = alternate<TestType>(steps, {}, everywhere, world_size(), MPI_COMM_WORLD);
    for (std::size_t step = 0; step < steps.size(); ++step)
      CHECK(std::abs(ours[step] - expected[step]) <= 1e-12 * expected[step]);
    const auto unequal =
        alternate<TestType>(some, {2, 1, 2}, everywhere, world_size(), MPI_COMM_WORLD);
    for (std::size_t step = 0; step < some.size(); ++step)
      CHECK(std::abs(unequal[step] - one_by_one[step]) <= 1e-12 * one_by_one[step]);
  }
}

TEST_CASE("a stage of layers refuses a schedule of other microbatches") {
  const int ranks = world_size();
  const auto schedule = hd::schedule::gpipe({.ranks = ranks, .microbatches = 2});
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  hd::Stages<Stage<SplitDense>> model(
      ranks, [&](int first, int last) { return make_stage<SplitDense>(first, last, ranks, 3); });
  hd::Runner run(model, schedule, mesh);
  CHECK_THROWS_WITH(run.step(samples("input", 0, 3), samples("target", 0, 3)),
                    ContainsSubstring("3 in the batch, 2 in the schedule"));
}

TEST_CASE("a stage of layers refuses what does not fit together") {
  const double zeros[MlpStage::per_layer] = {};
  const auto stage = [&](std::vector<SplitDense> layers, hd::LayerPlace place) {
    return Stage<SplitDense>(std::move(layers), place, SquaredError{1}, Descent{});
  };
  CHECK_THROWS_WITH(stage({}, {}), ContainsSubstring("at least one layer"));
  CHECK_THROWS_WITH(stage({SplitDense(zeros)}, {.rows = 0}), ContainsSubstring("0 rows"));
  CHECK_THROWS_WITH(
      stage({SplitDense(zeros)}, {.rows = 3, .microbatches = 2, .sizes = {3, 4}}),
      ContainsSubstring("of at most `rows` samples") && ContainsSubstring("sizes: 3 4"));
  SplitDense wide(zeros);
  wide.w = hd::Parameter<double**, Exec::memory_space>("w", width + 1, width);
  CHECK_THROWS_WITH(stage({SplitDense(zeros), wide}, {}),
                    ContainsSubstring("4 inputs, the one before 3 outputs"));

  auto whole = stage({SplitDense(zeros)},
                     {.rows = 3, .microbatches = 3, .takes_data = true, .computes_loss = true});
  const Matrix eight("eight", 8, width), nine("nine", 9, width), narrow("narrow", 9, width - 1);
  CHECK_THROWS_WITH(whole.begin_step(eight, nine),
                    ContainsSubstring("3 microbatches of 3 samples") &&
                        ContainsSubstring("inputs has 8 rows, expected 9"));
  CHECK_THROWS_WITH(whole.begin_step(nine, eight), ContainsSubstring("targets has 8 rows"));
  CHECK_THROWS_WITH(whole.begin_step(narrow, nine), ContainsSubstring("wrong shape"));
  const Matrix six("six", 6, width), none;
  CHECK_THROWS_WITH(whole.begin_step(nine, six),
                    ContainsSubstring("as many targets as inputs") &&
                        ContainsSubstring("targets has 6 rows, expected 9 for 3 microbatches"));
  CHECK_THROWS_WITH(whole.begin_step(none, none), ContainsSubstring("inputs has 0 rows"));
  CHECK_NOTHROW(whole.begin_step(six, six));
  CHECK(whole.microbatches() == 2);
  CHECK_NOTHROW(whole.begin_step(nine, nine));
  CHECK(whole.microbatches() == 3);
  CHECK_THROWS_WITH(whole.forward({.item = hd::Item{1}, .samples = 2}),
                    ContainsSubstring("microbatch 1: 2 in the schedule, 3 here"));
}

namespace {

/// An update with memory of its own, which it names or not.
template <bool named>
struct Momentum {
  std::vector<double> velocity;
  void operator()(const Exec&, const hk::Vector<double, Exec>& w,
                  const hk::Vector<double, Exec>& gradient) {
    for (std::size_t i = 0; i < w.size(); ++i)
      w(i) -= rate * (velocity[i] = 0.9 * velocity[i] + gradient(i));
  }
  template <class Visit>
  void for_each_memory(Visit&& visit) requires named {
    visit("velocity", velocity);
  }
};
template <class Update>
using UpdatedBy = hd::LayerStage<SplitDense, SquaredError, Update>;
static_assert(hd::HasState<Stage<SplitDense>>);  // Descent keeps nothing
static_assert(hd::HasState<UpdatedBy<Momentum<true>>>);
static_assert(!hd::HasState<UpdatedBy<Momentum<false>>>);

}  // namespace

TEST_CASE("a LayerStage names the parameters of its layers and what its update keeps") {
  MlpStage mlp(0, 2, 2, rate);
  constexpr std::size_t each = MlpStage::per_layer, weights = width * width;
  std::vector<SplitDense> dense;
  for (std::size_t l = 0; l < 2; ++l) dense.emplace_back(mlp.parameters() + l * each);
  UpdatedBy<Momentum<true>> stage(std::move(dense),
                                  {.rows = rows, .takes_data = true, .computes_loss = true},
                                  SquaredError{1}, Momentum<true>{std::vector<double>(2 * each)});
  std::vector<std::tuple<int, std::string, std::int64_t>> arrays;
  std::vector<const double*> data;
  stage.visit_state([&](const auto& array) {
    arrays.emplace_back(array.layer, array.name, array.whole);
    data.push_back(array.data);
    CHECK(array.elements == hd::IndexSet(array.whole));
  });
  CHECK(arrays ==
        std::vector<std::tuple<int, std::string, std::int64_t>>{{0, "0", weights},
                                                                {0, "1", width},
                                                                {1, "0", weights},
                                                                {1, "1", width},
                                                                {0, "velocity/0", weights},
                                                                {0, "velocity/1", width},
                                                                {1, "velocity/0", weights},
                                                                {1, "velocity/1", width}});
  REQUIRE(data.size() == 8);
  const std::size_t begins[] = {0, weights, each, each + weights};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(data[i] == stage.parameters() + begins[i]);
    CHECK(data[4 + i] == data[4] + begins[i]);
  }
}

TEST_CASE("two layers of a LayerStage can have one Parameter") {
  const int ranks = world_size(), layers = ranks + 1, microbatches = 3;
  const auto make = [&](int first, int last) {
    MlpStage mlp(0, layers, layers, rate);
    std::vector<SplitDense> dense;
    for (int l = first; l < last; ++l) {
      const bool ends = l == layers - 1;  // the last layer has the matrix of the first one
      SplitDense& layer =
          dense.emplace_back(mlp.parameters() + static_cast<std::size_t>(l) * MlpStage::per_layer);
      if (ends) layer.w = SplitDense(mlp.parameters()).w;
      if (ends || l == 0) layer.w.tied = "matrix";
    }
    return Stage<SplitDense>(std::move(dense),
                             {.rows = rows,
                              .microbatches = microbatches,
                              .takes_data = first == 0,
                              .computes_loss = last == layers},
                             SquaredError{1.0 / microbatches}, Descent{});
  };
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
  hd::Stages<Stage<SplitDense>> model(layers, make);
  hd::Runner run(model, hd::schedule::zb_h1({.ranks = ranks, .microbatches = microbatches}), mesh);
  Stage<SplitDense> whole = make(0, layers);
  const auto tied = whole.tied_parameters();
  REQUIRE(tied.size() == 2);
  CHECK(tied[0].count == width * width);
  std::vector<double> saved(whole.saved_size()), delta(whole.delta_size());
  for (int step = 0; step < 3; ++step) {
    const Matrix x = samples("input", step, microbatches),
                 y = samples("target", step, microbatches);
    (void)run.step(x, y);
    whole.begin_step(x, y);
    whole.zero_gradients();
    for (int m = 0; m < microbatches; ++m) {
      whole.forward({.item = hd::Item{m}, .saved = saved.data()});
      whole.backward({.item = hd::Item{m}, .saved = saved.data(), .delta = delta.data()});
    }
    whole.fence();
    for (std::size_t i = 0; i < tied[0].count; ++i) {
      double& one = whole.gradients()[tied[0].first + i];
      double& other = whole.gradients()[tied[1].first + i];
      one = other = one + other;
    }
    whole.update();
    whole.fence();
  }
  const auto ranges = hd::partition_layers(layers, ranks);
  double apart = 0;
  model.for_each([&](hd::Stage number, Stage<SplitDense>& stage) {
    const double* const reference =
        whole.parameters() + static_cast<std::size_t>(ranges[+number].first) * MlpStage::per_layer;
    for (std::size_t i = 0; i < stage.parameter_count(); ++i)
      apart = std::max(apart, std::abs(stage.parameters()[i] - reference[i]));
  });
  CHECK(apart <= 1e-13);
  std::size_t shared = 0;
  whole.visit_state([&](const auto& array) {
    shared += array.layer == hd::whole_model && array.name == "matrix";
  });
  CHECK(shared == 2);
}

}  // namespace test_layer_stage
