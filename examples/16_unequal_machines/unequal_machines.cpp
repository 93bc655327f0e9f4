// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Divides a model over two fast ranks and two slow ones: a profile, a machine, the plans of four
// planners. Then runs the best plan and equal stages, and compares predicted and measured times.
// Needs neither MPI nor Kokkos; the stages only wait, and the links are emulated.

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

#include <heddle/execute/combine.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/heddle_core.hpp>
#include <heddle/plan.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/systems/planners.hpp>

namespace hd = heddle;

namespace {

constexpr int layers = 24;
constexpr int microbatches = 16;

/// Equal layers. Each takes 1 ms forward and 2 ms backward for a microbatch of 4 samples.
hd::plan::Profile profile_by_hand() {
  hd::plan::Profile profile{.model = "waits", .input = 40, .reference = "fast"};
  const hd::plan::LayerTimes times{
      .forward = 1e-3, .backward_input = 1e-3, .backward_weight = 1e-3};
  profile.layers.assign(layers, {.name = "layer",
                                 .output = 40,
                                 .saved = 40,
                                 .parameters = 40'000,
                                 .measured = {{"fast", 1, 4, times}}});
  return profile;
}

/// Returns the median time of three steps, in seconds.
hd::Seconds measured(const hd::Schedule& schedule, const hd::plan::RankCosts& costs) {
  std::vector<hd::Seconds> steps(3);
  hd::run_threads(schedule.ranks(), [&](hd::ThreadTransport& threads) {
    hd::ShapedTransport network(threads, hd::Shape::of(costs.machine()));
    hd::Seconds end = 0;  // of the last wait; the next one makes up for a late awakening
    const auto wait = [&](const hd::Task& task) {
      if (task.kind() == hd::Kind::combine) return hd::combine_on_host(task);
      const hd::Seconds now = hd::steady_seconds();
      end = std::max(end, now - 2e-3) + costs.time(task.schedule(), task.id());
      std::this_thread::sleep_for(std::chrono::duration<hd::Seconds>(end - now));
    };
    hd::Runner runner(wait, schedule, network, {.execute = {.idle = hd::Idle::nap}});
    for (hd::Seconds& step : steps) {
      (void)hd::all_gather(network, {});  // all ranks begin together
      const hd::Seconds begin = hd::steady_seconds();
      runner.step();
      (void)hd::all_gather(network, {});  // and all have ended
      if (network.rank() == 0) step = hd::steady_seconds() - begin;
    }
  });
  std::ranges::sort(steps);
  return steps[1];
}

}  // namespace

int main() {
  const hd::plan::Profile profile = profile_by_hand();
  std::vector<hd::Device> devices(2, {.name = "fast"});
  devices.resize(4, {.name = "slow", .speed = 0.4});
  const hd::Machine machine =
      hd::Machine::from_links(devices, std::vector<hd::Link>(16, {.bandwidth = 2e6}));

  const hd::plan::PlanSearch found = hd::plan::search(
      profile, machine, {.batch = 4 * microbatches, .microbatches = {microbatches}},
      hd::plan::select_planners(hd::systems::planners(),
                                {"DAPPLE", "PipeDream", "Metis", "HGTrainer"}));
  std::cout << found << '\n' << found.best() << '\n';

  hd::Plan equal{.microbatches = microbatches};
  for (int s = 0; s < 4; ++s)
    equal.stages.push_back({.layers = {6 * s, 6 * s + 6}, .ranks = {hd::Rank{s}}, .samples = {4}});
  for (const hd::Plan& plan : {found.best(), equal}) {
    // Gradients of the ranks of a stage, if there are several, are summed by a ring.
    const hd::Schedule schedule = hd::schedule::expand(
        hd::plan::schedule(plan, profile, {.ranks = 4}), hd::schedule::CollectiveForm{});
    const hd::plan::RankCosts costs = hd::plan::costs(plan, profile, machine);
    std::cout << (plan == equal ? "equal stages" : "best plan") << ": predicted "
              << simulate(schedule, costs).makespan() * 1e3 << " ms, measured "
              << measured(schedule, costs) * 1e3 << " ms\n";
  }
}
