// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Replanner: a Runner that changes its Plan while it runs, if measured steps show that another
/// division of the model pays. It is for long runs on ranks that may turn slow.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/resumed_run.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/planner/plan_choice.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/collective/form.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/schedule/pass/expand.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace impl {

/// A model or a place that is told the plan of the next Runner.
template <class T>
concept BeginsPlans = requires(T& it, const Plan& plan) {
  it.begin_plan(plan);
};

}  // namespace impl

/// The options of a Replanner: how it runs, how often it looks, and how long.
struct ReplannerOptions {
  RunOptions run = {};  ///< the options of the steps; only observed steps are recorded
  int every = 20;       ///< the number of steps between two looks
  /// The steps of the whole run, over which a change must pay. 0: the run has no known end.
  std::int64_t steps = 0;
};

/// The options of a whole run of training by a Replanner.
struct TrainingOptions {
  std::int64_t batch = 0;  ///< the samples of a step; 0: as `choice` says
  int every = 20;          ///< the number of steps between two looks
  int save_every = 0;  ///< the number of steps between two checkpoints; 0: only Replanner::save()
  std::int64_t steps = 0;               ///< the steps of the whole run, see ReplannerOptions
  plan::PlanChoiceOptions choice = {};  ///< how plans are chosen
  RunOptions run = {};                  ///< the options of the steps
};

/// Runs a model by the Plan that a PlanChoice selects. There is one object per rank. All ranks
/// construct it with equal arguments and call its functions in the same order.
///
/// Once in `every` steps, all ranks observe the Timeline of the last step, which is the same on all
/// ranks. So all of them take the same plan without another message. If the plan changes, a new
/// Runner is made. The place and the model are told the plan before its Runner is made, if they
/// have the member `begin_plan(plan)`. A PlannedMesh then makes the communicators of the plan.
/// Stages divides itself accordingly, and carries its state (see HasState). Only the buffers of one
/// Schedule are allocated at a time.
///
/// The plan decides everything that a Plan states: stages, the groups of each stage and their
/// samples, and, if PlanOptions::microbatches allows several, the number of microbatches. plan()
/// tells what the next step takes, and place() the samples of this rank. The object refers to the
/// model and the place. After an error it cannot be used again.
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

  /// Constructs the place from a communicator, and prepares the first plan for `machine`, as in
  /// `Replanner run(model, profile, machine, MPI_COMM_WORLD, {.batch = 64})`. Include
  /// comm/replan.hpp for it. The Replanner owns the place.
  /// @throws the errors of the other constructor and of PlanChoice.
  template <class Communicator>
  requires std::constructible_from<P, Communicator> Replanner(M& model, Profile profile,
                                                              Machine machine,
                                                              Communicator communicator,
                                                              TrainingOptions options)
      : Replanner(model, std::make_unique<P>(communicator), std::move(profile), std::move(machine),
                  std::move(options)) {}

  /// Observes the last step if it is time to, changes the plan if that pays, and runs a step. Saves
  /// the state if it is time to, see TrainingOptions::save_every. Returns the result of
  /// Runner::step. Call look() before it if the arguments depend on the plan.
  template <class... Arguments>
  decltype(auto) step(Arguments&&... arguments) {
    look();
    record(m_since + 1 == m_options.every);
    ++m_since;
    ++m_done;
    const bool saves = m_save && m_save_every > 0 && m_done % m_save_every == 0;
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

  /// Continues from the newest checkpoint that is whole, of the two files `path` and `path`.2, and
  /// returns the number of steps that are done: 0 if there is no file. From then on checkpoints go
  /// to each of them alternately. Include pipeline/checkpoint_pair.hpp for it. All ranks must call
  /// it, before the first step. If a file is damaged, the other one is used, and words() says so.
  /// @throws the errors of CheckpointPair::resume().
  int resume(const std::string& path) {
    ResumedRun run = resume_run(path, *m_model, *m_place, m_options.run.execute);
    m_done = run.step;
    m_save = std::move(run.save);
    m_words = std::move(run.words);
    if (m_options.run.execute.log && !m_words.empty()) m_options.run.execute.log(m_words);
    return static_cast<int>(m_done);
  }

  /// Saves the state after the steps so far, to the older one of the files of resume(). All ranks
  /// must call it. @throws contract_error if resume() was not called, and as heddle::save().
  void save() {
    expects(m_save != nullptr, [] {
      return ErrorInfo{"heddle::Replanner::save",
                       "the run has no file for its checkpoints",
                       {},
                       "call resume(path) before the first step; the file need not exist"};
    });
    m_runner->drain();
    m_save(m_done);
  }

  /// Returns from which file and step resume() continued, and which file is damaged. The text is
  /// empty if there was none.
  [[nodiscard]] const std::string& words() const noexcept { return m_words; }

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
  /// Returns the place. A PlannedMesh has the samples and the communicators of this rank.
  [[nodiscard]] P& place() noexcept { return *m_place; }
  /// Returns the choice and its reasons.
  [[nodiscard]] const plan::PlanChoice& choice() const noexcept { return m_choice; }
  /// Returns the number of steps so far.
  [[nodiscard]] std::int64_t done() const noexcept { return m_done; }
  /// Returns the Runner of the plan. After the plan has changed it is another object.
  [[nodiscard]] RunnerType& runner() noexcept { return *m_runner; }

 private:
  Replanner(M& model, std::unique_ptr<P> place, Profile profile, Machine machine,
            TrainingOptions options)
      : Replanner(model, choice_of(std::move(profile), std::move(machine), options), *place,
                  {.run = options.run, .every = options.every, .steps = options.steps}) {
    expects(options.save_every >= 0, [&] {
      return ErrorInfo{"heddle::Replanner", "the number of steps between checkpoints is negative",
                       text("save_every = ", options.save_every),
                       "use 0 to save only when save() is called"};
    });
    m_save_every = options.save_every;
    m_owned = std::move(place);
  }
  [[nodiscard]] static plan::PlanChoice choice_of(Profile profile, Machine machine,
                                                  const TrainingOptions& options) {
    plan::PlanChoiceOptions choice = options.choice;
    if (options.batch != 0) choice.search.batch = options.batch;
    return {std::move(profile), std::move(machine), std::move(choice)};
  }

  void start() {
    if (m_runner) m_runner->drain();
    m_runner.reset();  // releases its buffers before the new ones are allocated
    if constexpr (impl::BeginsPlans<P>) m_place->begin_plan(m_choice.plan());
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

  std::unique_ptr<P> m_owned;  ///< the place, if this object has made it
  M* m_model;
  P* m_place;
  ReplannerOptions m_options;
  plan::PlanChoice m_choice;
  Seconds m_offset = 0;  ///< to rank 0's clock, measured once
  std::unique_ptr<RunnerType> m_runner;
  int m_since = 0;  ///< steps since the last look or change
  std::int64_t m_done = 0;
  int m_save_every = 0;
  std::function<void(std::int64_t)> m_save;
  std::string m_words;
};

}  // namespace heddle::inline v0
