// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of plan_problem.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/codec.hpp>
#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/enumerator.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/impl/cut_messages.hpp>
#include <heddle/plan/impl/plan_orders.hpp>
#include <heddle/plan/impl/problem_sums.hpp>
#include <heddle/plan/impl/ring_exchange.hpp>
#include <heddle/plan/impl/stage_exchange.hpp>
#include <heddle/plan/impl/traffic_round.hpp>
#include <heddle/plan/internal/stage_memory.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/plan/profile.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/generator/catalogue.hpp>
#include <heddle/schedule/internal/is_time.hpp>
#include <heddle/schedule/order/live_activations.hpp>
#include <heddle/schedule/order/orders.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/schedule/pass/gradient_sum.hpp>
#include <heddle/schedule/plan.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>

namespace heddle::inline v0::plan {

namespace impl {

inline void check_options(const PlanOptions& options) {
  constexpr const char* where = "heddle::plan::PlanProblem";
  expects(options.batch >= 1, [&] {
    return ErrorInfo{where, "a batch has at least one sample", text("batch = ", options.batch)};
  });
  for (const int microbatches : options.microbatches)
    expects(microbatches >= 1 && options.batch % microbatches == 0, [&] {
      return ErrorInfo{where, "the microbatches must divide the batch equally",
                       text("microbatches = ", microbatches, ", batch = ", options.batch),
                       "use divisors of the batch"};
    });
  for (const int tensor : options.tensor_degrees)
    expects(tensor >= 1, [&] {
      return ErrorInfo{where, "a tensor degree is at least 1", text("tensor degree ", tensor)};
    });
  for (const int sequence : options.sequence_degrees)
    expects(sequence >= 1, [&] {
      return ErrorInfo{where, "a sequence degree is at least 1", text("degree ", sequence)};
    });
  expects(options.state_per_parameter >= 0 && std::isfinite(options.state_per_parameter), [&] {
    return ErrorInfo{where, "the state of a parameter is finite and at least 0",
                     text("state_per_parameter = ", options.state_per_parameter),
                     "use 4 for Adam in one precision"};
  });
  for (const auto& codec : options.codecs)
    if (codec) heddle::check(*codec);
  static_cast<void>(schedule::find_schedule(options.schedule));
  heddle::impl::expect_enumerator(where, "PlanOptions::attention", options.attention,
                                  SequenceMethod::automatic);
  heddle::impl::expect_enumerator(where, "PlanOptions::activation", options.activation, Scalar::i8);
}

/// Returns the divisors of the batch, in ascending order.
[[nodiscard]] inline std::vector<int> divisors(std::int64_t batch) {
  std::vector<int> all;
  const std::int64_t most = std::min<std::int64_t>(batch, std::numeric_limits<int>::max());
  for (std::int64_t d = 1; d <= most && d * d <= batch; ++d) {
    if (batch % d != 0) continue;
    all.push_back(static_cast<int>(d));
    if (const std::int64_t other = batch / d; other != d && other <= most)
      all.push_back(static_cast<int>(other));
  }
  std::ranges::sort(all);
  return all;
}

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
  for (std::size_t g = 0; g < stage.groups(); ++g) {
    const double samples = static_cast<double>(stage.samples[g]) / stage.sequence;
    const KeyExchange keys = key_exchange(plan, stage, g, problem.profile(), problem.machine());
    const Device* before = nullptr;
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
       in_buckets({.stages = {stage}, .buckets = plan.bucket_count()}).stages) {
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

/// Returns the bytes of the buffer through which a ring sums the gradients of a bucket. With a
/// sharding the ranks sum without a buffer of the schedule, but for zero1 in several buckets, which
/// shard_updates() divides.
[[nodiscard]] inline double sum_bytes(const Plan& plan, const PlanStage& stage,
                                      const PlanProblem& problem) {
  const std::size_t sharers = stage.ranks.size() / static_cast<std::size_t>(stage.tensor);
  if (!plan.sharding.empty()) {
    if (zero_stage(plan.sharding) != 1 || plan.bucket_count() == 1 || sharers == 1) return 0;
    const Bytes element = size_of(problem.options().activation),
                parts = static_cast<Bytes>(sharers);
    const Bytes gradients = problem.profile().parameters(stage.layers, stage.tensor);
    const Bytes block = (gradients / element + parts - 1) / parts;  // of every other rank
    return static_cast<double>((parts - 1) * block * element);
  }
  return ring_bytes(problem.profile().parameters(stage.layers, stage.tensor), sharers,
                    size_of(problem.options().activation));
}

/// Returns bytes rounded up.
[[nodiscard]] inline Bytes whole_bytes(double bytes) {
  return static_cast<Bytes>(std::ceil(std::min(bytes, 0x1p63)));
}

}  // namespace impl

HEDDLE_INLINE PlanProblem::PlanProblem(const Profile& profile, const Machine& machine,
                                       PlanOptions options)
    : m_profile(&profile), m_machine(&machine), m_options(std::move(options)) {
  heddle::check(profile);
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

HEDDLE_INLINE Seconds simulated_step(const Plan& plan, const PlanProblem& problem) {
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
  return simulate(plan.bucket_count() > 1 ? eager_updates(woven) : woven, costs);
}

HEDDLE_INLINE Seconds behind_backward(const Plan& plan, const PlanStage& stage,
                                      const PlanProblem& problem) {
  Seconds computed = 0, summed = 0;  // since the last backward began
  const std::vector<impl::BucketPrice> buckets = impl::bucket_prices(plan, stage, problem);
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    computed += bucket->price.backward;
    summed = std::max(summed, computed) + bucket->price.gradient_sum + bucket->price.update;
  }
  return summed - computed;
}

HEDDLE_INLINE std::vector<Bytes> plan_memory(const Plan& plan, const PlanProblem& problem) {
  heddle::check(plan, problem.layers(), problem.machine().ranks());
  const Orders orders = impl::plan_orders(plan, "heddle::plan::simulated_step");
  const std::vector<std::int64_t> live = live_activations(orders);
  const Profile& profile = problem.profile();
  const bool casts = impl::any_cast(plan.casts) || impl::any_cast(problem.options().codecs);
  std::vector<Bytes> memory(static_cast<std::size_t>(problem.machine().ranks()));
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const PlanStage& stage = plan.stages[s];
    const impl::KeptState state =
        impl::state_of(plan, stage, problem.options().state_per_parameter);
    const auto weights = [&](LayerRange layers) {
      return static_cast<double>(profile.parameters(layers, stage.tensor));
    };
    impl::SampleBytes each{
        .saved = static_cast<double>(profile.saved(stage.layers, stage.tensor)),
        .input = profile.input_of(stage.layers.first),
        .output = profile.layers[static_cast<std::size_t>(stage.layers.last) - 1].output};
    for (int l = stage.layers.first; l < stage.layers.last; ++l) {
      const Bytes bytes = profile.layers[static_cast<std::size_t>(l)].delta;
      each.delta += std::ceil(static_cast<double>(bytes) / stage.tensor);
    }
    const bool first = s == 0, last = s + 1 == plan.stages.size();
    const impl::KeptMicrobatches most{
        .live = live[s],
        .split = impl::most_split(orders.ranks[s]),
        .inputs = impl::arrived_inputs(first ? 0 : live[s - 1], live[s])};
    double kept = impl::kept_bytes(each, most,
                                   impl::message_slots(most, plan.microbatches, first, last, casts),
                                   stage.tensor, first, stage.recompute);
    double sum = 0, largest = 0;
    for (const PlanStage& bucket :
         in_buckets({.stages = {stage}, .buckets = plan.bucket_count()}).stages) {
      sum += impl::sum_bytes(plan, bucket, problem);
      largest = std::max(largest, weights(bucket.layers));
      // The next bucket reads this one's output until its backward, and returns its gradient.
      if (bucket.layers.last < stage.layers.last)
        kept += static_cast<double>(most.live + most.split + 1) *
                static_cast<double>(profile.input_of(bucket.layers.last)) / stage.tensor;
    }
    const double whole = state.own * weights(stage.layers) + state.room * largest + sum;
    const std::size_t degree = stage.ranks.size() / stage.groups();
    for (std::size_t i = 0; i < stage.ranks.size(); ++i) {
      const double samples = static_cast<double>(stage.samples[i / degree]) / stage.sequence;
      memory[+stage.ranks[i]] = impl::whole_bytes(whole + kept * samples);
    }
  }
  return memory;
}

HEDDLE_INLINE PlanPrediction predict(const Plan& plan, const PlanProblem& problem) {
  return {simulated_step(plan, problem), plan_memory(plan, problem)};
}

HEDDLE_INLINE std::optional<MemoryShortage> memory_shortage(const Plan& plan,
                                                            const PlanProblem& problem) {
  const std::vector<Bytes> memory = plan_memory(plan, problem);
  std::optional<MemoryShortage> worst;
  for (std::size_t r = 0; r < memory.size(); ++r) {
    const std::vector<Memory>& memories = problem.machine().device(Rank{r}).memories;
    const Bytes capacity = memories.empty() ? 0 : memories.front().capacity;
    if (capacity == 0 || memory[r] <= capacity) continue;
    if (!worst || memory[r] - capacity > worst->needed - worst->capacity)
      worst = MemoryShortage{Rank{r}, memory[r], capacity};
  }
  return worst;
}

}  // namespace heddle::inline v0::plan
