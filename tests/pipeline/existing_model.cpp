// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2

// What docs/existing_model.md shows: functions of C with buffers of their own as the layers of a
// pipeline, whose losses are those of the plain loop, saved, resumed on another division, and
// reported.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/core/checkpoint.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/pipeline/checkpoint.hpp>
#include <heddle/pipeline/layer_stage.hpp>
#include <heddle/pipeline/stages.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/generator/zero_bubble.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/trace/perfetto.hpp>
#include <heddle/trace/report.hpp>

namespace test_existing_model {

namespace hd = heddle;

namespace {

// The code that exists. It knows nothing of Heddle.
void dense_forward(float* y, const float* x, const float* w, int rows, int width) {
  for (int r = 0; r < rows; ++r)
    for (int o = 0; o < width; ++o) {
      float sum = 0;
      for (int i = 0; i < width; ++i) sum += x[r * width + i] * w[i * width + o];
      y[r * width + o] = std::tanh(sum);
    }
}
void dense_backward(float* dx, float* dw, const float* dy, const float* y, const float* x,
                    const float* w, int rows, int width) {
  for (int k = 0; k < rows * width; ++k) dx[k] = 0;
  for (int r = 0; r < rows; ++r)
    for (int o = 0; o < width; ++o) {
      const float out = y[r * width + o];
      const float d = dy[r * width + o] * (1 - out * out);
      for (int i = 0; i < width; ++i) {
        dx[r * width + i] += d * w[i * width + o];
        dw[i * width + o] += d * x[r * width + i];
      }
    }
}
double squared_error(const float* y, const float* target, float* dy, int count, float scale) {
  double sum = 0;
  for (int k = 0; k < count; ++k) {
    const float difference = y[k] - target[k];
    sum += 0.5 * scale * difference * difference;
    dy[k] = scale * difference;
  }
  return sum;
}
void descend(float* w, const float* dw, int count) {
  for (int k = 0; k < count; ++k) w[k] -= 0.1f * dw[k];
}

constexpr int depth = 4, width = 6, rows = 3, microbatches = 4;

/// The initial weights of a layer, and the data.
float weight(int layer, int k) { return 0.4f * std::sin(1.0f + static_cast<float>(7 * layer + k)); }
float sample(int k) { return std::cos(static_cast<float>(k)); }
float wanted(int k) { return std::sin(static_cast<float>(3 * k)); }

/// The losses of the plain loop. It adds all gradients into one buffer, or those of each microbatch
/// `apart` first.
std::vector<double> plain_losses(int steps, bool apart) {
  constexpr int block = rows * width, weights = width * width;
  std::vector<std::vector<float>> w(depth, std::vector<float>(weights));
  for (int l = 0; l < depth; ++l)
    for (int k = 0; k < weights; ++k)
      w[static_cast<std::size_t>(l)][static_cast<std::size_t>(k)] = weight(l, k);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    std::vector<std::vector<float>> dw(depth, std::vector<float>(weights, 0));
    double loss = 0;
    for (int m = 0; m < microbatches; ++m) {
      std::vector<std::vector<float>> x(depth + 1, std::vector<float>(block));
      std::vector<float> target(block), dy(block), dx(block);
      for (int k = 0; k < block; ++k) {
        x[0][static_cast<std::size_t>(k)] = sample(m * block + k);
        target[static_cast<std::size_t>(k)] = wanted(m * block + k);
      }
      for (std::size_t l = 0; l < depth; ++l)
        dense_forward(x[l + 1].data(), x[l].data(), w[l].data(), rows, width);
      loss += squared_error(x[depth].data(), target.data(), dy.data(), block,
                            1.0f / (rows * microbatches));
      for (std::size_t l = depth; l-- > 0;) {
        std::vector<float> own(weights, 0);
        float* const into = apart ? own.data() : dw[l].data();
        dense_backward(dx.data(), into, dy.data(), x[l + 1].data(), x[l].data(), w[l].data(), rows,
                       width);
        for (std::size_t k = 0; apart && k < weights; ++k) dw[l][k] += own[k];
        std::swap(dx, dy);
      }
    }
    losses.push_back(loss);
    for (std::size_t l = 0; l < depth; ++l) descend(w[l].data(), dw[l].data(), weights);
  }
  return losses;
}

// What a pipeline needs of it.
using Exec = Kokkos::DefaultHostExecutionSpace;
using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace>;

struct Dense {
  using scalar_type = float;
  using execution_space = Exec;
  hd::Parameter<float**, Kokkos::HostSpace> w;

  std::size_t inputs() const { return w.value.extent(0); }
  std::size_t outputs() const { return w.value.extent(1); }
  auto parameters() { return std::tie(w); }

