// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

#include "options.hpp"
#include "settings.hpp"

namespace tool {

using namespace heddle;

namespace {

examples::Options options(const Command& command, Settings& s) {
  examples::Options options(text("Options of ", command.name,
                                 command.prices
                                     ? ". Times and sizes are those of one microbatch for the "
                                       "share\nof the model that a rank has when each has one."
                                     : ": none"));
  if (command.shapes) {
    options.add("ranks", s.shape.ranks, "of the pipeline");
    options.add("microbatches", s.shape.microbatches, "in a step");
    options.add("stages-per-rank", s.shape.stages_per_rank, "where the schedule leaves it open");
    options.add("group", s.shape.group, "microbatches of a group, of kfkb");
    options.add("pairs", s.shape.pairs, "pipelines in each direction, of chimera");
    options.add("most-live", s.shape.most_live, "microbatches that fit a rank, of dapple; 0: all");
  }
  if (command.prices) {
    options.add("F", s.forward, "time of a forward; several, 1,2,1: of each stage as it is");
    options.add("I", s.backward_input, "time of a backward for the input, likewise");
    options.add("W", s.backward_weight,
                "of a backward for the weights, likewise; a whole one takes I + W");
    options.add(
        "FB", s.forward_backward,
        "time of a fused pair, as it is where there are several of these; 0: as long as both");
    options.add("latency", s.latency, "of every transfer");
    options.add("bandwidth", s.bandwidth, "bytes of --activation per unit of time, 0: any number");
    options.add("depth", s.depth, "results that wait to be sent while a stage goes on, -1: all");
    options.add("activation", s.activation, "bytes that a stage hands on");
    options.add("saved", s.saved, "bytes kept from forward to backward");
    options.add("parameters", s.parameters, "bytes of weights; of their gradients, too");
  }
  if (command.writes) {
    options.add("svg", s.svg, "a file for the picture");
    options.add("perfetto", s.perfetto, "a file for ui.perfetto.dev");
    options.add("dot", s.dot, "a file for Graphviz");
    options.add(
        "csv", s.csv,
        "a file for torch.distributed.pipelining; schedule --help says what that cannot run");
    options.flag("transfers", s.transfers,
                 "the csv file has sends, receives, UNSHARD, RESHARD and REDUCE_GRAD, too");
  }
  if (command.reads) {
    options.flag("old-dialect", s.old_dialect, "B is for the input and BW the whole backward");
    options.flag("replicas", s.replicas, "a stage may be on several ranks");
    options.add("branches", s.branches, "of as many stages as ranks, with a loss that they share");
    options.flag("vertical-sync", s.vertical_sync, "all stages use the first one's version");
  }
  return options;
}

/// Costs of every stage, and of transfers those of the first.
class CostsOfStages {
 public:
  using Time = Seconds;

