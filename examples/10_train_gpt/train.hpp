// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The run of train_gpt. Compiled for float and double apart, which takes half as long each.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/comm/space_mover.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/heddle.hpp>

#include "gpt_checkpoint.hpp"
#include "gpt_flex.hpp"
#include "gpt_generate.hpp"
#include "gpt_slices.hpp"
#include "gpt_training.hpp"
#include "gpt_weights.hpp"
#include "host_copy.hpp"
#include "memory.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "restart.hpp"
#include "results.hpp"
#include "sample.hpp"
#include "settings.hpp"
#include "space.hpp"
#include "text.hpp"

namespace examples {

/// Throws error unless `difference`, found in `where`, is at most `tolerance`.
inline void expect_within(const char* what, double difference, double tolerance,
                          const std::string& where) {
  if (difference <= tolerance) return;
  throw heddle::contract_error(
      {"check", what, heddle::text(where, " ", difference, " > ", tolerance)});
}

template <class Real>
void print_sample(const GptTraining& training, int tokens, const std::vector<Real>& parameters) {
  const GptWeights<Real> weights = untied(GptWeights<Real>{training.model, parameters});
  GptGenerator<Real> generator(
      weights.config, {.sampling = {.temperature = 0.7, .seed = training.seed}}, weights.values);
  const std::string_view beginning = "#include";
  const auto seen = std::min(beginning.size(), static_cast<std::size_t>(training.model.context));
  generator.submit({.prompt = std::string(beginning.substr(0, seen)), .tokens = tokens});
  generator.run();
  std::cout << "sample:\n" << generator.text(0).substr(seen) << '\n';
}

/// Trains as `s` says on the ranks of `comm`, and prints what came of it on rank 0.
/// Throws error where the check fails, and format_error at the end if the last save failed.
template <class Real>
void train(const Settings& s, MPI_Comm comm) {
  const GptTraining& training = s.training;
  heddle::DeviceMesh mesh(comm, {{"pipe", s.pipe},
                                 {"data", s.data},
                                 {"ring", s.ring_axis()},
                                 {"heads", s.heads_axis},
                                 {"tensor", s.tensor}});
  const bool speaks = mesh.rank() == 0;
  const auto text = Text::load(s.text, static_cast<std::size_t>(training.model.context));
  const heddle::Schedule schedule = make_schedule(s);
  heddle::expects(s.steps >= 1, [&] {
    return heddle::ErrorInfo{"command line", "--steps must be at least 1", heddle::text(s.steps)};
  });
  if (speaks) {
    std::cout << "text: " << text.description() << '\n';
    print(schedule);
    std::cout << "mesh: " << mesh.shape() << '\n';
    if (s.report) std::cout << "matrix products: " << heddle::kernel::blas_library<Space>() << '\n';
  }

  const typename GptStage<Real>::Line line(mesh["tensor"]);
  using Sequence = typename GptStage<Real>::Sequence;
  const auto options = make_sequence(s);
  const Sequence sequence = s.plans ? Sequence() : Sequence(mesh["heads"], mesh["ring"], options);
  std::optional<FlexBatches<Real>> flexible;
  if (s.plans)
    flexible.emplace(training, *s.plans, mesh.coordinate("data"), mesh["ring"], line, options);
  std::optional<SlicedBatches<Real>> sliced;
  if (s.slices > 0) {
    sliced.emplace(training, s.slices, line);
    if (speaks) std::cout << "slices: " << s.slices << " of each sequence\n";
  }
  if (speaks && s.sequence > 1 && !flexible)
    std::cout << "sequence: " << s.sequence << " ranks, " << sequence.method() << ", "
              << sequence.order() << " order\n";
  std::shared_ptr<typename GptStage<Real>::Room> room;
  if (!s.shard.empty()) {
    room = std::make_shared<typename GptStage<Real>::Room>();
    room->sharding = heddle::ParameterSharding::find(s.shard);
    room->group = std::make_shared<heddle::ShardGroup>(mesh[replica_axes], s.node, s.pair);
    if (speaks)
      std::cout << "sharding: " << s.shard << ", nodes of " << s.node << ", pairs of " << s.pair
                << '\n';
  }
  Memory memory(s.memory);
  Gpt<Real> model =
      make_gpt<Real>(training,
                     {.gradient_sum = make_gradient_sum(s),
                      .shard_axes = room ? shard_axes(mesh.shape()) : std::vector<std::string>(),
                      .allocate = memory.allocator()},
                     line, room, sequence,
                     flexible ? flexible->shapes()
                     : sliced ? sliced->shapes()
                              : std::vector<GptBlockShape>());
  heddle::SpaceMover<typename Space::execution_space> mover;
  heddle::ExecuteOptions execute{.record = true, .watchdog = s.watchdog};
  if (const int percent = offload_percent(s); percent > 0) {
    execute.mover = mover;
    if (speaks) std::cout << "offload: " << percent << "% of the kept activations\n";
  }
  heddle::Runner run(model, schedule, mesh, {.execute = execute});
  const int replica = mesh.coordinate("data");
  const double tokens =
      s.plans ? s.plans->mean_tokens()
              : static_cast<double>(training.batch()) * training.model.context * training.replicas;
  const auto [begin, steps] = steps_of<Real>(s, model, mesh, training, text);
  if (steps < 1) return;
  SaveFiles files(s);
  std::ofstream log;
  if (speaks && !s.log.empty()) log.open(s.log, std::ios::app);
  log.precision(17);
  std::vector<double> losses;
  std::vector<Real> gradients;  // of the first step
  // Every other step is profiled; what that predicts is compared with the steps between.
  const bool predicts = s.report || !s.trace.empty();
  std::vector<heddle::Timeline> measured;
  {
    Progress progress(speaks, steps, tokens);
    for (int step = 0; step < steps; ++step) {
      kill_in_tests("step", static_cast<int>(+mesh.rank()), begin + step);
      // The first step warms up caches and libraries; it is not what a step costs.
      if (step == 1 && steps > 1) run.reset_costs();
      run.profile(step < 2 || step % 2 == 1);
      const heddle::StepResult result = flexible ? run.step(flexible->batch(text, begin + step))
                                        : sliced
                                            ? run.step(sliced->batch(text, begin + step, replica))
                                            : run.step(batch(training, text, begin + step, replica),
                                                       weight(training), training.sizes);
      losses.push_back(result.loss);
      progress(step, losses.back());
      if (log.is_open()) log << begin + step << ' ' << losses.back() << std::endl;
      if (step + 1 < steps && files.is_due(begin + step + 1)) {
        kill_in_tests("save", static_cast<int>(+mesh.rank()), begin + step);
        files.save(model, mesh, training, text, begin + step + 1);
      }
      if (step == 0 && s.check)
        gradients = gather<Real>(model, mesh, [](auto& stage) { return stage.gradients(); });
      if (predicts && step > 0 && step % 2 == 0) measured.push_back(run.timeline());
    }
  }
  files.save_end(model, mesh, training, text, begin + steps);
  const auto last = [&](int count) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += losses[losses.size() - 1 - static_cast<std::size_t>(i)];
    return sum / count;
  };
  const int end = std::min(steps, 5);
  if (speaks)
    std::cout << "loss: first " << losses.front() << ", last " << last(end) << " (mean of " << end
              << " steps)\n";

