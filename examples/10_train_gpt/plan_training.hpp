// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The run of train_gpt by a plan: --plan FILE, or --plan auto.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/comm/measure_links.hpp>
#include <heddle/comm/planned_mesh.hpp>
#include <heddle/heddle.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/planners.hpp>
#include <heddle/trace.hpp>

#include "gpt_checkpoint.hpp"
#include "gpt_training.hpp"
#include "memory.hpp"
#include "plan_files.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "restart.hpp"
#include "sample.hpp"
#include "settings.hpp"
#include "text.hpp"

namespace examples {

/// Throws contract_error if the settings have options that no plan can take, or that a search for
/// one decides.
void expect_planned(const Settings& s);

/// Throws contract_error if an option was given that the plan of a file decides, and has another
/// value there: microbatches, batch, sequences, schedule and the numbers of ranks.
void expect_agreement(const Settings& s, const heddle::Plan& plan);

/// Returns the tensor degrees that a search may choose from on `ranks` ranks: --tensor if it was
/// given and is not 0, otherwise all that divide the ranks, the heads and the context. With --tied
/// and without --tensor it is 1 only, because both stages of the embedding have one degree.
/// @throws contract_error if --tensor is none of these.
[[nodiscard]] std::vector<int> tensor_degrees(const Settings& s, int ranks);

/// Returns the sequence degrees that a search may choose from on `ranks` ranks: --sequence if it
/// was given, otherwise all that divide the ranks and have a token for each of them. With Ulysses,
/// each rank of a degree must have K,V heads whatever the tensor degree.
[[nodiscard]] std::vector<int> sequence_degrees(const Settings& s, int ranks);

/// Gives the plan the sharding of --shard, with --node and --pair. A plan that had none loses its
/// prediction.
/// @throws contract_error if the plan has another one, if its nodes and pairs do not divide the
///         ranks, or if it encodes messages of layers that ranks divide.
void divide_parameters(heddle::Plan& plan, const Settings& s);

/// Throws contract_error if `difference`, found in `where`, is more than `tolerance`.
void expect_close(const char* what, double difference, double tolerance, const std::string& where);

/// The layers of the model as planners see them. Each is measured with one sequence and with those
/// of a microbatch if `times`; otherwise the profile has bytes only. The ranks of `line` divide
/// each layer; all ranks are of one kind then. Collective over the mesh.
template <class Real>
[[nodiscard]] heddle::LayerProfile profile_gpt(const GptTraining& training, const Text& text,
                                               heddle::DeviceMesh& mesh, bool times,
                                               const typename GptStage<Real>::Line& line = {}) {
  const auto config_for = [&](std::int64_t sequences) {
    GptConfig config = training.model;
    config.sequences = static_cast<int>(sequences);
    return config;
  };
  const Gpt<Real> model(training.model.layers, [&](const heddle::StagePlace& place) {
    return GptStage<Real>(config_for(place.samples.size()), place.layers.first, place.layers.last,
                          training.seed, training.optimizer, {}, line);
  });
  std::vector<std::int64_t> samples{1};
  if (times && training.model.sequences > 1) samples.push_back(training.model.sequences);
  heddle::LayerProfile profile = heddle::profile_layers(
      model, mesh,
      {.samples = samples,
       .repeats = times ? 5 : 0,
       .tolerance = line.size() > 1 ? std::numeric_limits<double>::infinity() : 0.2,
       .tensor = static_cast<int>(line.size()),
       .model = "gpt"},
      [&](GptStage<Real>& stage, std::int64_t sequences) {
        const GptTraining one{.model = config_for(sequences), .microbatches = 1};
        stage.begin_step(batch(one, text, 0, 0), 1);
      });
  complete_layers<Real>(profile.layers, training.model);
  return profile;
}

/// Adds to a profile the times of layers that `degree` ranks divide, on all kinds of ranks.
/// Collective over `comm`.
template <class Real>
void add_degree(heddle::LayerProfile& profile, const GptTraining& training, const Text& text,
                MPI_Comm comm, int degree) {
  const int ranks = heddle::Communicator(comm).size();
  heddle::expects(ranks % degree == 0, [&] {
    return heddle::ErrorInfo{
        "train_gpt", "the tensor degree of the plan cannot be measured here",
        heddle::text("tensor degree ", degree, ", ", ranks, " ranks"),
        "leave out --report, or use a number of ranks that the degree divides"};
  });
  heddle::DeviceMesh mesh(comm, {{"all", ranks / degree}, {"tensor", degree}});
  const heddle::LayerProfile divided =
      profile_gpt<Real>(training, text, mesh, true, typename GptStage<Real>::Line(mesh["tensor"]));
  std::vector<std::string> kinds = profile.device_of_rank;
  std::ranges::sort(kinds);
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  for (std::size_t l = 0; l < profile.layers.size(); ++l)
    for (const std::string& kind : kinds)
      for (heddle::plan::LayerMeasurement each : divided.layers[l].measured) {
        each.device = kind;
        profile.layers[l].measured.push_back(std::move(each));
      }
}

/// Trains as the plan of `s` says on the ranks of `comm`, and prints what came of it on rank 0.
/// Throws contract_error where the check fails.
template <class Real>
void train_by_plan(const Settings& s, MPI_Comm comm) {
  expect_planned(s);
  GptTraining training = s.training;
  heddle::DeviceMesh mesh(comm, {{"all", heddle::Communicator(comm).size()}});
  const bool speaks = mesh.rank() == 0, automatic = s.plan == "auto";
  const bool predicts = s.report || !s.trace.empty();
  heddle::Plan plan;
  if (!automatic) {
    plan = read_plan(s.plan);
    expect_agreement(s, plan);
  }
  const auto text = Text::load(s.text, static_cast<std::size_t>(training.model.context));
  heddle::LayerProfile profile = profile_gpt<Real>(training, text, mesh, automatic || predicts);
  const heddle::Machine machine =
      automatic || predicts ? heddle::measure_links(mesh, {.budget = 0.02,
                                                           .largest = heddle::Bytes{1} << 20,
                                                           .names = profile.device_of_rank})
                            : heddle::Machine::uniform(mesh.size(), {}, {});
  std::set<int> profiled{1};  // tensor degrees
  const auto profile_degree = [&](int degree) {
    if (profiled.insert(degree).second) add_degree<Real>(profile, training, text, comm, degree);
  };
  if (automatic) {
    const std::vector<int> degrees = tensor_degrees(s, mesh.size());
    std::ranges::for_each(degrees, profile_degree);
    // Other planners leave sequences whole.
    std::vector<heddle::plan::NamedPlanner> planners = heddle::systems::planners();
    if (s.has("sequence") && s.sequence > 1)
      planners = heddle::plan::select_planners(planners, {"Frontier 3D"});
    const heddle::plan::PlanSearch found =
        heddle::plan::search(profile, machine,
                             {.batch = training.batch(),
                              .microbatches = {training.microbatches},
                              .tensor_degrees = degrees,
                              .sequence_degrees = sequence_degrees(s, mesh.size()),
                              .attention = make_sequence(s).method,
                              .activation = heddle::scalar_of<Real>,
                              .executable = true},
                             planners);
    if (speaks) {
      std::cout << profile << "\nspread of a pass: " << profile.spread * 100 << " %; ranks:";
      for (const std::string& kind : profile.device_of_rank) std::cout << ' ' << kind;
      std::cout << '\n' << found << '\n';
    }
    plan = found.best();
  }
  divide_parameters(plan, s);
  const heddle::plan::PlanOptions planned{.batch = plan.batch(),
                                          .microbatches = {plan.microbatches},
                                          .activation = heddle::scalar_of<Real>};
  heddle::PlannedMesh places(comm, plan, {.ranks = mesh.size()});
  for (const heddle::PlanStage& stage : plan.stages)
    if (predicts) profile_degree(stage.tensor);
  if (automatic) plan.prediction = heddle::plan::predict(plan, {profile, machine, planned});
  if (speaks) std::cout << "plan: " << plan << '\n';
  if (speaks && !s.save_plan.empty()) {
    write_plan(s.save_plan, plan);
    std::cout << "saved plan: " << s.save_plan << '\n';
  }
  training.microbatches = plan.microbatches;
  training.model.sequences = static_cast<int>(plan.microbatch_samples());
  training.sizes.clear();

  const heddle::Communicator alone = places.all().split(static_cast<int>(+places.rank()), 0);
  const bool divided = places.sequence().size() > 1;
  const bool by_heads = plan.attention == heddle::SequenceMethod::ulysses;
  using Sequence = typename GptStage<Real>::Sequence;
  heddle::SequenceOptions how = make_sequence(s);
  how.method = plan.attention;
  const Sequence sequence = divided ? Sequence(by_heads ? places.sequence() : alone,
                                               by_heads ? alone : places.sequence(), how)
                                    : Sequence();
  Memory memory(s.memory);
  Gpt<Real> model = make_planned_gpt<Real>(
      training,
      {.gradient_sum = plan.sharding.empty() ? make_gradient_sum(s) : heddle::GradientSum::stages,
       .allocate = memory.allocator()},
      sequence);
  heddle::Runner run(model,
                     heddle::plan::schedule(
                         plan, profile, {.ranks = mesh.size(), .type = heddle::scalar_of<Real>}),
                     places, {.execute = {.record = true, .watchdog = s.watchdog}});
  // The part of the loss that a microbatch of this rank's group has.
  const double weight = static_cast<double>(places.samples().size()) / training.batch();
  const bool first = places.group() == 0 && places.sequence().rank() == heddle::Rank{0};
  const auto gradients_of = [](auto& stage) { return stage.gradients(); };
  const auto [begin, steps] = steps_of<Real>(s, model, places, training, text);
  if (steps < 1) return;
  SaveFiles files(s);
  std::ofstream log;
  if (speaks && !s.log.empty()) log.open(s.log, std::ios::app);
  log.precision(17);
  std::vector<double> losses;
  std::vector<Real> gradients;  // of the first step
  std::vector<heddle::Timeline> measured;
  {
    Progress progress(speaks, steps,
                      static_cast<double>(training.batch()) * training.model.context);
    for (int step = 0; step < steps; ++step) {
      kill_in_tests("step", static_cast<int>(+places.rank()), begin + step);
      losses.push_back(
          run.step(batch_of(training, text, begin + step, places.samples()), weight).loss);
      progress(step, losses.back());
      if (log.is_open()) log << begin + step << ' ' << losses.back() << std::endl;
      if (step + 1 < steps && files.is_due(begin + step + 1)) {
        kill_in_tests("save", static_cast<int>(+places.rank()), begin + step);
        files.save(model, places, training, text, begin + step + 1);
      }
      if (step == 0 && s.check)
        gradients = gather<Real>(model, training.model, places.transport(), first, gradients_of);
      if (predicts && (step > 0 || steps == 1)) measured.push_back(run.timeline());
    }
  }
  files.save_end(model, places, training, text, begin + steps);
  std::vector<heddle::Bytes> allocated, needed;  // by rank: buffers, and all with the stages' state
  if (predicts) {
    heddle::Bytes mine[] = {run.allocated(), run.allocated()};
    model.for_each([&](heddle::Stage, auto& stage) { mine[1] += stage.shards().kept(); });
    for (const auto& each : heddle::all_gather<heddle::Bytes>(places.transport(), mine)) {
      allocated.push_back(each[0]);
      needed.push_back(each[1]);
    }
  }
  std::vector<Real> parameters;  // of the whole model
  if (s.sample > 0)
    parameters = gather<Real>(model, training.model, places.transport(), first,
                              [](auto& stage) { return stage.parameters(); });
  if (!speaks) return files.expect_saved();
  std::cout << "loss: first " << losses.front() << ", last " << losses.back() << '\n';
  if (s.check) {
    SerialGpt<Real> serial(training);
    double worst = 0;
    // Weights and gradients that are sent encoded differ by as much as rounding has changed them.
    const bool encoded = !plan.sharding.empty() &&
                         heddle::ParameterSharding::find(plan.sharding).weight_codec.has_value();
    const double exactly = std::is_same_v<Real, double> ? 1e-10 : 1e-4;
    for (int step = 0; step < begin + steps; ++step) {
      const double reference = serial.step(text, step);
      if (step < begin) continue;
      const double loss = losses[static_cast<std::size_t>(step - begin)];
      worst = std::max(worst, finite_or_infinity(std::abs(loss - reference) / reference));
      if (step > begin) continue;
      const GradientDifference<Real> difference(gradients, serial.gradients(),
                                                serial.stage().tensors());
      std::cout << "check: against one rank, gradients of step " << begin + 1
                << " differ by at most " << difference.worst << " (relative)\n";
      if (encoded) continue;
      expect_close("the gradients differ from the serial model's", difference.worst,
                   std::is_same_v<Real, double> ? 1e-11 : 1e-4, difference.where);
    }
    std::cout << "check: against one rank, losses differ by at most " << worst << " (relative)\n";
    expect_close("the losses differ from the serial model's", worst, encoded ? 0.02 : exactly, "");
  }
  if (s.sample > 0) print_sample<Real>(training, s.sample, parameters);
  if (!predicts) return files.expect_saved();
  const heddle::Timeline predicted = heddle::simulate(
      run.schedule(), heddle::plan::costs(plan, profile, machine, heddle::scalar_of<Real>));
  const auto median = measured.begin() + static_cast<std::ptrdiff_t>(measured.size() / 2);
  std::nth_element(measured.begin(), median, measured.end(),
                   [](const auto& a, const auto& b) { return a.makespan() < b.makespan(); });
  const std::vector<heddle::Bytes> bytes =
      heddle::plan::plan_memory(plan, {profile, machine, planned});
  if (s.report) {
    std::cout << "plan error:\n" << heddle::trace::plan_error(predicted, *median, bytes, needed);
    if (plan.prediction)
      std::cout << (automatic ? "by the search:\n" : "by the plan's file:\n")
                << heddle::trace::plan_error(*plan.prediction, *median, needed);
  }
  Settings shown = s;
  shown.schedule.clear();  // theory knows equal stages only
  report(shown, predicted, std::move(measured), std::move(allocated));
  files.expect_saved();
}

extern template void train_by_plan<float>(const Settings&, MPI_Comm);
extern template void train_by_plan<double>(const Settings&, MPI_Comm);

}  // namespace examples
