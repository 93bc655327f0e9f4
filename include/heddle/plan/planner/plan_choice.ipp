// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of plan_choice.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/device.hpp>
#include <heddle/machine/link.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/found_plan.hpp>
#include <heddle/plan/migration.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/plan_schedule.hpp>
#include <heddle/plan/planner/plan_choice.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/plan/solver/compositions.hpp>
#include <heddle/plan/solver/min_max_partition.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/monitor.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/schedule/timeline.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0::plan {

namespace impl {

[[nodiscard]] inline Seconds simulated_plan(const Plan& plan, const PlanProblem& problem) {
  const Machine& machine = problem.machine();
  return simulate(schedule(plan, problem.profile(),
                           {.ranks = machine.ranks(), .type = problem.options().activation}),
                  costs(plan, problem.profile(), machine, problem.options().activation))
      .makespan();
}

// The plan with these numbers of layers.
[[nodiscard]] inline Plan with_layers(Plan plan, std::span<const int> numbers) {
  int first = 0;
  plan.prediction.reset();
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    plan.stages[s].layers = {first, first + numbers[s]};
    first += numbers[s];
  }
  return plan;
}

[[nodiscard]] inline std::set<std::size_t> ranks_of(const Plan& plan) {
  std::set<std::size_t> ranks;
  for (const PlanStage& stage : plan.stages)
    for (const Rank rank : stage.ranks) ranks.insert(+rank);
  return ranks;
}

// Adds the times of a layer on `base` with a factor, as those of the device `name`.
inline void add_measurements(ProfiledLayer& layer, const Device& base, const std::string& reference,
                             double factor, const std::string& name) {
  const bool own = std::ranges::any_of(
      layer.measured, [&](const LayerMeasurement& each) { return each.device == base.name; });
  const std::vector<LayerMeasurement> measured = layer.measured;
  for (LayerMeasurement each : measured) {
    if (each.device != (own ? base.name : reference)) continue;
    const double times = own ? factor : factor / base.speed;
    each.device = name;
    each.times.forward *= times;
    each.times.backward_input *= times;
    each.times.backward_weight *= times;
    each.times.update *= times;
    layer.measured.push_back(std::move(each));
  }
}

// The factor of an entry among the usual ones: 1 if it is usual, else the measured factor over it.
[[nodiscard]] inline double unusual_factor(double measured, double usual, double threshold) {
  const double relative = measured / usual;
  return relative <= threshold && relative * threshold >= 1 ? 1 : relative;
}

}  // namespace impl

HEDDLE_INLINE Plan rebalanced(const Plan& present, const PlanProblem& problem, std::uint64_t most) {
  const auto price = [&](const Plan& plan) { return impl::simulated_plan(plan, problem); };
  const auto stages = static_cast<int>(present.stages.size());
  Plan best = present;
  Seconds least = price(present);
  const auto consider = [&](std::span<const int> numbers) {
    Plan plan = impl::with_layers(present, numbers);
    const Seconds time = price(plan);
    if (!(time < least)) return false;
    least = time;
    best = std::move(plan);
    return true;
  };
  if (compositions(problem.layers(), stages) <= most) {
    for_each_composition(problem.layers(), stages, consider);
    return best;
  }
  const auto balance = min_max_partition(problem.layers(), stages, [&](int s, int first, int last) {
    const PlanStage& stage = present.stages[static_cast<std::size_t>(s)];
    Seconds slowest = 0;
    for (std::size_t i = 0; i < stage.ranks.size(); ++i) {
      const LayerTimes times =
          problem.profile().times({first, last}, problem.machine().device(stage.ranks[i]), 1,
                                  static_cast<double>(stage.samples[i]));
      slowest = std::max(slowest, times.forward + times.backward());
    }
    return slowest;
  });
  const auto numbers_of = [](const Plan& plan) {
    std::vector<int> numbers;
    for (const PlanStage& stage : plan.stages) numbers.push_back(stage.layers.size());
    return numbers;
  };
  std::vector<int> numbers;
  for (int last = 0; const int end : balance.ends) {
    numbers.push_back(end - last);
    last = end;
  }
  consider(numbers);
  for (bool better = true; better;) {
    better = false;
    numbers = numbers_of(best);
    for (std::size_t from = 0; from < numbers.size(); ++from)
      for (std::size_t to = 0; to < numbers.size(); ++to) {
        if (from == to || numbers[from] == 1) continue;
        --numbers[from];
        ++numbers[to];
        if (consider(numbers)) {
          better = true;
        } else {
          ++numbers[from];
          --numbers[to];
        }
      }
  }
  return best;
}

