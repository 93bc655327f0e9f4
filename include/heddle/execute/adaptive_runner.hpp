// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AdaptiveRunner: a Runner whose Schedule is chosen anew while it runs, by what steps took. For
/// pipelines on networks that others use, too.

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

/// How an AdaptiveRunner runs, and how often it looks.
struct AdaptiveOptions {
  RunOptions run = {};  ///< of the steps; they are recorded in any case
  int every = 4;        ///< steps between two looks at what a step took
};

/// Runs a model by the Schedule that a ScheduleChoice wants. One object per rank; all ranks
/// construct it with equal candidates and call its functions in the same order.
///
/// Between steps, once in `every`, all ranks learn from the Timeline of the last one, the same for
/// all, so that all decide alike. Where the choice changes, the Runner is made anew: only one
/// Schedule's buffers are allocated at a time, and what lasts from step to step is the model's own
/// (see Model). The model and the place are referred to. After an error the object is spent.
template <class M, class P>
requires Model<M> && Place<P>
class AdaptiveRunner {
  using RunnerType = Runner<M&, P&>;

 public:
  /// The model prepares every candidate once, so that what each needs is known.
  /// @throws contract_error where the options ask for a look at no step; infeasible on all ranks
  ///         where no candidate fits the memory of the choice; what Runner throws.
  AdaptiveRunner(M& model, ScheduleChoice choice, P& place, AdaptiveOptions options = {})
      : m_model(&model),
        m_place(&place),
        m_options(std::move(options)),
        m_choice(std::move(choice)) {
    expects(m_options.every >= 1, [&] {
      return Complaint{"heddle::AdaptiveRunner", "there is at least one step between two looks",
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

  /// Learns where it is time to, and runs the chosen Schedule once; returns what Runner::step does.
  template <class... Arguments>
  decltype(auto) step(Arguments&&... arguments) {
    if (m_since == m_options.every) {
      m_since = 0;
      if (m_choice.observe(m_runner->timeline(m_offset))) start();
    }
    ++m_since;
    return m_runner->step(std::forward<Arguments>(arguments)...);
  }

  /// From now on this rank has `memory` bytes for transient storage; the least of all ranks counts.
  /// All ranks must call it.
  /// @throws infeasible on all ranks, where no candidate fits.
  void limit(Bytes memory) {
    const auto all = all_gather_values<Bytes>(transport_of(*m_place), std::span(&memory, 1),
                                              m_options.run.execute);
    for (const auto& each : all) memory = std::min(memory, each[0]);
    if (m_choice.limit(memory)) start();
  }

  /// What was chosen, and why.
  [[nodiscard]] const ScheduleChoice& choice() const noexcept { return m_choice; }
  /// What runs the chosen Schedule. Another object after the choice has changed.
  [[nodiscard]] RunnerType& runner() noexcept { return *m_runner; }

 private:
  void start() {
    m_runner.reset();  // its buffers go before the new ones come
    m_runner = std::make_unique<RunnerType>(*m_model, m_choice.schedule(), *m_place, m_options.run);
    m_since = 0;
  }

  M* m_model;
  P* m_place;
  AdaptiveOptions m_options;
  ScheduleChoice m_choice;
  Seconds m_offset = 0;  ///< to rank 0's clock, once and for all; see ObservedCosts
  std::unique_ptr<RunnerType> m_runner;
  int m_since = 0;  ///< steps since the last look, or change
};

}  // namespace heddle::inline v0
