// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// A pipeline on four ranks, one of which turns half as fast for a while. It gets fewer layers, and
// its layers back when it recovers. Needs neither MPI nor Kokkos; the stages only wait.

#include <chrono>
#include <cstddef>
#include <iostream>
#include <thread>
#include <vector>

#include <heddle/execute/adaptive_runner.hpp>
#include <heddle/heddle_core.hpp>
#include <heddle/plan.hpp>
#include <heddle/systems/planners.hpp>

namespace hd = heddle;

namespace {

/// 12 equal layers. Each takes 1 ms forward and 2 ms backward for a microbatch of one sample.
hd::plan::Profile profile_by_hand() {
  hd::plan::Profile profile{.model = "waits", .input = 40, .reference = "gpu"};
  const hd::plan::LayerTimes times{
      .forward = 1e-3, .backward_input = 1e-3, .backward_weight = 1e-3};
  profile.layers.assign(12, {.name = "layer",
                             .output = 40,
                             .saved = 40,
                             .parameters = 40'000,
                             .measured = {{"gpu", 1, 1, times}}});
  return profile;
}

/// Waits as long as the layers of its stage take.
struct Waits {
  double slowness = 1;
  std::vector<hd::PlanStage> stages = {};

  void begin_plan(const hd::Plan& plan) { stages = plan.stages; }
  void operator()(const hd::Task& task) {
    if (task.kind() == hd::Kind::update) return;
    const double layer = task.kind() == hd::Kind::forward ? 1e-3 : 2e-3;
    std::this_thread::sleep_for(
        std::chrono::duration<hd::Seconds>(layer * slowness * stages[+task.stage()].layers.size()));
  }
};

}  // namespace

int main() {
  const hd::plan::Profile profile = profile_by_hand();
  const hd::Machine machine = hd::Machine::uniform(4, {.name = "gpu"}, {.bandwidth = 1e6});
  constexpr int steps = 50;
  hd::run_threads(4, [&](hd::ThreadTransport& transport) {
    Waits model;
    hd::plan::PlanChoiceOptions options{.search = {.batch = 8, .microbatches = {8}},
                                        .planners = hd::systems::planners()};
    options.monitor = {.least = 1.5, .steps = 5};  // waits vary more than computations
    const hd::plan::PlanChoice choice(profile, machine, options);
    hd::AdaptiveRunner run(
        model, choice, transport,
        {.run = {.execute = {.idle = hd::Idle::nap}}, .every = 1, .steps = steps});
    const bool prints = transport.rank() == 0;
    if (prints) std::cout << "at first: " << run.plan() << '\n';
    for (int step = 0; step < steps; ++step) {
      const bool slow = transport.rank() == 2 && step >= 8 && step < 18;
      model.slowness = slow ? 2 : 1;
      if (run.look() && prints) {
        if (const auto fault = run.fault()) std::cout << *fault << '\n';
        std::cout << run.choice() << '\n' << run.plan() << '\n';
      }
      run.step();
    }
    if (prints) std::cout << "the plan has changed " << run.choice().changes() << " times\n";
  });
}