HEDDLE_INLINE std::vector<Plan> searched_plans(const PlanProblem& problem, const Plan& present,
                                               std::span<const NamedPlanner> planners) {
  std::vector<Plan> plans;
  const auto add = [&](const Plan& plan) {
    if (std::ranges::find(plans, plan) == plans.end()) plans.push_back(plan);
  };
  if (!present.stages.empty()) add(rebalanced(present, problem));
  for (const PricedPlan& priced : impl::ask_planners(problem, planners))
    if (priced.found.plan) add(*priced.found.plan);
  return plans;
}

HEDDLE_INLINE PlanSource fixed_plans(std::vector<Plan> plans) {
  return [plans = std::move(plans)](const PlanProblem&, const Plan&) { return plans; };
}

HEDDLE_INLINE PlanChoice::PlanChoice(Profile profile, Machine machine, PlanChoiceOptions options)
    : PlanChoice(std::move(profile), std::move(machine), std::move(options), Plan{}) {}

HEDDLE_INLINE PlanChoice::PlanChoice(Profile profile, Machine machine, PlanChoiceOptions options,
                                     Plan first)
    : m_profile(std::move(profile)),
      m_learned_profile(m_profile),
      m_machine(std::move(machine)),
      m_learned_machine(m_machine),
      m_options(std::move(options)),
      m_monitor(m_machine.ranks(), m_options.monitor),
      m_plan(std::move(first)) {
  check_options();
  const auto ranks = static_cast<std::size_t>(m_machine.ranks());
  m_factors.assign(ranks, 1);
  m_links.assign(ranks * ranks, 1);
  if (m_options.state.empty()) m_options.state = state_sizes(m_profile);
  if (!m_plan.stages.empty()) {
    check_plan(m_plan, "the first plan");
  } else {
    Seconds least = std::numeric_limits<Seconds>::infinity();
    for (const Plan& plan : candidates()) {
      const Seconds time = step_time(plan);
      if (!(time < least)) continue;
      least = time;
      m_plan = plan;
    }
    if (m_plan.stages.empty())
      throw infeasible({where, "there is no plan to begin with",
                        text("no candidate fits ", m_machine.ranks(), " ranks and their memory"),
                        "use ranks with more memory, smaller microbatches or other planners"});
  }
  m_considered = {{m_plan, step_time(m_plan), 0}};
  m_plan.prediction = prediction_of(m_considered.front());
  m_before = m_plan;
}

HEDDLE_INLINE PlanPrediction PlanChoice::prediction_of(const ConsideredPlan& considered) const {
  return {considered.step, plan_memory(considered.plan, problem())};
}

HEDDLE_INLINE void PlanChoice::check_options() const {
  (void)problem();  // checks the profile and the options of the search
  expects(heddle::impl::is_time(m_options.gain) && heddle::impl::is_time(m_options.pause), [&] {
    return ErrorInfo{where, "an option is negative, infinite or not a number",
                     text("gain = ", m_options.gain, ", pause = ", m_options.pause)};
  });
  expects(!std::isfinite(m_options.search.budget.seconds), [&] {
    return ErrorInfo{where, "plans that depend on time could differ between ranks",
                     text("search.budget.seconds = ", m_options.search.budget.seconds),
                     "set search.budget.steps instead"};
  });
  expects(m_options.candidates || !m_options.planners.empty(), [&] {
    return ErrorInfo{where,
                     "there are neither planners nor candidates",
                     {},
                     "set PlanChoiceOptions::planners, for example to systems::planners()"};
  });
  expects(m_options.state.empty() || m_options.state.size() == m_profile.layers.size(), [&] {
    return ErrorInfo{
        where, "PlanChoiceOptions::state needs one entry for each layer",
        text(m_options.state.size(), " entries, ", m_profile.layers.size(), " layers")};
  });
}

