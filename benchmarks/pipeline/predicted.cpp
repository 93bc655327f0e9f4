// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 4

/// @file
/// Predicted against measured steps. On 2 ranks the example's GPT; on 4 ranks stages that only
/// wait, so that more ranks than cores are no hindrance. Costs are profiled in the same run from
/// earlier steps, links measured, and the simulated step is compared with later ones.
///
/// There is nothing to iterate over that Google Benchmark could time: steps belong to all ranks.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/heddle.hpp>

#include "../support.hpp"
#include "gpt_training.hpp"
#include "text.hpp"

namespace hd = heddle;

namespace {

constexpr int measured_steps = 41;
constexpr int all_steps = 1 + 2 * measured_steps;

/// What is compared: the timeline that simulate() promised with the recorded ones, and with the
/// wall time of the steps, in which the executor's own work and the sum of the losses lie too.
struct Outcome {
  double predicted = 0;          ///< seconds
  std::vector<double> recorded;  ///< makespans
  std::vector<double> wall;      ///< between barriers, of the slowest rank
};

/// Runs all_steps steps: `step(run, number)`. The first is not counted at all: it warms up caches
/// and connections. The others take turns in being profiled and in being compared with what the
/// profile predicts, so that a machine whose speed changes changes it for both.
template <class Run, class OneStep>
[[nodiscard]] Outcome compare(Run& run, hd::DeviceMesh& mesh, OneStep&& step) {
  const MPI_Comm comm = mesh.all().get();
  Outcome outcome;
  const hd::Machine machine = hd::measure_machine(mesh);
  for (int number = 0; number < all_steps; ++number) {
    const bool profiles = number % 2 == 1;
    run.profile(profiles);
    MPI_Barrier(comm);
    double seconds = bench::seconds_of([&] { step(run, number); });
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, comm);
    if (number == 0 || profiles) continue;
    outcome.wall.push_back(seconds);
    outcome.recorded.push_back(run.timeline().makespan());
  }
  outcome.predicted = hd::simulate(run.schedule(), run.costs(), machine).makespan();
  return outcome;
}

/// How far the prediction is off, in percent of the measured: of the median, with the spread of the
/// single steps. Always positive: too long is as wrong as too short.
[[nodiscard]] bench::Summary error(double predicted, const std::vector<double>& measured) {
  const auto off = [&](double time) { return (predicted / time - 1) * 100; };
  const bench::Summary times = bench::summarise(measured);
  const auto range = [&](double a, double b) {
    const double x = off(a), y = off(b);
    const double near = x * y <= 0 ? 0 : std::min(std::abs(x), std::abs(y));
    return std::pair(near, std::max(std::abs(x), std::abs(y)));
  };
  const auto [low, high] = range(times.low, times.high);
  const auto [from, to] = range(times.from, times.to);
  return {std::abs(off(times.median)), low, high, from, to, times.count};
}

void report(const char* name, const std::string& schedule, const Outcome& outcome, int rank) {
  if (rank != 0) return;
  std::cout << schedule << ": predicted " << outcome.predicted * 1e3 << " ms, measured "
            << bench::summarise(outcome.recorded).median * 1e3 << " ms, with all around it "
            << bench::summarise(outcome.wall).median * 1e3 << " ms, medians of " << measured_steps
            << " steps\n";
  bench::print_value(name, "error_" + schedule, error(outcome.predicted, outcome.recorded), "%");
  bench::print_value(name, "wall_error_" + schedule, error(outcome.predicted, outcome.wall), "%");
}

/// The three schedules of this library for `ranks`, with their names.
[[nodiscard]] std::vector<std::pair<std::string, hd::Schedule>> schedules(
    int ranks, int microbatches, const hd::StageSizes& sizes) {
  return {
      {"gpipe", hd::schedule::gpipe({ranks, microbatches, sizes})},
      {"1f1b", hd::schedule::one_f_one_b({ranks, microbatches, sizes})},
      {"interleaved", hd::schedule::interleaved({ranks, 2, microbatches, sizes})},
  };
}

void gpt(hd::DeviceMesh& mesh) {
  examples::GptTraining training;
  training.model = {.layers = 4, .width = 128, .heads = 4, .context = 64, .sequences = 4};
  training.microbatches = 8;
  training.optimizer.learning_rate = 3e-3;
  const auto text = examples::Text::load({}, static_cast<std::size_t>(training.model.context));
  std::vector<std::vector<std::uint8_t>> batches;
  for (int step = 0; step < all_steps; ++step)
    batches.push_back(examples::batch(training, text, step, 0));
  for (const auto& [name, schedule] : schedules(mesh.size(), training.microbatches, {})) {
    examples::Gpt<float> model = examples::make_gpt<float>(training);
    hd::Runner run(model, schedule, mesh, {.execute = {.record = true}});
    const Outcome outcome = compare(run, mesh, [&](auto& runner, int number) {
      runner.step(batches[static_cast<std::size_t>(number)], examples::weight(training));
    });
    report("pipeline/predicted_gpt", name, outcome, static_cast<int>(mesh.rank().value));
  }
}

/// A stage that waits, for a time and not until one: what comes on top of it is not hidden.
struct WaitingModel {
  void operator()(const hd::Task& task) const {
    using std::chrono::milliseconds;
    if (task.kind() == hd::Kind::F) std::this_thread::sleep_for(milliseconds(5));
    if (task.kind() == hd::Kind::B) std::this_thread::sleep_for(milliseconds(10));
  }
};

void waits(hd::DeviceMesh& mesh) {
  // What is saved for the backward pass has no size: the stages touch nothing.
  const hd::StageSizes sizes{.activation = 1 << 16};
  for (const auto& [name, schedule] : schedules(mesh.size(), 8, sizes)) {
    hd::Runner run(WaitingModel{}, schedule, mesh,
                   {.execute = {.idle = hd::Idle::nap, .record = true}});
    const Outcome outcome = compare(run, mesh, [](auto& runner, int) { runner.step(); });
    report("pipeline/predicted_waits", name, outcome, static_cast<int>(mesh.rank().value));
  }
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  try {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
    hd::expects(ranks == 2 || ranks == 4, [&] {
      return hd::Complaint{"pipeline/predicted", "it runs on 2 ranks or on 4",
                           hd::text(ranks, " ranks")};
    });
    ranks == 2 ? gpt(mesh) : waits(mesh);
  } catch (const std::exception& error) {
    std::cerr << "pipeline/predicted: " << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