  /// @throws contract_error as price() does. A stage has `share` of what a rank has.
  CostsOfStages(const Settings& s, int stages, double share)
      : m_pair(std::max({s.forward.size(), s.backward_input.size(), s.backward_weight.size()}) == 1
                   ? s.forward_backward * share
                   : s.forward_backward) {
    for (int stage = 0; stage < stages; ++stage) {
      const auto of_stage = [&](const char* name, const std::vector<double>& times) {
        if (times.size() == 1) return times[0] * share;
        expects(times.size() == static_cast<std::size_t>(stages), [&] {
          return Complaint{"command line",
                           text("--", name, " takes one time, or one for each stage"),
                           text(times.size(), " times for ", stages, " stages")};
        });
        return times[static_cast<std::size_t>(stage)];
      };
      m_stages.push_back({.forward = of_stage("F", s.forward),
                          .backward_input = of_stage("I", s.backward_input),
                          .backward_weight = of_stage("W", s.backward_weight),
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

bool has_pairs(const Orders& orders) {
  return std::ranges::any_of(
      orders.ranks, [](const auto& list) { return std::ranges::count(list, true, &Order::fused); });
}

[[noreturn]] void refuse(std::string what, std::string fix) {
  throw contract_error({"command line", std::move(what), {}, std::move(fix)});
}

bool given(const Arguments& arguments, std::string_view option) {
  return std::ranges::find(arguments.given, option) != arguments.given.end();
}

}  // namespace

Arguments read(std::span<char*> arguments, const Command& command) {
  Arguments result;
  std::size_t names = 0;
  while (names < arguments.size() && !std::string_view(arguments[names]).starts_with("--"))
    result.names.emplace_back(arguments[names++]);
  // Where a program's name would be, Options begins to read behind.
  std::vector<char*> rest(arguments.begin() + static_cast<std::ptrdiff_t>(names), arguments.end());
  rest.insert(rest.begin(), nullptr);
  examples::Options known = options(command, result.settings);
  if (!known.parse(static_cast<int>(rest.size()), rest.data())) {
    std::cout << known.help();
    result.help = true;
    return result;
  }
  result.given = known.given();
  if (names < command.least || names > command.most)
    throw contract_error({"command line", text("this command takes ", command.what),
                          text(names, names == 1 ? " name" : " names"), "try schedule --help"});
  const Settings& s = result.settings;
  for (const auto& times : {s.forward,
                            s.backward_input,
                            s.backward_weight,
                            {s.forward_backward, s.latency, s.bandwidth}})
    for (const double time : times)
      expects(std::isfinite(time) && time >= 0, [&] {
        return Complaint{"command line", "times and bandwidths are numbers of at least 0",
                         text("one is ", time)};
      });
  if (s.bandwidth > 0 && s.activation == 0)
    refuse("--bandwidth is for the bytes that stages hand on", "say them with --activation");
  if (s.depth < -1) refuse("a depth is a number of results", "0 is a blocking send, -1 no bound");
  if (s.transfers && s.csv.empty())
    refuse("--transfers says what a csv file holds", "name one with --csv");
  return result;
}

std::vector<Orders> named_orders(const Arguments& arguments) {
  using schedule::ShapeOption;
  std::vector<Orders> all;
  std::vector<ShapeOption> heeded;
  for (const std::string& name : arguments.names) {
    const auto& entry = schedule::find_schedule(name);
    heeded.push_back(entry.heeds);
    all.push_back(entry.orders(arguments.settings.shape));
  }
  for (const auto& [option, heeds] : {std::pair{"stages-per-rank", ShapeOption::stages_per_rank},
                                      {"group", ShapeOption::group},
                                      {"pairs", ShapeOption::pairs},
                                      {"most-live", ShapeOption::most_live}})
    if (given(arguments, option) && std::ranges::find(heeded, heeds) == heeded.end()) {
      std::string others;
      for (const auto& entry : schedule::catalogue())
        if (entry.heeds == heeds) others += text(others.empty() ? "" : ", ", entry.name);
      refuse(text("--", option, " means nothing to this schedule"), "it is for " + others);
    }
  refuse_price_of_no_pair(arguments, all);
  return all;
}

void refuse_price_of_no_pair(const Arguments& arguments, const std::vector<Orders>& all) {
  if (given(arguments, "FB") && std::ranges::none_of(all, has_pairs))
    refuse("--FB is the time of a fused pair, and there is none", "leave it out");
}

Priced price(Orders orders, const Settings& s) {
  Priced priced{std::move(orders), {}, {}};
  for (const auto& list : priced.orders.ranks)
    for (const Order& order : list)
      priced.stages = std::max(priced.stages, static_cast<int>(+order.stage) + 1);
  const double ranks = static_cast<double>(priced.orders.ranks.size());
  const double share = ranks / priced.stages;
  const CostsOfStages costs(s, priced.stages, share);
  priced.schedule = weave(
      priced.orders, {.activation = s.activation,
                      .saved = static_cast<Bytes>(static_cast<double>(s.saved) * share),
                      .parameters = static_cast<Bytes>(static_cast<double>(s.parameters) * share)});
  if (s.depth >= 0)
    priced.schedule = fold_to_live(priced.schedule, static_cast<std::uint32_t>(s.depth));
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
