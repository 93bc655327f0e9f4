// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// space: its own

// weight_pipeline() over MPI ranks and over threads: a rank that holds one stage computes its
// microbatches through all of them. Losses and gradients are those of the serial model in two
// steps.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <mpi.h>

#include <heddle/execute/combine.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/heddle.hpp>
#include <heddle/schedule/generator/weight_pipeline.hpp>

#include "support/world.hpp"

namespace test_weight_pipeline_run {

namespace hd = heddle;
using hd::schedule::WeightPipelineOptions;
using hd::test::world_rank;
using hd::test::world_size;

namespace {

constexpr std::size_t rows = 2, width = 3, activation = rows * width, matrix = width * width;
constexpr double rate = 0.05;

double first_weight(std::size_t stage, std::size_t i) {
  return std::sin(1.0 + 3.7 * static_cast<double>(stage) + 1.3 * static_cast<double>(i)) / 2;
}
double datum(std::size_t item, std::size_t i, double phase = 0.5) {
  return std::cos(phase + 2.9 * static_cast<double>(item) + 0.7 * static_cast<double>(i));
}

/// y = tanh(x A).
void forward(const double* x, const double* a, double* y) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < width; ++j) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += x[r * width + i] * a[i * width + j];
      y[r * width + j] = std::tanh(sum);
    }
}
/// Writes the gradient of x, if it is not null, and that of A from the gradient of y.
void backward(const double* x, const double* a, const double* y, const double* above, double* below,
              double* gradient) {
  std::fill_n(gradient, matrix, 0.0);
  if (below != nullptr) std::fill_n(below, activation, 0.0);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < width; ++j) {
      const std::size_t at = r * width + j;
      const double z = above[at] * (1 - y[at] * y[at]);
      for (std::size_t i = 0; i < width; ++i) {
        gradient[i * width + j] += x[r * width + i] * z;
        if (below != nullptr) below[r * width + i] += z * a[i * width + j];
      }
    }
}

/// What a step must give.
struct Expected {
  double loss = 0;
  std::vector<std::vector<double>> gradients;  ///< by stage
};

/// The step without a schedule. Updates the weights.
Expected serial_step(std::vector<std::vector<double>>& weights, std::size_t items) {
  const std::size_t stages = weights.size();
  Expected step{0, std::vector(stages, std::vector<double>(matrix))};
  for (std::size_t item = 0; item < items; ++item) {
    std::vector<std::vector<double>> x(stages + 1, std::vector<double>(activation));
    for (std::size_t i = 0; i < activation; ++i) x[0][i] = datum(item, i);
    for (std::size_t s = 0; s < stages; ++s)
      forward(x[s].data(), weights[s].data(), x[s + 1].data());
    std::vector<double> above(activation), below(activation), gradient(matrix);
    for (std::size_t i = 0; i < activation; ++i) {
      above[i] = x[stages][i] - datum(item, i, 2.1);
      step.loss += above[i] * above[i] / 2;
    }
    for (std::size_t s = stages; s-- > 0; above = below) {
      backward(x[s].data(), weights[s].data(), x[s + 1].data(), above.data(), below.data(),
               gradient.data());
      for (std::size_t i = 0; i < matrix; ++i) step.gradients[s][i] += gradient[i];
    }
  }
  for (std::size_t s = 0; s < stages; ++s)
    for (std::size_t i = 0; i < matrix; ++i) weights[s][i] -= rate * step.gradients[s][i];
  return step;
}

/// The part of the model that a rank computes, for a Runner. It holds the weights and the gradients
/// of one stage.
class TravellingModel {
 public:
  double loss = 0;
  std::vector<double> summed = std::vector<double>(matrix);  ///< the gradients of the last step
  std::size_t stage = 0;                                     ///< that the rank holds

  std::byte* memory(const hd::Schedule& schedule, hd::BufferId id) {
    const hd::Buffer& buffer = schedule[id];
    const bool weights = schedule[buffer.label] == hd::role::weights;
    if (!weights && schedule[buffer.label] != hd::role::gradients) return nullptr;
    stage = +buffer.stage;
    if (weights)
      for (std::size_t i = 0; i < matrix; ++i) m_weights[i] = first_weight(stage, i);
    return reinterpret_cast<std::byte*>(weights ? m_weights.data() : m_gradients.data());
  }

  void begin_step() { loss = 0; }

  void operator()(const hd::Task& task) {
    const bool first = +task.stage() == 0;
    switch (task.kind()) {
      case hd::Kind::forward: {
        double* const y = find(task, hd::role::saved);
        forward(input(task), weights(task), y);
        if (double* const output = find(task, hd::role::output, true); output != nullptr)
          std::copy_n(y, activation, output);
        else
          for (std::size_t i = 0; i < activation; ++i)
            loss += std::pow(y[i] - datum(+task.item(), i, 2.1), 2) / 2;
        return;
      }
      case hd::Kind::backward: {
        const double* const y = find(task, hd::role::saved);
        std::vector<double> above(activation);
        if (const double* const given = find(task, hd::role::input_grad); given != nullptr)
          std::copy_n(given, activation, above.data());
        else
          for (std::size_t i = 0; i < activation; ++i)
            above[i] = y[i] - datum(+task.item(), i, 2.1);
        return backward(input(task), weights(task), y, above.data(),
                        first ? nullptr : find(task, hd::role::input_grad, true),
                        find(task, hd::schedule::travelling::gradients, true));
      }
      case hd::Kind::combine: return hd::combine_on_host(task);
      case hd::Kind::update:
        summed = m_gradients;
        for (std::size_t i = 0; i < matrix; ++i) m_weights[i] -= rate * m_gradients[i];
        return std::fill(m_gradients.begin(), m_gradients.end(), 0.0);
      default: throw std::logic_error("weight_pipeline: an action of an unexpected kind");
    }
  }

