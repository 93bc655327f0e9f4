// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AdaptiveRunner: a Runner that changes its Schedule while it runs, by the measured times of
/// steps. It is for pipelines on networks that other jobs use, too.

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/recording.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/plan/schedule_choice.hpp>

namespace heddle::inline v0 {

/// Options of an AdaptiveRunner: how it runs, and how often it measures.
struct AdaptiveOptions {
  RunOptions run = {};  ///< the options of the steps, which are always recorded
  int every = 4;        ///< the number of steps between two measurements
};

/// Runs a model by the Schedule that a ScheduleChoice selects. There is one object per rank. All
/// ranks construct it with equal candidates and call its functions in the same order.
///
/// Once in `every` steps, all ranks observe the Timeline of the last step. It is the same on all
/// ranks, so all of them make the same choice. If the choice changes, a new Runner is made. Only
/// the buffers of one Schedule are allocated at a time, and the model itself holds the data that
/// lasts from step to step (see Model). The object refers to the model and the place. After an
/// error it cannot be used again.
template <class M, class P>
requires Model<M> && Place<P>
class AdaptiveRunner {
  using RunnerType = Runner<M&, P&>;

 public:
  /// Prepares every candidate once by the model, so that the memory of each is known.
  /// @throws contract_error if `every` is less than 1, infeasible on all ranks if no candidate fits
  ///         the memory of the choice, and the errors of Runner.
  AdaptiveRunner(M& model, ScheduleChoice choice, P& place, AdaptiveOptions options = {})
      : m_model(&model),
        m_place(&place),
        m_options(std::move(options)),
        m_choice(std::move(choice)) {
    expects(m_options.every >= 1, [&] {
      return ErrorInfo{"heddle::AdaptiveRunner", "AdaptiveOptions::every must be at least 1 step",
                       text("every = ", m_options.every)};
    });
    m_options.run.execute.record = true;
    std::vector<Schedule> prepared;
    for (const Schedule& candidate : m_choice.candidates())
      prepared.push_back(RunnerType::prepare(*m_model, candidate, *m_place, m_options.run));
    m_choice.as_run(prepared);
    m_offset = clock_offset(transport_of(*m_place), m_options.run.execute);
    start();
  }

  /// Observes the last step if it is time to, and runs the chosen Schedule once. Returns the result
  /// of Runner::step.
  template <class... Arguments>
  decltype(auto) step(Arguments&&... arguments) {
    if (m_since == m_options.every) {
      m_since = 0;
      if (m_choice.observe(m_runner->timeline(m_offset))) start();
    }
    ++m_since;
    return m_runner->step(std::forward<Arguments>(arguments)...);
  }

  /// Limits transient storage to `memory` bytes from now on. The smallest limit of all ranks
  /// counts. All ranks must call it.
  /// @throws infeasible on all ranks if no candidate fits.
  void limit(Bytes memory) {
    const auto all = all_gather_values<Bytes>(transport_of(*m_place), std::span(&memory, 1),
                                              m_options.run.execute);
    for (const auto& each : all) memory = std::min(memory, each[0]);
    if (m_choice.limit(memory)) start();
  }

  /// Returns the choice and its reasons.
  [[nodiscard]] const ScheduleChoice& choice() const noexcept { return m_choice; }
  /// Returns the Runner of the chosen Schedule. After the choice has changed it is another object.
  [[nodiscard]] RunnerType& runner() noexcept { return *m_runner; }

 private:
  void start() {
    m_runner.reset();  // releases its buffers before the new ones are allocated
    m_runner = std::make_unique<RunnerType>(*m_model, m_choice.schedule(), *m_place, m_options.run);
    m_since = 0;
  }

  M* m_model;
  P* m_place;
  AdaptiveOptions m_options;
  ScheduleChoice m_choice;
  Seconds m_offset = 0;  ///< to rank 0's clock, measured once; see ObservedCosts
  std::unique_ptr<RunnerType> m_runner;
  int m_since = 0;  ///< steps since the last measurement or change
};

}  // namespace heddle::inline v0