HEDDLE_INLINE void PlanChoice::check_plan(const Plan& plan, const char* what) const {
  heddle::check(plan, static_cast<int>(m_profile.layers.size()), m_machine.ranks());
  const std::size_t used = impl::ranks_of(plan).size();
  expects(!m_options.all_ranks || used == static_cast<std::size_t>(m_machine.ranks()), [&] {
    return ErrorInfo{where, text(what, " has another number of ranks"),
                     text("it uses ", used, " ranks, the machine has ", m_machine.ranks()),
                     "make a plan for this machine, or set PlanChoiceOptions::all_ranks to false"};
  });
  expects(plan.batch() == m_options.search.batch, [&] {
    return ErrorInfo{
        where, text(what, " has another batch"),
        text(plan.batch(), " samples, PlanOptions::batch is ", m_options.search.batch)};
  });
  impl::check_movable(plan, where, what);
}

HEDDLE_INLINE PlanProblem PlanChoice::problem() const {
  return {m_learned_profile, m_learned_machine, m_options.search};
}

HEDDLE_INLINE std::vector<Plan> PlanChoice::candidates() const {
  const PlanProblem searched = problem();
  std::vector<Plan> plans = m_options.candidates
                                ? m_options.candidates(searched, m_plan)
                                : searched_plans(searched, m_plan, m_options.planners);
  if (m_options.candidates) {
    for (const Plan& plan : plans) check_plan(plan, "a candidate");
  } else {
    std::erase_if(plans, [&](const Plan& plan) {
      const bool divided = std::ranges::any_of(plan.stages, [](const PlanStage& stage) {
        return stage.tensor > 1 || stage.sequence > 1;
      });
      return divided || !plan.sharding.empty() ||
             (m_options.all_ranks &&
              impl::ranks_of(plan).size() != static_cast<std::size_t>(m_machine.ranks()));
    });
  }
  std::erase_if(plans,
                [&](const Plan& plan) { return memory_shortage(plan, searched).has_value(); });
  return plans;
}

HEDDLE_INLINE Schedule PlanChoice::schedule() const {
  return plan::schedule(m_plan, m_profile,
                        {.ranks = m_machine.ranks(), .type = m_options.search.activation});
}

HEDDLE_INLINE Schedule PlanChoice::migration_to(const Plan& next) const {
  return migration(m_plan, next, m_options.state, m_machine.ranks());
}

HEDDLE_INLINE Seconds PlanChoice::step_time(const Plan& plan) const {
  return impl::simulated_plan(plan, problem());
}

HEDDLE_INLINE bool PlanChoice::observe(const Timeline& step, std::int64_t left) {
  expects(left >= 0, [&] {
    return ErrorInfo{where, "the number of steps that follow is negative", text("left = ", left)};
  });
  m_monitor.observe(step, simulate(step.schedule(), costs(m_plan, m_profile, m_machine,
                                                          m_options.search.activation)));
  ++m_looks;
  return 2 * m_looks > m_options.monitor.steps && learn() && choose(left);
}

