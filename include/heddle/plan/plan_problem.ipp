// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of plan_problem.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/error.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/impl/cut_messages.hpp>
#include <heddle/plan/impl/option_checks.hpp>
#include <heddle/plan/impl/plan_orders.hpp>
#include <heddle/plan/impl/problem_sums.hpp>
#include <heddle/plan/impl/ring_exchange.hpp>
#include <heddle/plan/impl/stage_exchange.hpp>
#include <heddle/plan/impl/traffic_round.hpp>
#include <heddle/plan/internal/kept_by_stage.hpp>
#include <heddle/plan/internal/plan_bytes.hpp>
#include <heddle/plan/internal/step_in_periods.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/pass/gradient_sum.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/periodic.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0::plan {

namespace impl {

/// Returns the degrees that were measured for every device of a machine.
/// @throws contract_error if there are none.
[[nodiscard]] inline std::vector<int> common_degrees(const Profile& profile,
                                                     const Machine& machine) {
  std::vector<int> common;
  for (int r = 0; r < machine.ranks(); ++r) {
    const Device& device = machine.device(Rank{r});
    if (r > 0 && device.name == machine.device(Rank{r - 1}).name) continue;
    std::vector<int> degrees = profile.tensor_degrees(device);
    if (degrees.empty())
      for (int l = 0; l < static_cast<int>(profile.layers.size()); ++l)
        static_cast<void>(profile.times(l, device, 1, 1));  // throws: names what was measured
    if (r == 0)
      common = std::move(degrees);
    else
      std::erase_if(common, [&](int t) { return std::ranges::find(degrees, t) == degrees.end(); });
  }
  return common;
}

[[nodiscard]] inline WeightExchange weight_exchange(const Plan& plan, const PlanStage& stage,
                                                    const PlanProblem& problem) {
  return weight_exchange(plan, stage, problem.profile(), problem.machine(),
                         problem.options().activation);
}

/// The times of a stage: each of its slowest rank.
struct StageTimes {
  LayerTimes slowest;    ///< member by member
  Seconds backward = 0;  ///< of both halves, and of a second forward
};

[[nodiscard]] inline StageTimes stage_times(const Plan& plan, const PlanStage& stage,
                                            const WeightExchange& weights,
                                            const PlanProblem& problem) {
  StageTimes all;
  const std::size_t degree = stage.ranks.size() / stage.groups();
  const Device* before = nullptr;  // a rank like this, with so many samples, has been priced
  double samples_before = 0;
  for (std::size_t g = 0; g < stage.groups(); ++g) {
    const double samples = static_cast<double>(stage.samples[g]) / stage.sequence;
    const KeyExchange keys = key_exchange(plan, stage, g, problem.profile(), problem.machine());
    if (stage.sequence > 1 || samples != samples_before) before = nullptr;
    samples_before = samples;
    for (std::size_t i = g * degree; i < (g + 1) * degree; ++i) {
      const Device& device = problem.machine().device(stage.ranks[i]);
      if (before != nullptr && before->name == device.name && before->speed == device.speed)
        continue;
      before = &device;
      LayerTimes times = problem.profile().times(stage.layers, device, stage.tensor, samples);
      add_exchange(times, weights, keys);
      for (const auto time : {&LayerTimes::forward, &LayerTimes::backward_input,
                              &LayerTimes::backward_weight, &LayerTimes::update})
        all.slowest.*time = std::max(all.slowest.*time, times.*time);
      all.backward =
          std::max(all.backward, times.backward() + (stage.recompute ? times.forward : 0));
    }
  }
  return all;
}

/// The price of a bucket of a stage, without messages to other stages.
struct BucketPrice {
  StagePrice price;
  Seconds backward_weight = 0;  ///< the part of the backward that is for the weights
};

/// Returns the prices of the buckets of a stage, in the order of the layers.
[[nodiscard]] inline std::vector<BucketPrice> bucket_prices(const Plan& plan,
                                                            const PlanStage& stage,
                                                            const PlanProblem& problem) {
  std::vector<BucketPrice> prices;
  for (const PlanStage& bucket :
       schedule::in_buckets({.stages = {stage}, .buckets = plan.bucket_count()}).stages) {
    const WeightExchange weights = weight_exchange(plan, bucket, problem);
    const StageTimes times = stage_times(plan, bucket, weights, problem);
    prices.push_back({.price = {.forward = times.slowest.forward,
                                .backward = times.backward,
                                .update = times.slowest.update,
                                .gradient_sum = weights.step},
                      .backward_weight = times.slowest.backward_weight});
  }
  return prices;
}

/// Returns the seconds by which the sums and updates of a stage end behind its last pass, which is
/// a W if `split`, else a backward. See behind_backward().
[[nodiscard]] inline Seconds behind_passes(const std::vector<BucketPrice>& buckets, bool split) {
  Seconds computed = 0, summed = 0;  // since the last pass began
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    computed += split ? bucket->backward_weight : bucket->price.backward;
    summed = std::max(summed, computed) + bucket->price.gradient_sum + bucket->price.update;
  }
  return summed - computed;
}

