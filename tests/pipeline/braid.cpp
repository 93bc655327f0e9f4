// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own
// ranks: 2 4

// Braided forwards and backwards over ranks, two of which divide each layer: losses and gradients
// are those of whole layers without a schedule.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/execute/combine.hpp>
#include <heddle/heddle.hpp>
#include <heddle/schedule/generator/interleaved_groups.hpp>
#include <heddle/schedule/pass/braid.hpp>
#include <heddle/schedule/pass/data_parallel.hpp>

#include "support/world.hpp"

namespace test_braid_run {

namespace hd = heddle;
using hd::test::world_size;

namespace {

constexpr std::size_t width = 4, hidden = 3, lines = 2, units = 2;
constexpr std::size_t half = 2 * width * hidden;  ///< the parameters of one line: A, then B
constexpr double rate = 0.05;

double first_weight(std::size_t unit, std::size_t line, std::size_t i) {
  return std::sin(1.0 + 3.7 * static_cast<double>(unit) + 1.9 * static_cast<double>(line) +
                  1.3 * static_cast<double>(i)) /
         2;
}
double datum(std::size_t item, std::size_t i, double phase = 0.5) {
  return std::cos(phase + 2.9 * static_cast<double>(item) + 0.7 * static_cast<double>(i));
}

/// Adds tanh(x A) B, of the columns of one line, to y.
void add_forward(const double* x, const double* weights, double* y) {
  for (std::size_t h = 0; h < hidden; ++h) {
    double sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += x[i] * weights[i * hidden + h];
    for (std::size_t j = 0; j < width; ++j)
      y[j] += std::tanh(sum) * weights[width * hidden + h * width + j];
  }
}
/// Adds the gradients of x and of the weights of one line to `below`, if it is not null, and to
/// `gradient`.
void add_backward(const double* x, const double* weights, const double* above, double* below,
                  double* gradient) {
  for (std::size_t h = 0; h < hidden; ++h) {
    double sum = 0, into = 0;
    for (std::size_t i = 0; i < width; ++i) sum += x[i] * weights[i * hidden + h];
    const double value = std::tanh(sum);
    for (std::size_t j = 0; j < width; ++j) {
      const std::size_t at = width * hidden + h * width + j;
      gradient[at] += value * above[j];
      into += weights[at] * above[j];
    }
    into *= 1 - value * value;
    for (std::size_t i = 0; i < width; ++i) {
      gradient[i * hidden + h] += x[i] * into;
      if (below != nullptr) below[i] += weights[i * hidden + h] * into;
    }
  }
}

/// The weights or the gradients of all units, by unit and line.
using Parameters = std::map<std::pair<std::size_t, std::size_t>, std::vector<double>>;

/// One step without a schedule, of `count` units, the last of which computes the loss. Updates the
/// weights and returns the loss.
double serial_step(Parameters& weights, Parameters& gradients, std::size_t count,
                   std::size_t items) {
  double loss = 0;
  gradients.clear();
  for (const auto& [key, each] : weights) gradients[key].resize(each.size());
  for (std::size_t item = 0; item < items; ++item) {
    std::vector<std::vector<double>> x(count + 1, std::vector<double>(width));
    for (std::size_t i = 0; i < width; ++i) x[0][i] = datum(item, i);
    for (std::size_t u = 0; u + 1 < count; ++u) {
      x[u + 1] = x[u];
      for (std::size_t line = 0; line < lines; ++line)
        add_forward(x[u].data(), weights.at({u, line}).data(), x[u + 1].data());
    }
    std::vector<double> above(width);
    for (std::size_t i = 0; i < width; ++i) {
      above[i] = x[count - 1][i] - datum(item, i, 2.1);
      loss += above[i] * above[i] / 2;
    }
    for (std::size_t u = count - 1; u-- > 0;) {
      std::vector<double> below = above;
      for (std::size_t line = 0; line < lines; ++line)
        add_backward(x[u].data(), weights.at({u, line}).data(), above.data(), below.data(),
                     gradients.at({u, line}).data());
      above = below;
    }
  }
  for (auto& [key, each] : weights)
    for (std::size_t i = 0; i < each.size(); ++i) each[i] -= rate * gradients.at(key)[i];
  return loss;
}

/// The units of a rank, whose line computes a part of each.
class BraidedModel {
 public:
  double loss = 0;
  Parameters gradients = {};  ///< of the last step

  BraidedModel(std::size_t line, std::size_t count) : m_line(line), m_units(count) {}

  std::byte* memory(const hd::Schedule& schedule, hd::BufferId id) {
    const hd::Buffer& buffer = schedule[id];
    if (schedule[buffer.label] != hd::role::weights) return nullptr;
    auto& weights = m_weights[+buffer.stage];
    weights.clear();
    for (std::size_t i = 0; i < half; ++i)
      weights.push_back(first_weight(+buffer.stage, m_line, i));
    return reinterpret_cast<std::byte*>(weights.data());
  }