  if (speaks) write_results("train_gpt", losses, std::is_same_v<Real, double> ? 1e-10 : 1e-4);

  heddle::Timeline predicted;
  std::vector<heddle::Bytes> allocated;  // by every rank
  if (predicts) {
    const heddle::Bytes mine = run.allocated();
    for (const auto& each : heddle::all_gather<heddle::Bytes>(mesh.transport(), {&mine, 1}))
      allocated.push_back(each[0]);
    if (measured.empty()) measured.push_back(run.timeline());
    predicted = heddle::simulate(run.schedule(), run.costs(), heddle::measure_machine(mesh));
  }

  const auto parameters = gather<Real>(model, mesh, [](auto& stage) { return stage.parameters(); });
  if (!speaks) return files.expect_saved();
  if (s.check) {
    SerialGpt<Real> serial(training);
    double worst_loss = 0;
    double worst_gradient = 0;
    std::string where;
    for (int step = 0; step < begin + steps; ++step) {
      const double reference = serial.step(text, step);
      if (step < begin) continue;
      const double loss = losses[static_cast<std::size_t>(step - begin)];
      worst_loss = std::max(worst_loss, finite_or_infinity(std::abs(loss - reference) / reference));
      if (step > begin) continue;
      const GradientDifference<Real> difference(gradients, serial.gradients(),
                                                serial.stage().tensors());
      worst_gradient = difference.worst;
      where = difference.where;
    }
    std::cout << "check: against one rank, losses differ by at most " << worst_loss
              << ", gradients of step " << begin + 1 << " by " << worst_gradient << " (relative)\n";
    const bool exact = std::is_same_v<Real, double>;
    // Weights and gradients that travel encoded are others by as much as rounding has changed them.
    const bool encoded = room && (room->sharding.weight_codec || room->sharding.gradient_codec);
    const double exactly = exact ? 1e-10 : 1e-4;
    expect_within("the losses differ from the serial model's", worst_loss, encoded ? 0.02 : exactly,
                  "");
    if (!encoded)
      expect_within("the gradients differ from the serial model's", worst_gradient,
                    exact ? 1e-11 : 1e-4, where);
  }
  if (s.sample > 0) print_sample<Real>(training, s.sample, parameters);
  if (predicts) report(s, predicted, std::move(measured), std::move(allocated));
  files.expect_saved();
}

extern template void train<float>(const Settings&, MPI_Comm);
extern template void train<double>(const Settings&, MPI_Comm);

}  // namespace examples
