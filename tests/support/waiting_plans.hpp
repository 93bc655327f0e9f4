// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Plans whose ranks wait instead of computing: a step that is executed, beside its prediction. And
/// two pairs of ranks that a slow line joins, with a plan of Holmes and its rival for them.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/combine.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/executor.hpp>
#include <heddle/execute/idle.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/shaped_transport.hpp>
#include <heddle/execute/task.hpp>
#include <heddle/execute/thread_transport.hpp>
#include <heddle/execute/transport.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/plan_schedule.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/schedule/pass/shard_updates.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/simulate.hpp>
#include <heddle/systems/holmes/holmes.hpp>

#include "support/rounds.hpp"

namespace heddle::test {

/// A plan, its prediction by simulate(), and its executed steps.
struct WaitingPlan {
  std::string name;
  Plan plan;
  Schedule schedule;
  plan::RankCosts costs;
  Timeline timeline;  ///< predicted
  Seconds predicted = 0;
  std::vector<Timeline> steps = {};  ///< measured, by round
  Spread took = {};                  ///< the seconds of the steps

  /// Returns how much longer the median step took than predicted, as a share of the prediction.
  [[nodiscard]] double error() const { return took.median() / predicted - 1; }
  /// Returns the measured Timeline of the median step.
  [[nodiscard]] const Timeline& measured() const { return steps[took.median_round()]; }
};

/// Returns a plan with its schedule and its prediction. Rings sum the gradients, or replicas divide
/// the updates if the plan has the sharding zero1.
[[nodiscard]] inline WaitingPlan waiting_plan(std::string name, const Plan& plan,
                                              const heddle::plan::Profile& profile,
                                              const Machine& machine) {
  const Schedule plain = plan::schedule(plan, profile, {.ranks = machine.ranks()});
  const Schedule made = plan.sharding == "zero1"
                            ? heddle::schedule::shard_updates(plain)
                            : heddle::schedule::expand(plain, schedule::CollectiveForm{});
  const plan::RankCosts costs = plan::costs(plan, profile, machine);
  const Timeline timeline = simulate(made, costs);
  return {std::move(name), plan, made, costs, timeline, timeline.makespan()};
}

/// Executes one step over `transport`, whose ranks share a clock, and adds it to `each`, which each
/// rank has one of. All ranks begin together, and the step ends with the slowest one. A wait ends
/// at a time that counts from the end of the wait before, so late wake-ups do not add up. Returns
/// the seconds of the step, the same on all ranks.
template <Transport T>
Seconds execute_waits(WaitingPlan& each, T& transport) {
  const ExecuteOptions nap{.idle = Idle::nap};
  const auto latest = [&](Seconds mine) {
    Seconds result = 0;
    for (const auto& of_rank : all_gather(transport, std::span(&std::as_const(mine), 1), nap))
      result = std::max(result, of_rank.front());
    return result;
  };
  Seconds due = 0;
  const auto model = [&](const Task& task) {
    if (task.kind() == Kind::combine) return combine_on_host(task);
    const Seconds wait = each.costs.time(task.schedule(), task.id());
    if (wait == 0) return;
    const Seconds now = steady_seconds();
    due = (now - due < 2e-3 ? due : now) + wait;
    std::this_thread::sleep_for(std::chrono::duration<double>(due - now));
  };
  Runner runner(model, each.schedule, transport, {.execute = {.idle = Idle::nap, .record = true}});
  const Seconds begin = latest(steady_seconds()) + 5e-3;
  std::this_thread::sleep_for(std::chrono::duration<double>(begin - steady_seconds()));
  runner.step();
  const Seconds took = latest(steady_seconds()) - begin;
  each.steps.push_back(runner.timeline());
  return took;
}

/// Executes steps of all plans in rounds until `holds()`, see measure_in_rounds(). `execute` runs
/// one step of a plan with execute_waits().
template <class Execute, class Holds>
[[nodiscard]] bool execute_in_rounds(std::span<WaitingPlan> plans, Execute&& execute, Holds&& holds,
                                     const RoundOptions& options = {}) {
  std::vector<Form> forms;
  for (WaitingPlan& each : plans)
    forms.push_back({text("step of ", each.name, ", predicted ", each.predicted, " s, executed s"),
                     [&each, &execute] { return execute(each); }});
  const auto take = [&] {
    for (std::size_t i = 0; i < plans.size(); ++i) plans[i].took = forms[i].spread;
  };
  const bool enough = measure_in_rounds(
      forms,
      [&] {
        take();
        return holds();
      },
      options);
  take();
  return enough;
}

/// Executes steps on threads, behind the links of the plans' machines.
template <class Holds>
[[nodiscard]] bool execute_on_threads(std::span<WaitingPlan> plans, Holds&& holds,
                                      const RoundOptions& options = {}) {
  const auto execute = [](WaitingPlan& each) {
    const int ranks = each.costs.machine().ranks();
    std::vector<WaitingPlan> of_ranks(static_cast<std::size_t>(ranks), each);
    Seconds took = 0;
    run_threads(ranks, [&](ThreadTransport& threads) {
      ShapedTransport transport(threads, Shape::of(each.costs.machine()));
      const Seconds mine = execute_waits(of_ranks[+threads.rank()], transport);
      if (threads.rank() == Rank{0}) took = mine;
    });
    each = std::move(of_ranks.front());
    return took;
  };
  return execute_in_rounds(plans, execute, holds, options);
}

/// Two pairs of ranks with a slow line of `bandwidth` bytes per second in each direction. If
/// `one_line`, all messages between the pairs share it. Otherwise every two ranks have their own.
[[nodiscard]] inline Machine two_pairs(double bandwidth, Seconds latency, bool one_line) {
  Machine machine = Machine::uniform(4, {.name = "waits"}, {latency, bandwidth});
  for (const auto& [a, b] : {std::pair{0, 1}, std::pair{2, 3}}) {
    machine.set_link(Rank{a}, Rank{b}, {20e-6, 1e9});
    machine.set_link(Rank{b}, Rank{a}, {20e-6, 1e9});
  }
  if (one_line)
    for (const int from : {0, 2}) {
      std::vector<std::pair<Rank, Rank>> pairs;
      for (const int a : {from, from + 1})
        for (const int b : {2 - from, 3 - from}) pairs.emplace_back(Rank{a}, Rank{b});
      machine.share("line from rank " + std::to_string(from), bandwidth, std::move(pairs));
    }
  return machine;
}

/// Returns a model of four layers with `gradient` bytes of weights in two of them. Two layers take
/// `forward` for one sample, and twice as long in a backward. A sample has 2 kB between layers.
[[nodiscard]] inline heddle::plan::Profile waits_with_gradients(Bytes gradient, Seconds forward) {
  const Seconds layer_forward = forward / 2;
  const heddle::plan::ProfiledLayer layer{
      .name = "layer",
      .output = 2000,
      .saved = 2000,
      .parameters = gradient / 2,
      .measured = {{.device = "waits",
                    .samples = 1,
                    .times = {layer_forward, layer_forward, layer_forward, 0}}}};
  return {.model = "waits",
          .input = 2000,
          .layers = std::vector<heddle::plan::ProfiledLayer>(4, layer),
          .reference = "waits"};
}

/// Returns Holmes' plan for two_pairs(), and the same plan with ranks 1 and 2 exchanged, so that
/// its data groups span the slow line. A step has 8 microbatches of two samples. The other
/// arguments are those of waits_with_gradients().
[[nodiscard]] inline std::array<WaitingPlan, 2> holmes_and_rival(const Machine& machine,
                                                                 Bytes gradient, Seconds forward) {
  const heddle::plan::Profile profile = waits_with_gradients(gradient, forward);
  const plan::PlanProblem problem(profile, machine, {.batch = 16, .microbatches = {8}});
  const plan::FoundPlan found = systems::Holmes{}.search(problem);
  expects(found.plan.has_value(), [&] {
    return ErrorInfo{"holmes_and_rival", "there is no plan", found.infeasible};
  });
  Plan rival = *found.plan;
  for (PlanStage& stage : rival.stages)
    for (Rank& rank : stage.ranks)
      if (rank == Rank{1} || rank == Rank{2}) rank = rank == Rank{1} ? Rank{2} : Rank{1};
  return {waiting_plan("Holmes", *found.plan, profile, machine),
          waiting_plan("groups_over_the_slow_line", rival, profile, machine)};
}

}  // namespace heddle::test
