// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AdaptiveRunner: a Runner that changes its Schedule or its Plan while it runs, by the measured
/// times of steps. It is for pipelines on networks that other jobs use, too, and for long runs on
/// ranks that may turn slow.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/resumed_run.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>

namespace heddle::inline v0 {

namespace impl {

/// A model or a place that is told the plan of the next Runner.
template <class T>
concept BeginsPlans = requires(T& it, const Plan& plan) {
  it.begin_plan(plan);
};
/// A choice among Plans.
template <class C>
concept ChoosesPlans = requires(C& choice) {
  { choice.plan() } -> std::convertible_to<const Plan&>;
};
/// A choice that weighs a change against the steps that are left.
template <class C>
concept WeighsSteps = requires(C& choice, const Timeline& step, std::int64_t left) {
  { choice.observe(step, left) } -> std::same_as<bool>;
};
/// A choice that wants to know how its candidates run.
template <class C>
concept PricesCandidates = requires(C& choice, std::span<const Schedule> prepared) {
  choice.as_run(prepared);
};

}  // namespace impl

/// The options of an AdaptiveRunner: how it runs, how often it looks, and how long.
struct AdaptiveOptions {
  /// The options of the steps. If they do not ask for it, only observed steps are recorded.
  RunOptions run = {};
  int every = 20;  ///< the number of steps between two looks
  /// The steps of the whole run, over which a change must pay. 0: the run has no known end.
  std::int64_t steps = 0;
  /// The number of steps between two checkpoints, see AdaptiveRunner::resume(). 0: only save()
  /// makes them.
  int save_every = 0;
};

/// Runs a model by the Schedule that a choice selects: a ScheduleChoice, or a plan::PlanChoice,
/// whose header the program includes. There is one object per rank. All ranks construct it with
/// equal arguments and call its functions in the same order.
///
/// Once in `every` steps, all ranks observe the Timeline of the last step, which is the same on all
/// ranks. So all of them make the same choice without another message. If the choice changes, a new
/// Runner is made. Only the buffers of one Schedule are allocated at a time, and the model itself
/// holds the data that lasts from step to step (see Model). The object refers to the model and the
/// place. After an error it cannot be used again.
///
/// The place and the model are told a plan before its Runner is made, if they have the member
/// `begin_plan(plan)`. A PlannedMesh then makes the communicators of the plan. Stages divides
/// itself accordingly, and carries its state (see HasState). The plan decides everything that a
/// Plan states: stages, the groups of each stage and their samples, and, if
/// PlanOptions::microbatches allows several, the number of microbatches. plan() tells what the next
/// step takes, and place() the samples of this rank.
template <class M, class Choice, class P>
requires Model<M> && Place<P>
class AdaptiveRunner {
  using RunnerType = Runner<M&, P&>;

 public:
  /// Prepares the first choice. If the choice is among Schedules, each candidate is prepared once
  /// by the model, so that the memory of each is known.
  /// @throws contract_error if a number of the options is out of range, or if the machine of a
  ///         choice among plans has another number of ranks than the place; infeasible on all ranks
  ///         if no candidate fits the memory of the choice; and the errors of Runner.
  AdaptiveRunner(M& model, Choice choice, P& place, AdaptiveOptions options = {})
      : m_model(&model),
        m_place(&place),
        m_options(std::move(options)),
        m_choice(std::move(choice)) {
    constexpr const char* where = "heddle::AdaptiveRunner";
    expects(m_options.every >= 1 && m_options.steps >= 0 && m_options.save_every >= 0, [&] {
      return ErrorInfo{where,
                       "AdaptiveOptions::every must be at least 1 step, and other numbers of steps "
                       "at least 0",
                       text("every = ", m_options.every, ", steps = ", m_options.steps,
                            ", save_every = ", m_options.save_every)};
    });
    if constexpr (impl::ChoosesPlans<Choice>)
      expects(m_choice.machine().ranks() == transport_of(place).size(), [&] {
        return ErrorInfo{
            where, "the machine has another number of ranks than the place",
            text(m_choice.machine().ranks(), " ranks, there are ", transport_of(place).size()),
            "plan for the machine of this run"};
      });
    m_always = recorded();
    if constexpr (impl::PricesCandidates<Choice>) {
      std::vector<Schedule> prepared;
      for (const Schedule& candidate : m_choice.candidates())
        prepared.push_back(prepare_schedule(*m_model, candidate, *m_place, m_options.run));
      m_choice.as_run(prepared);
    }
    m_offset = impl::clock_offset(transport_of(place), m_options.run.execute);
    start();
  }

