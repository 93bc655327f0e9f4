// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/text.hpp>
#include <heddle/schedule/fold.hpp>
#include <heddle/schedule/generator/theory.hpp>
#include <heddle/schedule/live_intervals.hpp>
#include <heddle/schedule/order/weave.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/simulate.hpp>

#include "pricing.hpp"

namespace tool {

using namespace heddle;

namespace {

class CostsOfStages {
 public:
  using Time = Seconds;

  /// A stage has `share` of what a rank has.
  CostsOfStages(const Prices& s, int stages, double share)
      : m_pair(s.equal_stages() ? s.forward_backward * share : s.forward_backward) {
    for (int stage = 0; stage < stages; ++stage) {
      const auto of_stage = [&](const std::vector<double>& times) {
        return times.size() == 1 ? times[0] * share : times[static_cast<std::size_t>(stage)];
      };
      m_stages.push_back({.forward = of_stage(s.forward),
                          .backward_input = of_stage(s.backward_input),
                          .backward_weight = of_stage(s.backward_weight),
                          .latency = s.latency,
                          .per_byte = s.bandwidth > 0 ? 1 / s.bandwidth : 0});
      if (const double whole = of_stage(s.backward); whole > 0) m_stages.back().backward = whole;
    }
  }

  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const {
    return m_stages[+schedule[id].stage].time(schedule, id);
  }
  [[nodiscard]] Seconds fused(const Schedule& schedule, ActionId id) const {
    const ActionId next{+id + 1};
    const bool pair = std::minmax({schedule[id].kind, schedule[next].kind}) ==
                      std::pair(Kind::forward, Kind::backward);
    return pair && m_pair > 0 ? m_pair : time(schedule, id) + time(schedule, next);
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const {
    return m_stages[0].transfer(schedule, id);
  }

 private:
  std::vector<StageCosts> m_stages;
  double m_pair;  ///< time of a fused forward and backward; 0: as long as both
};

StageSizes sizes_of(const Prices& s, double share) {
  return {.activation = s.activation,
          .saved = static_cast<Bytes>(static_cast<double>(s.saved) * share),
          .parameters = static_cast<Bytes>(static_cast<double>(s.parameters) * share)};
}

}  // namespace

Orders fewest_orders(const schedule::NamedSchedule& entry, schedule::PipelineShape shape) {
  // Microbatches come in multiples of the ranks, of twice as many, or of a group.
  const auto most = std::min<std::int64_t>(
      shape.microbatches, 4 * std::int64_t{shape.ranks} + 2 * std::int64_t{shape.group} + 16);
  for (shape.microbatches = 1;; ++shape.microbatches) try {
      return entry.orders(shape);
    } catch (const infeasible&) {
      if (shape.microbatches >= most) throw;
    }
}

Size size_of(const schedule::NamedSchedule& entry, const schedule::PipelineShape& shape) {
  // A rank has as many entries of a microbatch in every schedule of these options.
  const auto few = [](int number, int most) { return std::clamp(number, 1, most); };
  schedule::PipelineShape small;
  small.stages_per_rank = few(shape.stages_per_rank, 4);
  small.pairs = few(shape.pairs, 2);
  small.ranks = 4 * small.pairs;
  small.microbatches = 4 * small.ranks;
  double each = 0;
  for (const auto& list : entry.orders(small).ranks)
    for (const Order& order : list)
      each += order.kind == Kind::backward_weight || order.kind == Kind::update ? 1 : 2;
  each /= static_cast<double>(small.ranks) * small.microbatches;
  if (entry.uses(schedule::ShapeOption::stages_per_rank))
    each *= static_cast<double>(std::max(shape.stages_per_rank, 1)) / small.stages_per_rank;
  const double actions =
      each * std::max(shape.ranks, 0) * static_cast<double>(std::max(shape.microbatches, 0));
  constexpr double bytes_of_action = 200;  // benchmarks/simulate/linear.cpp measures it
  return {actions, bytes_of_action * actions};
}

std::optional<double> closed_form(const schedule::NamedSchedule& entry,
                                  const schedule::PipelineShape& shape, const Prices& prices) {
  if (!prices.equal_stages()) return {};
  const double forward = prices.forward[0], input = prices.backward_input[0],
               weight = prices.backward_weight[0];
  // The closed forms are those of whole backwards and pairs without any gain.
  const double whole = prices.backward[0], pair = prices.forward_backward;
  if ((whole != 0 && whole != input + weight) || (pair != 0 && pair != forward + input + weight))
    return {};
  return schedule::bubble_ratio(entry, shape, forward, input, weight);
}

int stage_count(const Orders& orders) {
  int stages = 0;
  for (const auto& list : orders.ranks)
    for (const Order& order : list) stages = std::max(stages, static_cast<int>(+order.stage) + 1);
  return stages;
}

bool has_pairs(const Orders& orders) {
  return std::ranges::any_of(
      orders.ranks, [](const auto& list) { return std::ranges::count(list, true, &Order::fused); });
}

std::optional<ErrorInfo> fault_of(const Prices& s) {
  for (const auto& times : {s.forward,
                            s.backward_input,
                            s.backward_weight,
                            s.backward,
                            {s.forward_backward, s.latency, s.bandwidth}})
    for (const double time : times)
      if (!std::isfinite(time) || time < 0)
        return ErrorInfo{
            "", text("times and bandwidths are numbers of at least 0 (one is ", time, ")")};
  if (s.bandwidth > 0 && s.activation == 0)
    return ErrorInfo{"", "--bandwidth is for the bytes that stages hand on", "",
                     "say them with --activation"};
  if (s.depth < -1)
    return ErrorInfo{"", "a depth is a number of results", "", "0 is a blocking send, -1 no bound"};
  return {};
}

std::optional<ErrorInfo> fault_of(const Prices& s, const Orders& orders,
                                  const std::string& dashes) {
  const auto stages = static_cast<std::size_t>(stage_count(orders));
  for (const auto& [name, times] : {std::pair{"F", &s.forward},
                                    {"I", &s.backward_input},
                                    {"W", &s.backward_weight},
                                    {"B", &s.backward}})
    if (times->size() != 1 && times->size() != stages)
      return ErrorInfo{"", text(dashes, name, " takes one time, or one for each stage (",
                                times->size(), " times for ", stages, " stages)")};
  return {};
}

Priced priced_timeline(Orders orders, Schedule schedule, Timeline timeline) {
  Priced all{std::move(orders), std::move(schedule), std::move(timeline)};
  for (const Action& action : all.schedule.actions())
    all.stages = std::max(all.stages, static_cast<int>(+action.stage) + 1);
  const double share = static_cast<double>(all.orders.ranks.size()) / all.stages;
  std::vector<std::vector<LiveInterval<Seconds>>> lives(all.orders.ranks.size());
  for (const auto& life : schedule::live_intervals(all.timeline, [&](const Buffer& buffer) {
         return all.schedule[buffer.label] == role::saved;
       }))
    lives[+all.schedule[life.buffer].rank].push_back(life);
  for (const auto& of_rank : lives) {
    all.live.push_back(schedule::memory_curve(all.schedule, of_rank));
    all.activations.push_back(share * static_cast<double>(schedule::peak(all.live.back()).parts));
  }
  for (const Action& action : all.schedule.actions())
    all.messages += action.kind == Kind::move && !all.schedule[action.queue].local();
  return all;
}

Priced price(Orders orders, const Prices& s) {
  const int stages = stage_count(orders);
  const double share = static_cast<double>(orders.ranks.size()) / stages;
  Schedule schedule = weave(orders, sizes_of(s, share));
  if (s.depth >= 0) schedule = schedule::fold(schedule, static_cast<std::uint32_t>(s.depth));
  Timeline timeline = simulate(schedule, CostsOfStages(s, stages, share));
  return priced_timeline(std::move(orders), std::move(schedule), std::move(timeline));
}

PeriodicPrice price_periodic(const schedule::NamedSchedule& entry,
                             const schedule::PipelineShape& shape, const Prices& s) {
  const Orders fewest = fewest_orders(entry, shape);
  const int stages = stage_count(fewest);
  const double share = static_cast<double>(fewest.ranks.size()) / stages;
  schedule::PipelineShape asked = shape;
  PeriodicPrice price{simulate_periodic(
                          [&](int microbatches) {
                            asked.microbatches = microbatches;
                            return entry.orders(asked);
                          },
                          shape.microbatches, CostsOfStages(s, stages, share), sizes_of(s, share)),
                      {}};
  for (const std::int64_t live : price.step.live)
    price.activations.push_back(share * static_cast<double>(live));
  return price;
}

Bytes most_bytes(const Timeline& timeline) {
  Bytes most = 0;
  for (const auto& use : schedule::memory_use(timeline))
    most = std::max(most, schedule::peak(use.all).bytes);
  return most;
}

std::string number(double value) {
  if (std::abs(value) >= 1e12) return text(value);
  std::array<char, 32> digits;
  const int length =
      std::snprintf(digits.data(), digits.size(), "%.3f", std::round(1000 * value) / 1000);
  std::string_view shown(digits.data(), static_cast<std::size_t>(length));
  shown = shown.substr(0, shown.find_last_not_of('0') + 1);
  return std::string(shown.ends_with('.') ? shown.substr(0, shown.size() - 1) : shown);
}

std::string percent(double share) { return text(std::round(1000 * share) / 10, "%"); }

std::string of_ranks(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (values.size() > 8) return text(number(*least), " to ", number(*most));
  std::string all;
  for (const double value : values) all += (all.empty() ? "" : " ") + number(value);
  return all;
}

}  // namespace tool
