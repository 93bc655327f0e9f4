// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Executed steps of stages that wait, over shaped links and with a fault, for a Monitor.

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/schedule/collective/collective.hpp>
#include <heddle/schedule/generator/pipeline.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>

#include "support/sleep_noise.hpp"

namespace heddle::monitored {

/// A fault of executed steps: what is slow. It takes `waits_factor` times as long as planned.
struct ExecutedFault {
  Finding::Syndrome syndrome = Finding::Syndrome::slow_link;
  Rank rank = {};
  Rank peer = {};
};

inline constexpr double waits_factor = 2;
inline constexpr int most_looks = 3;
inline constexpr int steps_per_look = 3;     ///< the number of steps that a look observes
inline constexpr double least_factor = 1.5;  ///< the smallest factor that is a fault
/// The number of steps that other programs may disturb before a run ends without a result.
inline constexpr int most_disturbed = 20;
inline constexpr int no_result = -1;
inline constexpr Seconds shortest_wait = 8e-3;  ///< the forward of the first stage
inline constexpr Bytes wait_bytes = 4000;       ///< of every message
/// The bytes a second of every link. A message takes no longer than the wait before the next one,
/// so that none waits for another one on its link.
inline constexpr double wait_rate = static_cast<double>(wait_bytes) / shortest_wait;

/// The times of unequal stages, and of messages over links that are equal.
struct WaitCosts {
  using Time = Seconds;

  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const Action& action = schedule[id];
    if (action.kind != Kind::forward && action.kind != Kind::backward) return 0;
    return shortest_wait * (action.kind == Kind::backward ? 2 : 1) * (1 + 0.5 * action.stage.value);
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule&, ActionId) const {
    return {static_cast<Seconds>(wait_bytes) / wait_rate, 0};
  }
};

/// Waits as long as the costs say, or longer on a slow computer.
struct WaitingModel {
  double slowness = 1;

  void operator()(const Task& task) const {
    const Seconds wait = slowness * WaitCosts().time(task.schedule(), task.id());
    if (wait > 0) std::this_thread::sleep_for(std::chrono::duration<double>(wait));
  }
};

/// Returns the shape of the links with a fault.
inline Shape shape_with(std::optional<ExecutedFault> fault) {
  return {.link = [fault](Rank from, Rank to, Seconds) {
    const bool slow =
        fault && ((fault->syndrome == Finding::Syndrome::slow_link && from == fault->rank &&
                   to == fault->peer) ||
                  (fault->syndrome == Finding::Syndrome::slow_sender && from == fault->rank) ||
                  (fault->syndrome == Finding::Syndrome::slow_receiver && to == fault->rank));
    return Link{0, wait_rate / (slow ? waits_factor : 1)};
  }};
}

/// Returns whether the findings are exactly the fault, or nothing without a fault.
inline bool names(const std::vector<Finding>& found, std::optional<ExecutedFault> fault) {
  if (!fault) return found.empty();
  const Rank peer = fault->syndrome == Finding::Syndrome::slow_link ? fault->peer : fault->rank;
  return found.size() == 1 && found[0].causes == std::vector{fault->syndrome} &&
         found[0].rank == fault->rank && found[0].peer == peer;
}

/// Executes steps on all ranks of `inner`: a pipeline of unequal stages, and an all-to-all. Looks
/// once in steps_per_look steps. Returns the number of the first look at which the monitor names
/// the fault, or 0 if there is none. Without a fault, returns 1 if no look raises an alarm. The
/// result is the same on all ranks.
///
/// A step is observed only if the machine was quiet beside it, see SleepNoise. A sleep is late if
/// its delay alone would make the shortest wait look slow. Returns no_result if more than
/// most_disturbed steps were disturbed.
template <Transport T>
int looks_until_named(T& inner, std::optional<ExecutedFault> fault) {
  const int ranks = inner.size();
  ShapedTransport<T> transport(inner, shape_with(fault));
  WaitingModel model;
  if (fault && fault->syndrome == Finding::Syndrome::slow_computer && inner.rank() == fault->rank)
    model.slowness = waits_factor;
  const RunOptions options{.execute = {.idle = Idle::nap, .record = true}};
  Runner<WaitingModel&, ShapedTransport<T>&> pipeline(
      model,
      schedule::one_f_one_b(
          {.stages = ranks, .microbatches = 2, .sizes = {.activation = wait_bytes, .saved = 1}}),
      transport, options);
  Runner<WaitingModel&, ShapedTransport<T>&> exchange(
      model,
      schedule::collective(schedule::Collective::all_to_all, schedule::Algorithm::direct,
                           {.ranks = ranks, .bytes = wait_bytes * static_cast<Bytes>(ranks)}),
      transport, options);
  // Each step is observed twice: the pipeline and the exchange.
  Monitor monitor(ranks, {.least = least_factor, .steps = 2 * steps_per_look * most_looks});
  int disturbed = 0;
  bool quiet = true;
  for (int look = 1; look <= most_looks; ++look) {
    for (int step = 0; step < steps_per_look;) {
      std::vector<Timeline> measured;
      test::SleepNoise noise((least_factor - 1) * shortest_wait);
      const auto execute = [&](auto& runner) {
        (void)all_gather(inner, {});  // ranks that start late look like slow messages
        runner.step();
        measured.push_back(runner.timeline(0));
      };
      execute(pipeline);
      execute(exchange);
      const test::SleepNoise::Sleeps mine = noise.end();
      const std::array<int, 2> own{mine.all, mine.late};
      test::SleepNoise::Sleeps sleeps;
      for (const auto& each : all_gather<int>(inner, own)) {
        sleeps.all += each[0];
        sleeps.late += each[1];
      }
      if (!sleeps.quiet()) {
        if (++disturbed > most_disturbed) return no_result;
        continue;
      }
      for (const Timeline& each : measured)
        monitor.observe(each, simulate(each.schedule(), WaitCosts()));
      ++step;
    }
    const bool named = names(monitor.findings(), fault);
    if (fault && named) return look;
    quiet = quiet && named;
  }
  return !fault && quiet ? 1 : 0;
}

/// Returns a fault of each class at a random place, and none at last.
inline std::vector<std::optional<ExecutedFault>> executed_faults(std::uint64_t seed, int ranks) {
  const Random random(seed, "executed faults");
  std::vector<std::optional<ExecutedFault>> faults;
  for (const Finding::Syndrome syndrome :
       {Finding::Syndrome::slow_link, Finding::Syndrome::slow_sender,
        Finding::Syndrome::slow_receiver, Finding::Syndrome::slow_computer}) {
    const auto all = static_cast<std::uint64_t>(ranks);
    const std::uint64_t rank = random.below(2 * faults.size(), all);
    const std::uint64_t peer = (rank + 1 + random.below(2 * faults.size() + 1, all - 1)) % all;
    faults.emplace_back(ExecutedFault{syndrome, Rank{rank}, Rank{peer}});
  }
  faults.emplace_back(std::nullopt);
  return faults;
}

}  // namespace heddle::monitored