  /// Constructs the place from a communicator, as in
  /// `AdaptiveRunner run(model, choice, MPI_COMM_WORLD)`, and owns it. Include comm/replan.hpp for
  /// it. Throws the errors of the other constructor.
  template <class Communicator>
  requires(!std::same_as<Communicator, P> && std::constructible_from<P, Communicator>)
      AdaptiveRunner(M& model, Choice choice, Communicator communicator,
                     AdaptiveOptions options = {})
      : AdaptiveRunner(model, std::move(choice), std::make_unique<P>(communicator),
                       std::move(options)) {}

  /// Observes the last step if it is time to, changes the choice if that pays, and runs a step.
  /// Saves the state if it is time to, see AdaptiveOptions::save_every. Returns the result of
  /// Runner::step. Call look() before it if the arguments depend on the plan.
  template <class... Arguments>
  decltype(auto) step(Arguments&&... arguments) {
    look();
    record(m_since + 1 == m_options.every);
    ++m_since;
    ++m_done;
    const bool saves = m_save && m_options.save_every > 0 && m_done % m_options.save_every == 0;
    if (!saves) return m_runner->step(std::forward<Arguments>(arguments)...);
    using Result = decltype(m_runner->step(std::forward<Arguments>(arguments)...));
    if constexpr (std::is_void_v<Result>) {
      m_runner->step(std::forward<Arguments>(arguments)...);
      save();
    } else {
      Result result = m_runner->step(std::forward<Arguments>(arguments)...);
      save();
      return static_cast<Result>(result);
    }
  }

  /// Continues after the steps of `run`, and returns their number. From then on checkpoints go to
  /// the files of `run`, and words() are its words. resume_run() of pipeline/checkpoint_pair.hpp
  /// gives the model the state of the newest checkpoint and returns `run`. All ranks must call
  /// this function, before the first step.
  std::int64_t resume(ResumedRun run) {
    m_done = run.step;
    m_save = std::move(run.save);
    m_words = std::move(run.words);
    if (m_options.run.execute.log && !m_words.empty()) m_options.run.execute.log(m_words);
    return m_done;
  }

  /// Saves the state after the steps so far, to the older one of the files of resume(). All ranks
  /// must call it. @throws contract_error if resume() was not called, and as heddle::save().
  void save() {
    expects(m_save != nullptr, [] {
      return ErrorInfo{"heddle::AdaptiveRunner::save",
                       "the run has no file for its checkpoints",
                       {},
                       "call resume() before the first step; the file need not exist"};
    });
    m_runner->drain();
    m_save(m_done);
  }

  /// Returns from which file and step resume() continued, and which file is damaged. The text is
  /// empty if there was none.
  [[nodiscard]] const std::string& words() const noexcept { return m_words; }

  /// Observes the last step if it is time to, and changes the choice if that pays. Returns true if
  /// it has changed. step() calls it, too. All ranks must call it.
  bool look() {
    if (m_since < m_options.every) return false;
    m_since = 0;
    if (!observe(m_runner->timeline(m_offset))) return false;
    start();
    return true;
  }

  /// Limits transient storage to `memory` bytes from now on, if the choice is a ScheduleChoice. The
  /// smallest limit of all ranks counts. All ranks must call it.
  /// @throws infeasible on all ranks if no candidate fits.
  void limit(Bytes memory) {
    const auto all =
        all_gather<Bytes>(transport_of(*m_place), std::span(&memory, 1), m_options.run.execute);
    for (const auto& each : all) memory = std::min(memory, each[0]);
    if (m_choice.limit(memory)) start();
  }

