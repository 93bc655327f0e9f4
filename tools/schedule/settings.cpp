// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

#include "settings.hpp"

namespace tool {

using namespace heddle;

namespace {

/// Costs of every stage, and of transfers those of the first.
class CostsOfStages {
 public:
  using Time = Seconds;

  /// A stage has `share` of what a rank has.
  CostsOfStages(const Settings& s, int stages, double share)
      : m_pair(std::max({s.forward.size(), s.backward_input.size(), s.backward_weight.size()}) == 1
                   ? s.forward_backward * share
                   : s.forward_backward) {
    for (int stage = 0; stage < stages; ++stage) {
      const auto of_stage = [&](const std::vector<double>& times) {
        return times.size() == 1 ? times[0] * share : times[static_cast<std::size_t>(stage)];
      };
      m_stages.push_back({.forward = of_stage(s.forward),
                          .backward_input = of_stage(s.backward_input),
                          .backward_weight = of_stage(s.backward_weight),
                          .latency = s.latency,
                          .per_byte = s.bandwidth > 0 ? 1 / s.bandwidth : 0});
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

}  // namespace

void add_shape(CommandLine& command, Settings& s) {
  command.add_option("ranks", &s.shape.ranks, "of the pipeline");
  command.add_option("microbatches", &s.shape.microbatches, "in a step");
  command.add_option("stages-per-rank", &s.shape.stages_per_rank, "if the schedule leaves it open");
  command.add_option("group", &s.shape.group, "microbatches of a group, of kfkb");
  command.add_option("pairs", &s.shape.pairs, "pipelines in each direction, of chimera");
  command.add_option("most-live", &s.shape.most_live,
                     "microbatches that fit a rank, of dapple; 0: all");
}

void add_prices(CommandLine& command, Settings& s) {
  command.set_note([] {
    return std::string(
          "Times and sizes are those of one microbatch for the share of the model that a rank has "
      "when\n"
      "each has one. Times have no unit. Several, --F 1,2,1, are those of the stages as they are.");
  });
  command.add_option("F", &s.forward, "time of a forward");
  command.add_option("I", &s.backward_input, "time of a backward for the input");
  command.add_option("W", &s.backward_weight,
                     "time of a backward for the weights; a whole backward takes I + W");
  command.add_option("FB", &s.forward_backward, "time of a fused pair; 0: as long as both");
  command.add_option("latency", &s.latency, "of every transfer");
  command.add_option("bandwidth", &s.bandwidth,
                     "bytes of --activation per unit of time, 0: any number");
  command.add_option("depth", &s.depth,
                     "results that wait to be sent while a stage goes on, -1: all");
  command.add_option("activation", &s.activation, "bytes that a stage hands on");
  command.add_option("saved", &s.saved, "bytes kept from forward to backward");
  command.add_option("parameters", &s.parameters, "bytes of weights; of their gradients, too");
}

void add_pictures(CommandLine& command, Settings& s) {
  command.add_option("columns", &s.columns, "width of the drawing in the terminal");
  command.add_option("svg", &s.svg, "a file for the picture");
  command.add_option("perfetto", &s.perfetto, "a file for ui.perfetto.dev");
  command.add_option("dot", &s.dot, "a file for Graphviz");
  command.add_option("csv", &s.csv,
                     "a file for torch.distributed.pipelining; schedule --help says what that "
                     "cannot run");
  command.add_flag("transfers", s.transfers,
                   "the csv file has sends, receives, UNSHARD, RESHARD and REDUCE_GRAD, too");
}

void add_dialect(CommandLine& command, Settings& s) {
  command.add_flag("old-dialect", s.old_dialect, "B is for the input and BW the whole backward");
  command.add_flag("replicas", s.replicas, "a stage may be on several ranks");
  command.add_option("branches", &s.branches,
                     "of as many stages as ranks, with a loss that they share");
  command.add_flag("vertical-sync", s.vertical_sync, "all stages use the first one's version");
}

void check_values(const CommandLine& command, const Settings& s) {
  for (const auto& times : {s.forward,
                            s.backward_input,
                            s.backward_weight,
                            {s.forward_backward, s.latency, s.bandwidth}})
    for (const double time : times)
      if (!std::isfinite(time) || time < 0)
        throw command.error(
            text("times and bandwidths are numbers of at least 0 (one is ", time, ")"));
  if (s.bandwidth > 0 && s.activation == 0)
    throw command.error("--bandwidth is for the bytes that stages hand on",
                        "say them with --activation");
  if (s.depth < -1)
    throw command.error("a depth is a number of results", "0 is a blocking send, -1 no bound");
  if (s.columns < 1) throw command.error("a drawing needs at least one column");
  if (s.transfers && s.csv.empty())
    throw command.error("--transfers says what a csv file holds", "name one with --csv");
}

std::vector<Orders> named_orders(const CommandLine& command, const Settings& s) {
  using schedule::ShapeOption;
  std::vector<const schedule::NamedSchedule*> entries;
  for (const std::string& name : s.names) {
    try {
      entries.push_back(&schedule::find_schedule(name));
    } catch (const contract_error& unknown) {
      throw command.error(unknown.complaint().what, unknown.complaint().fix);
    }
  }
  for (const auto& [option, heeds] : {std::pair{"stages-per-rank", ShapeOption::stages_per_rank},
                                      {"group", ShapeOption::group},
                                      {"pairs", ShapeOption::pairs},
                                      {"most-live", ShapeOption::most_live}})
    if (command.given(option) &&
        std::ranges::find(entries, heeds, &schedule::NamedSchedule::heeds) == entries.end()) {
      std::string others;
      for (const auto& entry : schedule::catalogue())
        if (entry.heeds == heeds) others += text(others.empty() ? "" : ", ", entry.name);
      throw command.error(text("--", option, " means nothing to this schedule"),
                          "it is for " + others);
    }
  std::vector<Orders> all;
  for (const auto* entry : entries) all.push_back(entry->orders(s.shape));
  check_prices(command, s, all);
  return all;
}

void check_prices(const CommandLine& command, const Settings& s, const std::vector<Orders>& all) {
  if (command.given("FB") && std::ranges::none_of(all, has_pairs))
    throw command.error("--FB is the time of a fused pair, and there is none", "leave it out");
  for (const Orders& orders : all) {
    const auto stages = static_cast<std::size_t>(stage_count(orders));
    for (const auto& [name, times] :
         {std::pair{"F", &s.forward}, {"I", &s.backward_input}, {"W", &s.backward_weight}})
      if (times->size() != 1 && times->size() != stages)
        throw command.error(text("--", name, " takes one time, or one for each stage (",
                                 times->size(), " times for ", stages, " stages)"));
  }
}

Priced price(Orders orders, const Settings& s) {
  Priced priced{std::move(orders), {}, {}};
  priced.stages = stage_count(priced.orders);
  const double ranks = static_cast<double>(priced.orders.ranks.size());
  const double share = ranks / priced.stages;
  const CostsOfStages costs(s, priced.stages, share);
  priced.schedule = weave(
      priced.orders, {.activation = s.activation,
                      .saved = static_cast<Bytes>(static_cast<double>(s.saved) * share),
                      .parameters = static_cast<Bytes>(static_cast<double>(s.parameters) * share)});
  if (s.depth >= 0)
    priced.schedule = fold_to_min_slots(priced.schedule, static_cast<std::uint32_t>(s.depth));
  priced.timeline = simulate(priced.schedule, costs);
  for (int rank = 0; rank < priced.schedule.ranks(); ++rank)
    priced.activations.push_back(
        share * static_cast<double>(peak_parts(priced.timeline, Rank{rank}, role::saved)));
  for (const Action& action : priced.schedule.actions())
    priced.messages += action.kind == Kind::move && !priced.schedule[action.queue].local();
  return priced;
}

std::string number(double value) { return text(std::round(1000 * value) / 1000); }

std::string percent(double share) { return text(std::round(1000 * share) / 10, "%"); }

std::string of_ranks(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (values.size() > 8) return text(number(*least), " to ", number(*most));
  std::string all;
  for (const double value : values) all += (all.empty() ? "" : " ") + number(value);
  return all;
}

}  // namespace tool