  void begin_step() { loss = 0; }

  void operator()(const hd::Task& task) {
    if (task.kind() == hd::Kind::combine) return hd::combine_on_host(task);
    const std::size_t unit = +task.stage();
    const bool computes_loss = unit + 1 == m_units;
    double* const weights = find(task, hd::Role::weights);
    double* const gradient = find(task, hd::Role::gradients);
    if (task.kind() == hd::Kind::update) {
      gradients[{unit, m_line}].assign(gradient, gradient + half);
      for (std::size_t i = 0; i < half; ++i) weights[i] -= rate * gradient[i];
      return;
    }
    const double* const given = find(task, hd::Role::input);
    std::vector<double> x(width);
    for (std::size_t i = 0; i < width; ++i) x[i] = unit == 0 ? datum(+task.item(), i) : given[i];
    if (task.kind() == hd::Kind::forward) {
      double* const y = find(task, hd::Role::output);
      if (computes_loss) {
        for (std::size_t i = 0; i < width && m_line == 0; ++i)
          loss += std::pow(x[i] - datum(+task.item(), i, 2.1), 2) / 2;
        return;
      }
      // The sum over the lines has the input once.
      for (std::size_t i = 0; i < width; ++i) y[i] = m_line == 0 ? x[i] : 0;
      return add_forward(x.data(), weights, y);
    }
    double* const below = find(task, hd::Role::input_grad);
    const double* const summed = find(task, hd::Role::output_grad);
    std::vector<double> above(width);
    for (std::size_t i = 0; i < width; ++i)
      above[i] = computes_loss ? x[i] - datum(+task.item(), i, 2.1) : summed[i];
    for (std::size_t i = 0; i < width && below != nullptr; ++i)
      below[i] = m_line == 0 ? above[i] : 0;
    for (const hd::BoundUse& use : task.uses())
      if (use.role == hd::Role::gradients && use.access == hd::Access::write)
        std::fill_n(gradient, half, 0.0);
    if (!computes_loss) add_backward(x.data(), weights, above.data(), below, gradient);
  }

 private:
  static double* find(const hd::Task& task, hd::Role role) {
    for (const hd::BoundUse& use : task.uses())
      if (use.role == role) return reinterpret_cast<double*>(use.data);
    return nullptr;
  }

  std::size_t m_line, m_units;
  std::map<std::size_t, std::vector<double>> m_weights;
};

}  // namespace

TEST_CASE("braided passes over ranks: losses and gradients are the serial ones to 1e-12") {
  if (world_size() % static_cast<int>(lines) != 0) return;
  const int pipe = world_size() / static_cast<int>(lines), microbatches = 2 * pipe;
  constexpr int stages_per_rank = 2;
  const auto count = static_cast<std::size_t>(pipe * stages_per_rank) * units;
  const hd::MeshShape shape({{"pipe", pipe}, {"tensor", static_cast<int>(lines)}});
  const hd::Orders orders = hd::schedule::combined_1f1b(pipe, stages_per_rank, microbatches);
  const hd::Schedule schedule = hd::schedule::exchange_sums(
      hd::schedule::data_parallel(hd::weave(hd::schedule::braid(orders, static_cast<int>(units)),
                                            {.activation = width * sizeof(double),
                                             .parameters = half * sizeof(double),
                                             .type = hd::Scalar::f64}),
                                  shape, "pipe", {"tensor"}),
      static_cast<int>(lines));
  hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", pipe}, {"tensor", static_cast<int>(lines)}});
  BraidedModel model(static_cast<std::size_t>(mesh.coordinate("tensor")), count);
  hd::Runner run(model, schedule, mesh);
  Parameters weights, gradients;
  for (std::size_t unit = 0; unit < count; ++unit)
    for (std::size_t line = 0; line < lines; ++line)
      for (std::size_t i = 0; i < half; ++i)
        weights[{unit, line}].push_back(first_weight(unit, line, i));
  for (int step = 0; step < 2; ++step) {
    const double expected =
        serial_step(weights, gradients, count, static_cast<std::size_t>(microbatches));
    run.step();
    double loss = 0;
    MPI_Allreduce(&model.loss, &loss, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(std::abs(loss - expected) <= 1e-12 * expected);
    CHECK(model.gradients.size() == stages_per_rank * units);
    for (const auto& [place, found] : model.gradients) {
      double apart = 0;
      for (std::size_t i = 0; i < half; ++i)
        apart = std::max(apart, std::abs(found[i] - gradients.at(place)[i]));
      CHECK(apart <= 1e-12);
    }
  }
}

}  // namespace test_braid_run
