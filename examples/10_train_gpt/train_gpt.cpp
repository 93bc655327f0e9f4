// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Trains a byte-level GPT on a text, over ranks, by a pipeline schedule that is printed, simulated and
// then run; --check compares it with the same training on one rank.
//
//   mpiexec -n 4 example_10_train_gpt --pipe 2 --data 2 --schedule 1f1b --steps 60 --check

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/heddle.hpp>

#include "gpt_training.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "text.hpp"

namespace hd = heddle;
using namespace examples;

namespace {

struct Settings {
  GptTraining training;
  std::string text;
  std::string schedule = "1f1b";
  std::string gradient_sum = "ring";
  std::string precision = "float";
  std::string trace;
  int pipe = 1;
  int data = 1;
  int stages_per_rank = 2;
  int steps = 50;
  int sample = 200;
  double rate = 3e-3;
  bool check = false;
  bool report = false;
  bool help = false;
};

Settings parse(int argc, char** argv) {
  Settings s;
  GptConfig& model = s.training.model;
  Options options("Trains a byte-level GPT by a pipeline schedule; start it with mpiexec -n "
                  "PIPE*DATA.");
  options.add("text", s.text, "file to train on; without one the C++ standard headers");
  options.add("pipe", s.pipe, "ranks along the pipeline");
  options.add("data", s.data, "replicas of the pipeline");
  options.add("schedule", s.schedule, "gpipe, 1f1b or interleaved");
  options.add("stages-per-rank", s.stages_per_rank, "of the interleaved schedule");
  options.add("microbatches", s.training.microbatches, "per replica and step");
  options.add("gradient-sum", s.gradient_sum, "ring (part of the schedule) or library (MPI)");
  options.add("layers", model.layers, "transformer blocks");
  options.add("width", model.width, "elements per token");
  options.add("heads", model.heads, "attention heads");
  options.add("context", model.context, "tokens that a prediction may look back on");
  options.add("sequences", model.sequences, "per microbatch");
  options.add("precision", s.precision, "float or double");
  options.add("steps", s.steps, "training steps");
  options.add("rate", s.rate, "learning rate");
  options.add("seed", s.training.seed, "of parameters, batches and the sample");
  options.add("sample", s.sample, "bytes of text to generate at the end");
  options.add("trace", s.trace, "file for a Perfetto trace, predicted and measured");
  options.flag("check", s.check, "train on one rank too and compare losses and gradients");
  options.flag("report", s.report, "print the bubble: theory, simulated, measured");
  s.help = !options.parse(argc, argv);
  if (s.help) s.text = options.help();
  s.training.replicas = s.data;
  s.training.optimizer.learning_rate = s.rate;
  return s;
}

hd::Schedule make_schedule(const Settings& s) {
  const int m = s.training.microbatches;
  if (s.schedule == "gpipe") return hd::schedule::gpipe({.stages = s.pipe, .microbatches = m});
  if (s.schedule == "1f1b")
    return hd::schedule::one_f_one_b({.stages = s.pipe, .microbatches = m});
  if (s.schedule == "interleaved")
    return hd::schedule::interleaved(
        {.ranks = s.pipe, .stages_per_rank = s.stages_per_rank, .microbatches = m});
  throw hd::contract_error({"command line", hd::text("no schedule '", s.schedule, "'"), {},
                            "use gpipe, 1f1b or interleaved"});
}

hd::GradientSum make_gradient_sum(const Settings& s) {
  if (s.gradient_sum == "ring") return hd::GradientSum::ring;
  if (s.gradient_sum == "library") return hd::GradientSum::library;
  throw hd::contract_error({"command line", hd::text("no gradient sum '", s.gradient_sum, "'"), {},
                            "use ring or library"});
}

template <class T>
T median(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <class Real>
void train(const Settings& s, MPI_Comm comm) {
  const GptTraining& training = s.training;
  hd::DeviceMesh mesh(comm, {{"pipe", s.pipe}, {"data", s.data}});
  const bool speaks = mesh.rank() == hd::Rank{0};
  const auto text = Text::load(s.text, static_cast<std::size_t>(training.model.context));
  const hd::Schedule schedule = make_schedule(s);
  hd::expects(s.steps >= 1, [&] {
    return hd::Complaint{"command line", "--steps must be at least 1", hd::text(s.steps)};
  });
  if (speaks) {
    std::cout << "text: " << text.description() << '\n'
              << hd::to_grid(schedule) << "mesh: " << mesh.shape() << '\n';
  }

  Gpt<Real> model = make_gpt<Real>(training, {.gradient_sum = make_gradient_sum(s)});
  hd::Runner run(model, schedule, mesh, {.execute = {.record = true}});
  const int replica = mesh.coordinate("data");
  const double tokens = static_cast<double>(training.model.sequences) * training.model.context *
                        training.microbatches * training.replicas;
  std::vector<double> losses;
  std::vector<Real> gradients;  // of the first step
  std::vector<hd::Seconds> measured;
  std::vector<double> bubbles;
  const int profiled = std::max(1, s.steps / 3);  // the later steps are what is predicted
  {
    Progress progress(speaks, s.steps, tokens);
    for (int step = 0; step < s.steps; ++step) {
      // The first step warms up caches and libraries; it is not what a step costs.
      if (step == 1) run.reset_costs();
      losses.push_back(run.step(batch(training, text, step, replica), weight(training)).loss);
      progress(step, losses.back());
      if (step == 0 && s.check)
        gradients = gather<Real>(model, mesh, [](auto& stage) { return stage.gradients(); });
      if (s.report && step >= profiled) {
        const hd::Timeline timeline = run.timeline();
        measured.push_back(timeline.makespan());
        bubbles.push_back(timeline.bubble_ratio());
      }
    }
  }
  const auto last = [&](int count) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += losses[losses.size() - 1 - static_cast<std::size_t>(i)];
    return sum / count;
  };
  const int end = std::min(s.steps, 5);
  if (speaks)
    std::cout << "loss: first " << losses.front() << ", last " << last(end) << " (mean of " << end
              << " steps)\n";

  if (s.report || !s.trace.empty()) {
    const hd::Timeline timeline = run.timeline();
    const hd::TableCosts costs = run.costs();
    const hd::Timeline predicted =
        hd::simulate(run.schedule(), costs, hd::measure_machine(mesh));
    if (speaks && s.report && !measured.empty()) {
      const bool interleaves = s.schedule == "interleaved";
      std::cout << hd::trace::bubble_report(
          predicted, timeline,
          hd::schedule::bubble_ratio(s.pipe, training.microbatches,
                                     interleaves ? s.stages_per_rank : 1));
      const double step = median(measured);
      std::cout << "step: predicted " << predicted.makespan() * 1e3 << " ms, measured "
                << step * 1e3 << " ms (median of " << measured.size() << "), off by "
                << std::abs(predicted.makespan() / step - 1) * 100 << " %\n"
                << "bubble: predicted " << predicted.bubble_ratio() << ", measured "
                << median(bubbles) << '\n';
    }
    if (speaks && !s.trace.empty()) {
      hd::trace::write(s.trace, predicted, timeline);
      std::cout << "trace: " << s.trace << " (open it in ui.perfetto.dev)\n";
    }
  }

  const auto parameters =
      gather<Real>(model, mesh, [](auto& stage) { return stage.parameters(); });
  if (!speaks) return;
  if (s.check) {
    SerialGpt<Real> serial(training);
    double worst_loss = 0;
    double worst_gradient = 0;
    for (int step = 0; step < s.steps; ++step) {
      const double reference = serial.step(text, step);
      worst_loss = std::max(
          worst_loss, std::abs(losses[static_cast<std::size_t>(step)] - reference) / reference);
      if (step > 0) continue;
      const GradientDifference<Real> difference(gradients, serial.stage().gradients(),
                                                serial.stage().tensors());
      worst_gradient = difference.worst;
    }
    std::cout << "check: against one rank, losses differ by at most " << worst_loss
              << ", gradients of step 1 by " << worst_gradient << " (relative)\n";
    const double tolerance = std::is_same_v<Real, double> ? 1e-10 : 1e-4;
    if (!(worst_loss <= tolerance))
      throw hd::error({"check", "the losses differ from the serial model's",
                       hd::text(worst_loss, " > ", tolerance)});
  }
  if (s.sample > 0) {
    GptStage<Real> whole(training.model, 0, training.model.layers, training.seed);
    std::copy(parameters.begin(), parameters.end(), whole.parameters());
    std::cout << "sample:\n"
              << whole.generate("#include", static_cast<std::size_t>(s.sample), 0.7, training.seed)
              << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    const Settings settings = parse(argc, argv);
    if (settings.help) {
      if (rank == 0) std::cout << settings.text;
    } else if (settings.precision == "double") {
      train<double>(settings, MPI_COMM_WORLD);
    } else if (settings.precision == "float") {
      train<float>(settings, MPI_COMM_WORLD);
    } else {
      throw hd::contract_error({"command line", hd::text("no precision '", settings.precision, "'"),
                                {}, "use float or double"});
    }
  } catch (const std::exception& error) {
    // What is wrong on all ranks is said once.
    const bool shared = dynamic_cast<const hd::contract_error*>(&error) != nullptr ||
                        dynamic_cast<const hd::infeasible*>(&error) != nullptr ||
                        dynamic_cast<const hd::format_error*>(&error) != nullptr;
    if (rank == 0 || !shared) std::cerr << "train_gpt: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