  /// Returns the worst fault that the last looks have shown, as a sentence without a full stop, if
  /// the choice is a PlanChoice. An example is "rank 3 computes 2.1 times as long as planned". Slow
  /// ranks come before slow messages, whose planned time may be next to nothing. It is the same on
  /// all ranks.
  [[nodiscard]] std::optional<std::string> fault() const {
    std::optional<Finding> worst;
    const auto computes = [](const Finding& finding) {
      return finding.causes.front() == Finding::Syndrome::slow_computer;
    };
    for (const Finding& finding : m_choice.monitor().findings())
      if (!worst ||
          std::pair(computes(finding), finding.factor) > std::pair(computes(*worst), worst->factor))
        worst = finding;
    if (!worst) return std::nullopt;
    return to_string(*worst);
  }

  /// Returns the plan of the next step, if the choice is a PlanChoice.
  [[nodiscard]] const Plan& plan() const noexcept { return m_choice.plan(); }
  /// Returns the place. A PlannedMesh has the samples and the communicators of this rank.
  [[nodiscard]] P& place() noexcept { return *m_place; }
  /// Returns the choice and its reasons.
  [[nodiscard]] const Choice& choice() const noexcept { return m_choice; }
  /// Returns the number of steps so far.
  [[nodiscard]] std::int64_t done() const noexcept { return m_done; }
  /// Returns the Runner of the choice. After the choice has changed it is another object.
  [[nodiscard]] RunnerType& runner() noexcept { return *m_runner; }

 private:
  AdaptiveRunner(M& model, Choice choice, std::unique_ptr<P> place, AdaptiveOptions options)
      : AdaptiveRunner(model, std::move(choice), *place, std::move(options)) {
    m_owned = std::move(place);
  }

  [[nodiscard]] bool observe(const Timeline& step) {
    if constexpr (impl::WeighsSteps<Choice>) {
      constexpr std::int64_t no_end = 1'000'000'000;
      const std::int64_t left =
          m_options.steps == 0 ? no_end : std::max<std::int64_t>(m_options.steps - m_done, 0);
      return m_choice.observe(step, left);
    } else {
      return m_choice.observe(step);
    }
  }

  void start() {
    if (m_runner) m_runner->drain();
    m_runner.reset();  // releases its buffers before the new ones are allocated
    if constexpr (impl::ChoosesPlans<Choice> && impl::BeginsPlans<P>)
      m_place->begin_plan(m_choice.plan());
    if constexpr (impl::ChoosesPlans<Choice> && impl::BeginsPlans<M>)
      m_model->begin_plan(m_choice.plan());
    Schedule schedule = m_choice.schedule();
    // A model that prepares its Schedule also decides how the gradients of a plan are summed.
    if constexpr (impl::ChoosesPlans<Choice> && !impl::Prepares<M, P>)
      schedule = schedule::expand(schedule, schedule::CollectiveForm{});
    recorded() = m_always || m_options.every == 1;
    m_runner = std::make_unique<RunnerType>(*m_model, std::move(schedule), *m_place, m_options.run);
    m_since = 0;
  }
  /// Records only the steps that are looked at, because switching completes all messages.
  void record(bool on) {
    on = on || m_always;
    if (std::exchange(recorded(), on) != on) m_runner->record(on);
  }
  [[nodiscard]] bool& recorded() noexcept { return m_options.run.execute.record; }

  std::unique_ptr<P> m_owned;  ///< the place, if this object has made it
  M* m_model;
  P* m_place;
  AdaptiveOptions m_options;
  Choice m_choice;
  bool m_always = false;  ///< every step is recorded
  Seconds m_offset = 0;   ///< to rank 0's clock, measured once; see ObservedCosts
  std::unique_ptr<RunnerType> m_runner;
  int m_since = 0;  ///< steps since the last look or change
  std::int64_t m_done = 0;
  std::function<void(std::int64_t)> m_save;
  std::string m_words;
};

}  // namespace heddle::inline v0