HEDDLE_INLINE bool PlanChoice::learn() {
  const auto ranks = static_cast<std::size_t>(m_machine.ranks());
  const double usual = m_monitor.usual_compute(), slow = m_monitor.compute_threshold();
  std::vector<double> factors = m_factors, links = m_links;
  for (std::size_t r = 0; r < ranks; ++r)
    if (const auto seen = m_monitor.compute(Rank{r}); seen && *seen > 0 && usual > 0)
      factors[r] = usual * impl::unusual_factor(*seen, usual, slow);
  const double usual_link = m_monitor.usual_transfer(), slow_link = m_monitor.transfer_threshold();
  for (std::size_t from = 0; from < ranks; ++from)
    for (std::size_t to = 0; to < ranks; ++to)
      if (const auto seen = m_monitor.transfer(Rank{from}, Rank{to}); seen && usual_link > 0)
        links[from * ranks + to] =
            std::max(1.0, impl::unusual_factor(*seen, usual_link, slow_link));
  const auto changed = [](const std::vector<double>& now, const std::vector<double>& before) {
    for (std::size_t i = 0; i < now.size(); ++i)
      if (std::abs(now[i] - before[i]) > new_search * before[i]) return true;
    return false;
  };
  if (!changed(factors, m_factors) && !changed(links, m_links)) return false;
  m_factors = std::move(factors);
  m_links = std::move(links);
  apply_factors();
  return true;
}

HEDDLE_INLINE void PlanChoice::apply_factors() {
  m_learned_profile = m_profile;
  m_learned_machine = m_machine;
  const auto ranks = static_cast<std::size_t>(m_machine.ranks());
  std::set<std::string> added;
  for (std::size_t r = 0; r < ranks; ++r) {
    const double factor = m_factors[r];
    if (factor == 1) continue;
    const Device base = m_machine.device(Rank{r});
    Device device = base;
    device.name = text(base.name, " * ", factor, " / ", base.speed);
    device.speed = 1;
    m_learned_machine.set_device(Rank{r}, device);
    if (added.insert(device.name).second)
      for (ProfiledLayer& layer : m_learned_profile.layers)
        impl::add_measurements(layer, base, m_profile.reference, factor, device.name);
  }
  for (std::size_t from = 0; from < ranks; ++from)
    for (std::size_t to = 0; to < ranks; ++to) {
      const double factor = m_links[from * ranks + to];
      if (factor == 1) continue;
      const Link& link = m_machine.link(Rank{from}, Rank{to});
      m_learned_machine.set_link(Rank{from}, Rank{to},
                                 {link.latency * factor, link.bandwidth / factor});
    }
}

HEDDLE_INLINE bool PlanChoice::choose(std::int64_t left) {
  m_before = m_plan;
  const auto cost = [&](const ConsideredPlan& each) {
    return static_cast<double>(left) * each.step + each.migration;
  };
  m_considered = {{m_plan, step_time(m_plan), 0}};
  std::size_t best = 0;
  for (const Plan& plan : candidates()) {
    if (plan == m_plan) continue;
    m_considered.push_back(
        {plan, step_time(plan),
         m_options.pause + simulate(migration_to(plan), {}, m_learned_machine).makespan()});
    if (cost(m_considered.back()) < cost(m_considered[best])) best = m_considered.size() - 1;
  }
  if (!(m_considered[0].step > (1 + m_options.gain) * m_considered[best].step)) return false;
  m_plan = m_considered[best].plan;
  m_plan.prediction = prediction_of(m_considered[best]);
  ++m_changes;
  return true;
}

HEDDLE_INLINE std::ostream& operator<<(std::ostream& out, const PlanChoice& choice) {
  for (std::size_t r = 0; r < choice.m_factors.size(); ++r)
    if (choice.m_factors[r] != 1)
      out << "rank " << r << " takes " << choice.m_factors[r] << " of the planned time; ";
  out << "a step takes " << choice.m_considered.front().step << " s";
  if (choice.m_plan == choice.m_before) return out << "; no other plan pays";
  for (const ConsideredPlan& each : choice.m_considered)
    if (each.plan == choice.m_plan)
      return out << ", by the new plan " << each.step << " s; the change takes " << each.migration
                 << " s";
  return out;
}

}  // namespace heddle::inline v0::plan