/// The costs of a plan's schedule. Stage s of the plan is on rank s.
struct PlanCosts {
  using Time = Seconds;

  std::vector<StagePrice> prices;   ///< by stage of the Schedule
  std::vector<Seconds> weights;     ///< by stage: the part of the backward that is for the weights
  std::vector<StagePrice> of_rank;  ///< by stage of the plan, which is one rank; for messages

  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    const Action& action = schedule[id];
    const std::size_t s = +action.stage;
    switch (action.kind) {
      case Kind::forward: return prices[s].forward;
      case Kind::backward: return prices[s].backward;
      case Kind::backward_input: return prices[s].backward - weights[s];
      case Kind::backward_weight: return weights[s];
      case Kind::update: return prices[s].gradient_sum + prices[s].update;
      default: return 0;
    }
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    const Queue& queue = schedule[schedule[id].queue];
    const bool forward = +queue.from < +queue.to;
    return {forward ? of_rank[+queue.from].send_forward : of_rank[+queue.to].send_backward, 0};
  }
};

}  // namespace impl

HEDDLE_INLINE PlanProblem::PlanProblem(const Profile& profile, const Machine& machine,
                                       PlanOptions options)
    : m_profile(&profile), m_machine(&machine), m_options(std::move(options)) {
  check(profile);
  impl::check_options(m_options);
  const std::vector<int> degrees = impl::common_degrees(profile, machine);
  for (const int tensor : m_options.tensor_degrees)
    expects(std::ranges::find(degrees, tensor) != degrees.end(), [&] {
      std::string measured;
      for (const int degree : degrees) measured += text(measured.empty() ? "" : ", ", degree);
      return ErrorInfo{"heddle::plan::PlanProblem",
                       text("tensor degree ", tensor,
                            " was not measured for every layer on every device of the machine"),
                       text("all have ", measured.empty() ? "none" : measured),
                       "measure it, or leave it out"};
    });
  const bool attends = std::ranges::any_of(
      profile.layers, [](const ProfiledLayer& layer) { return layer.keys > 0; });
  for (const int sequence : m_options.sequence_degrees)
    expects(sequence == 1 || attends, [&] {
      return ErrorInfo{"heddle::plan::PlanProblem",
                       "ranks that divide sequences exchange the keys of attention, and no layer "
                       "of the profile has any",
                       text("sequence degree ", sequence),
                       "set ProfiledLayer::keys, or leave the degree out"};
    });
  if (m_options.microbatches.empty()) m_options.microbatches = impl::divisors(m_options.batch);
  if (m_options.tensor_degrees.empty()) m_options.tensor_degrees = degrees;
  impl::check_sums(*this);
}

HEDDLE_INLINE Seconds ring_all_reduce_time(const Machine& machine, std::span<const Rank> ranks,
                                           double bytes) {
  constexpr const char* where = "heddle::plan::ring_all_reduce_time";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    expects(+ranks[i] < static_cast<std::size_t>(machine.ranks()), [&] {
      return ErrorInfo{where, "the machine does not have a rank",
                       text("ranks[", i, "] is rank ", ranks[i], " of ", machine.ranks())};
    });
  expects(heddle::impl::is_time(bytes), [&] {
    return ErrorInfo{where, "a number of bytes must be finite and at least 0",
                     text("bytes = ", bytes)};
  });
  if (ranks.size() < 2) return 0;
  const impl::RingLink link = impl::ring_link(machine, ranks);
  const auto n = static_cast<double>(ranks.size());
  return 2 * (n - 1) / n * bytes / link.slowest() + 2 * (n - 1) * link.latency;
}

