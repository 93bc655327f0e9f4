// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// ranks: 2 8

/// @file
/// Predicted against measured steps. On 2 ranks the example's GPT; on 8 ranks every schedule of the
/// catalogue with stages that only wait, so that more ranks than cores are no hindrance. Costs are
/// profiled in the same run from earlier steps, links measured, and the simulated step is compared
/// with later ones.
///
/// There is nothing to iterate over that Google Benchmark could time: steps belong to all ranks.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <mpi.h>

#include <heddle/heddle.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/trace.hpp>

#include "../ranks.hpp"
#include "../support.hpp"
#include "gpt_training.hpp"
#include "text.hpp"

namespace hd = heddle;

namespace {

/// Steps that are compared: many of the GPT's short ones, fewer of the long ones of stages that
/// wait, which hardly differ.
constexpr int gpt_steps = 41;
constexpr int waits_steps = 15;

/// Where a rank's time goes but to work, as the bubble report tells it.
constexpr std::pair<const char*, hd::Seconds hd::trace::TimeUse::RankTime::*> states[] = {
    {"warm-up", &hd::trace::TimeUse::RankTime::warm_up},
    {"receive", &hd::trace::TimeUse::RankTime::receive},
    {"send", &hd::trace::TimeUse::RankTime::send},
    {"other", &hd::trace::TimeUse::RankTime::other},
    {"drain", &hd::trace::TimeUse::RankTime::drain},
    {"tail", &hd::trace::TimeUse::RankTime::tail}};

/// A warm-up, and as many profiled steps as compared ones.
constexpr int all_steps(int compared) { return 1 + 2 * compared; }

/// What is compared: the timeline that simulate() promised with the recorded ones, and with the
/// wall time of the steps, in which the executor's own work and the sum of the losses lie too.
struct Outcome {
  double predicted = 0;                            ///< seconds
  hd::trace::TimeUse::RankTime use;                ///< of all its ranks
  std::vector<double> recorded;                    ///< makespans
  std::vector<hd::trace::TimeUse::RankTime> uses;  ///< of all their ranks
  std::vector<double> wall;                        ///< between barriers, of the slowest rank

