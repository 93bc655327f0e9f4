// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Replanner: a Runner that changes its Plan while it runs, if measured steps show that another
/// division of the model pays. It is for long runs on ranks that may turn slow.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/plan/planner/plan_choice.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace impl {

/// A model that is told the plan of the next Runner.
template <class M>
concept BeginsPlans = requires(M& model, const Plan& plan) {
  model.begin_plan(plan);
};

}  // namespace impl

/// The options of a Replanner: how it runs, how often it looks, and how long.
struct ReplannerOptions {
  RunOptions run = {};  ///< the options of the steps; only observed steps are recorded
  int every = 20;       ///< the number of steps between two looks
  /// The steps of the whole run, over which a change must pay. 0: the run has no known end.
  std::int64_t steps = 0;
};

/// Runs a model by the Plan that a PlanChoice selects. There is one object per rank. All ranks
/// construct it with equal arguments and call its functions in the same order.
///
/// Once in `every` steps, all ranks observe the Timeline of the last step, which is the same on all
/// ranks. So all of them take the same plan without another message. If the plan changes, a new
/// Runner is made. A model with the member `begin_plan(plan)` is told the plan before its Runner is
/// made, so that it can divide itself accordingly: Stages does, and carries its state (see
/// HasState). Only the buffers of one Schedule are allocated at a time.
///
/// The number of microbatches may change with the plan if PlanOptions::microbatches allows several.
/// plan() tells which one the next step takes. The object refers to the model and the place. After
/// an error it cannot be used again.
template <class M, class P>
requires Model<M> && Place<P>
class Replanner {
  using RunnerType = Runner<M&, P&>;

 public:
  /// Prepares the first plan.
  /// @throws contract_error if `every` is below 1, if the machine of the choice has another number
  ///         of ranks than the place, and the errors of Runner.
  Replanner(M& model, plan::PlanChoice choice, P& place, ReplannerOptions options = {})
      : m_model(&model),
        m_place(&place),
        m_options(std::move(options)),
        m_choice(std::move(choice)) {
    constexpr const char* where = "heddle::Replanner";
    expects(m_options.every >= 1 && m_options.steps >= 0, [&] {
      return ErrorInfo{where, "looks need at least 1 step between them, and a run at least 0 steps",
                       text("every = ", m_options.every, ", steps = ", m_options.steps)};
    });
    expects(m_choice.machine().ranks() == transport_of(place).size(), [&] {
      return ErrorInfo{
          where, "the machine has another number of ranks than the place",
          text(m_choice.machine().ranks(), " ranks, there are ", transport_of(place).size()),
          "plan for the machine of this run"};
    });
    m_offset = clock_offset(transport_of(place), m_options.run.execute);
    start();
  }

  /// Observes the last step if it is time to, changes the plan if that pays, and runs a step.
  /// Returns the result of Runner::step. Call look() before it if the arguments depend on the plan.
  template <class... Arguments>
  decltype(auto) step(Arguments&&... arguments) {
    look();
    record(m_since + 1 == m_options.every);
    ++m_since;
    ++m_done;
    return m_runner->step(std::forward<Arguments>(arguments)...);
  }

  /// Observes the last step if it is time to, and changes the plan if that pays. Returns true if it
  /// has changed. step() calls it, too. All ranks must call it.
  bool look() {
    if (m_since < m_options.every) return false;
    m_since = 0;
    constexpr std::int64_t no_end = 1'000'000'000;
    const std::int64_t left =
        m_options.steps == 0 ? no_end : std::max<std::int64_t>(m_options.steps - m_done, 0);
    if (!m_choice.observe(m_runner->timeline(m_offset), left)) return false;
    start();
    return true;
  }

  /// Returns the worst fault that the last looks have shown, as a sentence without a full stop. An
  /// example is "rank 3 computes 2.1 times as long as planned". Slow ranks come before slow
  /// messages, whose planned time may be next to nothing. It is the same on all ranks.
  [[nodiscard]] std::optional<std::string> fault() const {
    std::optional<Finding> worst;
    const auto computes = [](const Finding& finding) {
      return finding.causes.front() == Syndrome::slow_computer;
    };
    for (const Finding& finding : m_choice.monitor().findings())
      if (!worst ||
          std::pair(computes(finding), finding.factor) > std::pair(computes(*worst), worst->factor))
        worst = finding;
    if (!worst) return std::nullopt;
    return to_string(*worst);
  }

  /// Returns the plan of the next step.
  [[nodiscard]] const Plan& plan() const noexcept { return m_choice.plan(); }
  /// Returns the choice and its reasons.
  [[nodiscard]] const plan::PlanChoice& choice() const noexcept { return m_choice; }
  /// Returns the number of steps so far.
  [[nodiscard]] std::int64_t done() const noexcept { return m_done; }
  /// Returns the Runner of the plan. After the plan has changed it is another object.
  [[nodiscard]] RunnerType& runner() noexcept { return *m_runner; }

 private:
  void start() {
    if (m_runner) m_runner->drain();
    m_runner.reset();  // releases its buffers before the new ones are allocated
    if constexpr (impl::BeginsPlans<M>) m_model->begin_plan(m_choice.plan());
    Schedule schedule = m_choice.schedule();
    // A model that prepares its Schedule also decides how gradients are summed.
    if constexpr (!impl::Prepares<M, P>) schedule = expand(schedule, schedule::CollectiveForm{});
    m_options.run.execute.record = m_options.every == 1;
    m_runner = std::make_unique<RunnerType>(*m_model, std::move(schedule), *m_place, m_options.run);
    m_since = 0;
  }
  /// Records only the steps that are looked at: switching completes all messages.
  void record(bool on) {
    if (std::exchange(m_options.run.execute.record, on) != on) m_runner->record(on);
  }

  M* m_model;
  P* m_place;
  ReplannerOptions m_options;
  plan::PlanChoice m_choice;
  Seconds m_offset = 0;  ///< to rank 0's clock, measured once
  std::unique_ptr<RunnerType> m_runner;
  int m_since = 0;  ///< steps since the last look or change
  std::int64_t m_done = 0;
};

}  // namespace heddle::inline v0