HEDDLE_INLINE std::vector<StagePrice> stage_prices(const Plan& plan, const PlanProblem& problem) {
  heddle::check(plan, problem.layers(), problem.machine().ranks());
  std::vector<StagePrice> prices;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    StagePrice& price = prices.emplace_back();
    for (const impl::BucketPrice& each : impl::bucket_prices(plan, plan.stages[s], problem)) {
      price.forward += each.price.forward;
      price.backward += each.price.backward;
      price.update += each.price.update;
      price.gradient_sum += each.price.gradient_sum;
    }
    if (s + 1 == plan.stages.size()) continue;
    impl::TrafficRound down(problem.machine()), up(problem.machine());
    impl::each_message(plan, s, problem.profile(), problem.options().activation,
                       [&](Rank from, Rank to, Bytes bytes) {
                         down.add(from, to, static_cast<double>(bytes));
                         up.add(to, from, static_cast<double>(bytes));
                       });
    price.send_forward = down.time();
    price.send_backward = up.time();
  }
  return prices;
}

HEDDLE_INLINE Seconds impl::step_in_periods(const Plan& plan, const PlanProblem& problem) {
  constexpr const char* where = "heddle::plan::simulated_step";
  const std::size_t stages = plan.stages.size();
  const auto orders_of = [&](int microbatches) {
    return line_orders(plan.schedule, stages, microbatches, where);
  };
  PlanCosts costs{.prices = {}, .weights = {}, .of_rank = stage_prices(plan, problem)};
  // With two microbatches for each stage, every rank ends as it does with more of them.
  const Orders few = orders_of(2 * static_cast<int>(stages));
  for (std::size_t s = 0; s < stages; ++s) {
    const std::vector<Order>& list = few.ranks[s];
    if (plan.bucket_count() > 1 &&
        std::ranges::any_of(list, [](const Order& order) { return order.kind == Kind::update; }))
      throw infeasible({where, "updates of buckets have no steady period if they are among passes",
                        text("'", few.name, "' with ", plan.bucket_count(), " buckets"),
                        "use one bucket, or fewer microbatches"});
    // The passes of the buckets of a stage follow one another like those of one stage. Behind the
    // last pass are the sums and updates that no pass hides.
    const std::vector<BucketPrice> buckets = bucket_prices(plan, plan.stages[s], problem);
    StagePrice& whole = costs.prices.emplace_back();
    Seconds& weights = costs.weights.emplace_back();
    for (const BucketPrice& bucket : buckets) {
      whole.forward += bucket.price.forward;
      whole.backward += bucket.price.backward;
      weights += bucket.backward_weight;
    }
    whole.gradient_sum = buckets.size() == 1
                             ? buckets[0].price.gradient_sum + buckets[0].price.update
                             : behind_passes(buckets, list.back().kind == Kind::backward_weight);
  }
  return simulate_periodic(orders_of, plan.microbatches, costs).makespan;
}

HEDDLE_INLINE Seconds simulated_step(const Plan& plan, const PlanProblem& problem) {
  const std::int64_t passes = impl::passes(plan.stages.size(), plan.microbatches);
  if (passes > impl::most_listed) try {
      return impl::step_in_periods(plan, problem);
    } catch (const infeasible&) {
      if (passes > impl::most_listed_without_period) throw;
    }
  return simulated_timeline(plan, problem).makespan();
}

HEDDLE_INLINE Timeline simulated_timeline(const Plan& plan, const PlanProblem& problem) {
  impl::PlanCosts costs{.prices = {}, .weights = {}, .of_rank = stage_prices(plan, problem)};
  for (const PlanStage& stage : plan.stages)
    for (const impl::BucketPrice& bucket : impl::bucket_prices(plan, stage, problem)) {
      costs.prices.push_back(bucket.price);
      costs.weights.push_back(bucket.backward_weight);
    }
  const Schedule woven = weave(impl::bucket_orders(plan, "heddle::plan::simulated_step"));
  return simulate(plan.bucket_count() > 1 ? schedule::eager_updates(woven) : woven, costs);
}

HEDDLE_INLINE Seconds behind_backward(const Plan& plan, const PlanStage& stage,
                                      const PlanProblem& problem) {
  return impl::behind_passes(impl::bucket_prices(plan, stage, problem), false);
}

HEDDLE_INLINE std::vector<Bytes> plan_memory(const Plan& plan, const PlanProblem& problem) {
  return impl::PlanBytes(problem).memory(plan);
}

HEDDLE_INLINE PlanPrediction predict(const Plan& plan, const PlanProblem& problem) {
  return {simulated_step(plan, problem), plan_memory(plan, problem)};
}

HEDDLE_INLINE std::optional<MemoryShortage> memory_shortage(const Plan& plan,
                                                            const PlanProblem& problem) {
  return impl::PlanBytes(problem).shortage(plan);
}

}  // namespace heddle::inline v0::plan