  void forward(const auto& call) {
    dense_forward(call.output.data(), call.input.data(), w.value.data(),
                  static_cast<int>(call.input.extent(0)), width);
  }
  void backward(const auto& call) {
    dense_backward(call.input_grad.data(), w.gradient.data(), call.output_grad.data(),
                   call.output.data(), call.input.data(), w.value.data(),
                   static_cast<int>(call.input.extent(0)), width);
  }
};
struct Loss {
  double operator()(const Exec&, const auto& y, const auto& target, const auto& y_grad) const {
    return squared_error(y.data(), target.data(), y_grad.data(), static_cast<int>(y.size()),
                         1.0f / (rows * microbatches));
  }
};
struct Descent {
  void operator()(const Exec&, const auto& w, const auto& gradient) const {
    descend(w.data(), gradient.data(), static_cast<int>(w.size()));
  }
};
using Stage = hd::LayerStage<Dense, Loss, Descent>;

Stage make_stage(int first, int last) {
  std::vector<Dense> layers;
  for (int l = first; l < last; ++l) {
    Dense layer{hd::Parameter<float**, Kokkos::HostSpace>("w", width, width)};
    for (int k = 0; k < width * width; ++k) layer.w.value.data()[k] = weight(l, k);
    layers.push_back(std::move(layer));
  }
  return Stage(std::move(layers),
               {.rows = rows,
                .microbatches = microbatches,
                .takes_data = first == 0,
                .computes_loss = last == depth},
               Loss{}, Descent{});
}

/// The data of a step.
std::pair<Matrix, Matrix> data() {
  const Matrix x("x", rows * microbatches, width), y("y", rows * microbatches, width);
  for (int k = 0; k < rows * microbatches * width; ++k) {
    x.data()[k] = sample(k);
    y.data()[k] = wanted(k);
  }
  return {x, y};
}

}  // namespace

TEST_CASE("functions of C make a pipeline with the losses of the plain loop, saved and resumed") {
  const auto [x, y] = data();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 2}});
  const std::string path = "existing_model.ckpt";
  for (const hd::Schedule& schedule :
       {hd::schedule::gpipe({.ranks = 2, .microbatches = microbatches}),
        hd::schedule::one_f_one_b({.ranks = 2, .microbatches = microbatches}),
        hd::schedule::zb_h1({.ranks = 2, .microbatches = microbatches})}) {
    INFO(schedule.name());
    // ZB-H1 divides the backward pass, so it has the gradient of a microbatch before it adds it.
    const std::vector<double> plain = plain_losses(6, schedule.name().starts_with("ZB"));
    hd::Stages<Stage> model(depth, make_stage);
    hd::Runner run(model, schedule, mesh);
    for (std::size_t step = 0; step < 3; ++step) CHECK(run.step(x, y).loss == plain[step]);
    hd::Checkpoint own;
    own.set("step", std::vector<std::int64_t>{3});
    hd::save(path, model, mesh, own);
    MPI_Barrier(MPI_COMM_WORLD);  // the file is there

    // Another division of the layers: one on rank 0, three on rank 1.
    hd::Stages<Stage> again(depth, make_stage, {.layers_per_stage = {1, 3}});
    hd::Runner resumed(again, schedule, mesh);
    const hd::Checkpoint saved = hd::restore(path, again, mesh);
    const std::int64_t first = saved.get<std::int64_t>("step", 1)[0];
    CHECK(first == 3);
    for (std::size_t step = 3; step < 6; ++step) CHECK(resumed.step(x, y).loss == plain[step]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (+mesh.rank() == 0) std::filesystem::remove(path);
}

TEST_CASE("a step of it is predicted and measured") {
  const auto [x, y] = data();
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 2}});
  const hd::Schedule schedule =
      hd::schedule::one_f_one_b({.ranks = 2, .microbatches = microbatches});
  std::ostringstream out;
  hd::Stages<Stage> model(depth, make_stage);
  hd::Runner run(model, schedule, mesh, {.execute = {.record = true}});
  for (int step = 0; step < 5; ++step) run.step(x, y);
  const hd::Timeline measured = run.timeline();
  const hd::Timeline predicted = hd::simulate(run.schedule(), run.costs());
  if (+mesh.rank() == 0) {
    out << hd::trace::bubble_report(predicted, measured);
    hd::trace::write("existing_model.json", predicted, measured);  // for ui.perfetto.dev
    CHECK(out.str().find("rank 1") != std::string::npos);
    CHECK(std::filesystem::remove("existing_model.json"));
  }
}

}  // namespace test_existing_model