  /// `percent(use)` of each measured step.
  template <class Percent>
  [[nodiscard]] std::vector<double> measured(Percent&& percent) const {
    std::vector<double> values;
    for (const auto& each : uses) values.push_back(percent(each));
    return values;
  }
};

/// The idle share, in percent.
[[nodiscard]] double bubble(const hd::trace::TimeUse::RankTime& use) {
  return 100 * use.bubble_ratio();
}

/// Runs all_steps(compared) steps: `step(run, number)`. The first is not counted at all: it warms
/// up caches and connections. The others take turns in being profiled and in being compared with
/// what the profile predicts, so that a machine whose speed changes changes it for both.
template <class Run, class OneStep>
[[nodiscard]] Outcome compare(Run& run, hd::DeviceMesh& mesh, int compared, OneStep&& step) {
  const MPI_Comm comm = mesh.all().get();
  Outcome outcome;
  const hd::Machine machine = hd::measure_machine(mesh);
  for (int number = 0; number < all_steps(compared); ++number) {
    const bool profiles = number % 2 == 1;
    run.profile(profiles);
    const double seconds = bench::seconds_of_all(comm, [&] { step(run, number); });
    if (number == 0 || profiles) continue;
    outcome.wall.push_back(seconds);
    const hd::Timeline timeline = run.timeline();
    outcome.recorded.push_back(timeline.makespan());
    outcome.uses.push_back(hd::trace::time_use(timeline).sum());
  }
  const hd::Timeline predicted = hd::simulate(run.schedule(), run.costs(), machine);
  outcome.predicted = predicted.makespan();
  outcome.use = hd::trace::time_use(predicted).sum();
  return outcome;
}

/// The distance of a sample from what was predicted, `off(value)` of each value: of the median,
/// with the spread of the single steps. Always positive: too long is as wrong as too short.
template <class Off>
[[nodiscard]] bench::Summary distance(const std::vector<double>& measured, Off&& off) {
  const bench::Summary values = bench::summarise(measured);
  const auto range = [&](double a, double b) {
    const double x = off(a), y = off(b);
    const double near = x * y <= 0 ? 0 : std::min(std::abs(x), std::abs(y));
    return std::pair(near, std::max(std::abs(x), std::abs(y)));
  };
  const auto [low, high] = range(values.low, values.high);
  const auto [from, to] = range(values.from, values.to);
  return {std::abs(off(values.median)), low, high, from, to, values.count};
}

/// How far the prediction is off, in percent of the measured.
[[nodiscard]] bench::Summary error(double predicted, const std::vector<double>& measured) {
  return distance(measured, [&](double time) { return (predicted / time - 1) * 100; });
}

/// The same for a share of the ranks' time, `percent(use)`, in points.
template <class Percent>
[[nodiscard]] bench::Summary share_error(const Outcome& outcome, Percent&& percent) {
  return distance(outcome.measured(percent),
                  [&](double share) { return percent(outcome.use) - share; });
}

/// Keeps the one whose median is worse.
bool keep_worse(bench::Summary& kept, const bench::Summary& next) {
  const bool worse = kept.count == 0 || !(next.median <= kept.median);
  if (worse) kept = next;
  return worse;
}

/// Of the states that a rank waits in, the one whose share is predicted worst.
[[nodiscard]] std::pair<const char*, bench::Summary> state_error(const Outcome& outcome) {
  std::pair<const char*, bench::Summary> worst{};
  for (const auto& [name, state] : states) {
    const auto percent = [part = state](const hd::trace::TimeUse::RankTime& use) {
      return 100 * use.*part / use.whole();
    };
    if (keep_worse(worst.second, share_error(outcome, percent))) worst.first = name;
  }
  return worst;
}

void report(const char* name, const std::string& schedule, const Outcome& outcome, int rank) {
  if (rank != 0) return;
  std::cout << schedule << ": predicted " << outcome.predicted * 1e3 << " ms, measured "
            << bench::summarise(outcome.recorded).median * 1e3 << " ms, with all around it "
            << bench::summarise(outcome.wall).median * 1e3 << " ms, medians of "
            << outcome.recorded.size() << " steps; bubble: predicted " << bubble(outcome.use)
            << " %, measured " << bench::summarise(outcome.measured(bubble)).median
            << " %; worst in '" << state_error(outcome).first << "'\n";
  bench::print_value(name, "error_" + schedule, error(outcome.predicted, outcome.recorded), "%");
  bench::print_value(name, "wall_error_" + schedule, error(outcome.predicted, outcome.wall), "%");
  bench::print_value(name, "bubble_error_" + schedule, share_error(outcome, bubble), "points");
  bench::print_value(name, "state_error_" + schedule, state_error(outcome).second, "points");
}

void gpt(hd::DeviceMesh& mesh) {
  examples::GptTraining training;
  training.model = {.layers = 4, .width = 128, .heads = 4, .context = 64, .sequences = 4};
  training.microbatches = 8;
  training.optimizer.learning_rate = 3e-3;
  const auto text = examples::Text::load({}, static_cast<std::size_t>(training.model.context));
  std::vector<std::vector<std::uint8_t>> batches;
  for (int step = 0; step < all_steps(gpt_steps); ++step)
    batches.push_back(examples::batch(training, text, step, 0));
  for (const char* name : {"gpipe", "1f1b", "interleaved"}) {
    const hd::Schedule schedule = hd::weave(hd::schedule::find_schedule(name).orders(
        {.ranks = mesh.size(), .microbatches = training.microbatches}));
    examples::Gpt<float> model = examples::make_gpt<float>(training);
    hd::Runner run(model, schedule, mesh, {.execute = {.record = true}});
    const Outcome outcome = compare(run, mesh, gpt_steps, [&](auto& runner, int number) {
      runner.step(batches[static_cast<std::size_t>(number)], examples::weight(training));
    });
    report("pipeline/predicted_gpt", name, outcome, static_cast<int>(mesh.rank().value));
  }
}

/// A stage that waits, for a time and not until one: what comes on top of it is not hidden.
struct WaitingModel {
  void operator()(const hd::Task& task) const {
    using std::chrono::milliseconds;
    const hd::Kind kind = task.kind();
    if (kind == hd::Kind::combine) hd::combine_on_host(task);
    if (kind > hd::Kind::backward) return;
    std::this_thread::sleep_for(milliseconds(kind == hd::Kind::backward ? 10 : 5));
  }
};

void waits(hd::DeviceMesh& mesh) {
  // What is saved for the backward pass has no size: the stages touch nothing.
  const hd::StageSizes sizes{.activation = 1 << 16, .parameters = 1 << 16, .type = hd::Scalar::f64};
  const auto rank = static_cast<int>(mesh.rank().value);
  bench::Summary worst, worst_bubble, worst_state;
  for (const auto& entry : hd::schedule::catalogue()) {
    // Two microbatches a rank in each direction: the fewest that all of them take.
    const hd::Orders orders = entry.orders({.ranks = mesh.size(), .microbatches = 2 * mesh.size()});
    const hd::Schedule schedule =
        hd::schedule::expand(hd::weave(orders, sizes), hd::schedule::CollectiveForm{});
    hd::Runner run(WaitingModel{}, schedule, mesh,
                   {.execute = {.idle = hd::Idle::nap, .record = true}});
    const Outcome outcome =
        compare(run, mesh, waits_steps, [](auto& runner, int) { runner.step(); });
    report("pipeline/predicted_waits", std::string(entry.name), outcome, rank);
    keep_worse(worst, error(outcome.predicted, outcome.recorded));
    keep_worse(worst_bubble, share_error(outcome, bubble));
    keep_worse(worst_state, state_error(outcome).second);
  }
  if (rank != 0) return;
  bench::print_value("pipeline/predicted_waits", "worst_error", worst, "%");
  bench::print_value("pipeline/predicted_waits", "worst_bubble_error", worst_bubble, "points");
  bench::print_value("pipeline/predicted_waits", "worst_state_error", worst_state, "points");
}

}  // namespace

int main(int argc, char** argv) {
  hd::Environment env(argc, argv);
  try {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    hd::DeviceMesh mesh(MPI_COMM_WORLD, {{"pipe", ranks}});
    hd::expects(ranks == 2 || ranks == 8, [&] {
      return hd::ErrorInfo{"pipeline/predicted", "it runs on 2 ranks or on 8",
                           hd::text(ranks, " ranks")};
    });
    ranks == 2 ? gpt(mesh) : waits(mesh);
  } catch (const std::exception& error) {
    std::cerr << "pipeline/predicted: " << error.what() << '\n';
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}
