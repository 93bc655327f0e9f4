// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A model of your own in a pipeline: four layers y = tanh(x w + b) on two ranks. You write a layer,
// a loss and an update; the schedule decides who computes what when, and all messages.
//
//   mpiexec -n 2 example_14_own_model

#include <cstddef>
#include <iostream>
#include <tuple>
#include <utility>
#include <vector>

#include <heddle/comm/device_mesh.hpp>
#include <heddle/comm/environment.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/kernel/linear.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/kernel/reduce.hpp>
#include <heddle/pipeline/layer_stage.hpp>
#include <heddle/pipeline/stages.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/trace/grid.hpp>

namespace hd = heddle;
namespace hk = heddle::kernel;
using Exec = Kokkos::DefaultExecutionSpace;
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Exec::memory_space>;

// The mathematics.
struct Tanh {
  KOKKOS_FUNCTION double operator()(double z) const { return Kokkos::tanh(z); }
};
struct TanhGradient {
  KOKKOS_FUNCTION double operator()(double y, double y_grad) const { return y_grad * (1 - y * y); }
};

struct Dense {
  using scalar_type = double;
  using execution_space = Exec;
  hd::Parameter<double**> w;
  hd::Parameter<double*> b;

  std::size_t inputs() const { return w.value.extent(0); }
  std::size_t outputs() const { return w.value.extent(1); }
  auto parameters() { return std::tie(w, b); }

  void forward(const auto& call) {
    hk::linear_forward(call.exec, call.input, w.value, b.value, call.output);
    hk::map(call.exec, Tanh{}, call.output, call.output);
  }
  void backward_input(const auto& call) {  // delta: the gradient of x w + b
    hk::map(call.exec, TanhGradient{}, call.delta, call.output, call.output_grad);
    hk::linear_backward_input(call.exec, w.value, call.delta, call.input_grad);
  }
  void backward_weight(const auto& call) {
    hk::linear_backward_weight(call.exec, call.input, call.delta, w.gradient, b.gradient);
  }
};

struct Difference {
  double scale;
  KOKKOS_FUNCTION double operator()(double y, double target) const { return scale * (y - target); }
};
struct Square {
  KOKKOS_FUNCTION double operator()(double y, double target) const {
    return (y - target) * (y - target);
  }
};
struct SquaredError {  // half the sum of squares, divided by the samples of the whole batch
  double samples;
  double operator()(const Exec& exec, const auto& y, const auto& target, const auto& y_grad) const {
    hk::map(exec, Difference{1 / samples}, y_grad, y, target);
    double sum = 0;
    hk::reduce(exec, Kokkos::Sum<double>(sum), Square{}, y, target);
    return sum / (2 * samples);
  }
};

struct Descent {  // w -= rate gradient
  double rate;
  KOKKOS_FUNCTION double operator()(double w, double gradient) const { return w - rate * gradient; }
  void operator()(const Exec& exec, const auto& w, const auto& gradient) const {
    hk::map(exec, *this, w, w, gradient);
  }
};

// The model: the initial values of layer `number`, and the layers of one rank.
constexpr int depth = 4, microbatches = 4;
constexpr std::size_t width = 8, rows = 16;
using Stage = hd::LayerStage<Dense, SquaredError, Descent>;

Dense make_layer(int number) {
  Dense layer{hd::Parameter<double**>("w", width, width), hd::Parameter<double*>("b", width)};
  const auto w = Kokkos::create_mirror_view(layer.w.value);
  const hd::Random random(1, hd::text("layer ", number));
  for (std::size_t i = 0; i < w.size(); ++i) w.data()[i] = 0.4 * random.normal(i);
  Kokkos::deep_copy(layer.w.value, w);
  return layer;
}

Stage make_stage(int first, int last) {
  std::vector<Dense> layers;
  for (int number = first; number < last; ++number) layers.push_back(make_layer(number));
  return Stage(std::move(layers),
               {.rows = rows,
                .microbatches = microbatches,
                .takes_data = first == 0,
                .computes_loss = last == depth},
               SquaredError{rows * microbatches}, Descent{0.5});
}

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);  // MPI and Kokkos
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", 2}});
  const bool speaks = mesh.rank() == hd::Rank{0};

  // The model learns to reverse the numbers of a sample.
  const Matrix x("x", rows * microbatches, width), y("y", rows * microbatches, width);
  const auto host_x = Kokkos::create_mirror_view(x), host_y = Kokkos::create_mirror_view(y);
  const hd::Random random(1, "samples");
  for (std::size_t r = 0; r < x.extent(0); ++r)
    for (std::size_t i = 0; i < width; ++i)
      host_x(r, i) = host_y(r, width - 1 - i) = 0.5 * random.normal(r * width + i);
  Kokkos::deep_copy(x, host_x);
  Kokkos::deep_copy(y, host_y);

  const auto schedule = hd::schedule::one_f_one_b({.ranks = 2, .microbatches = microbatches});
  if (speaks) std::cout << hd::to_grid(schedule);  // look before you run
  hd::Stages<Stage> model(depth, make_stage);
  hd::Runner run(model, schedule, mesh);
  for (int step = 0; step <= 200; ++step) {
    const double loss = run.step(x, y).loss;
    if (speaks && step % 50 == 0) std::cout << "step " << step << ": loss " << loss << '\n';
  }
}