 private:
  /// The memory of the use of a buffer `label` that is written, or that is only read; or null. A
  /// value that a forward saves is written, too.
  static double* find(const hd::Task& task, std::string_view label, bool writes) {
    for (const hd::BoundUse& use : task.uses())
      if (task.schedule()[task.schedule()[use.buffer].label] == label &&
          (use.access == hd::Access::write) == writes)
        return reinterpret_cast<double*>(use.data);
    return nullptr;
  }
  static double* find(const hd::Task& task, std::string_view label) {
    return find(task, label, label == hd::role::saved && task.kind() == hd::Kind::forward);
  }
  static const double* weights(const hd::Task& task) {
    const double* const own = find(task, hd::role::weights);
    return own != nullptr ? own : find(task, hd::schedule::travelling::weights);
  }
  const double* input(const hd::Task& task) {
    if (const double* const given = find(task, hd::role::output); given != nullptr) return given;
    for (std::size_t i = 0; i < activation; ++i) m_data[i] = datum(+task.item(), i);
    return m_data.data();
  }

  std::vector<double> m_weights = std::vector<double>(matrix);
  std::vector<double> m_gradients = std::vector<double>(matrix);
  std::vector<double> m_data = std::vector<double>(activation);
};

WeightPipelineOptions options_of(int ranks, int groups, int rounds) {
  return {.ranks = ranks,
          .groups = groups,
          .rounds = rounds,
          .sizes = {.activation = activation * sizeof(double),
                    .saved = activation * sizeof(double),
                    .parameters = matrix * sizeof(double),
                    .type = hd::Scalar::f64}};
}

std::vector<std::vector<double>> first_weights(int stages) {
  std::vector<std::vector<double>> weights(static_cast<std::size_t>(stages),
                                           std::vector<double>(matrix));
  for (std::size_t s = 0; s < weights.size(); ++s)
    for (std::size_t i = 0; i < matrix; ++i) weights[s][i] = first_weight(s, i);
  return weights;
}

/// The largest difference of this rank's gradients, which must be within rounding.
double apart(const TravellingModel& model, const Expected& expected) {
  double most = 0;
  for (std::size_t i = 0; i < matrix; ++i)
    most = std::max(most, std::abs(model.summed[i] - expected.gradients[model.stage][i]));
  return most;
}

}  // namespace

TEST_CASE("weights that travel over ranks: gradients are the serial ones to 1e-12") {
  const int ranks = world_size();
  for (int groups = 1; groups <= ranks; ++groups) {
    if (ranks % groups != 0) continue;
    for (const int rounds : {1, 3}) {
      INFO(groups << " groups, " << rounds << " rounds");
      hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
      TravellingModel model;
      hd::Runner run(model, hd::schedule::weight_pipeline(options_of(ranks, groups, rounds)), mesh);
      auto weights = first_weights(ranks);
      for (int step = 0; step < 2; ++step) {
        const Expected expected = serial_step(weights, static_cast<std::size_t>(ranks * rounds));
        run.step();
        double loss = 0;
        MPI_Allreduce(&model.loss, &loss, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        CHECK(std::abs(loss - expected.loss) <= 1e-12 * expected.loss);
        CHECK(apart(model, expected) <= 1e-12);
      }
    }
  }
}

TEST_CASE("weights that travel over threads: gradients are the serial ones to 1e-12") {
  if (world_rank() != 0) return;
  const int ranks = world_size() == 1 ? 6 : world_size();
  for (int groups = 1; groups <= ranks; ++groups) {
    if (ranks % groups != 0) continue;
    const hd::Schedule schedule = hd::schedule::weight_pipeline(options_of(ranks, groups, 2));
    auto weights = first_weights(ranks);
    const Expected expected = serial_step(weights, static_cast<std::size_t>(2 * ranks));
    std::mutex mutex;
    double loss = 0, most = 0;
    hd::run_threads(ranks, [&](hd::ThreadTransport& transport) {
      TravellingModel model;
      hd::Runner run(model, schedule, transport);
      run.step();
      const std::lock_guard lock(mutex);
      loss += model.loss;
      most = std::max(most, apart(model, expected));
    });
    INFO(groups << " groups");
    CHECK(std::abs(loss - expected.loss) <= 1e-12 * expected.loss);
    CHECK(most <= 1e-12);
  }
}

}  // namespace test_weight_pipeline_run
