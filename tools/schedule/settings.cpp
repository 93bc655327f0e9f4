// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <iostream>
#include <string_view>
#include <utility>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

#include "options.hpp"
#include "settings.hpp"

namespace tool {

using namespace heddle;

namespace {

examples::Options options(Settings& s) {
  examples::Options options(
      "Options of show, check and compare. Times and sizes are those of one microbatch for the "
      "share\n"
      "of the model that a rank has when each has one.");
  options.add("ranks", s.shape.ranks, "of the pipeline");
  options.add("microbatches", s.shape.microbatches, "in a step");
  options.add("stages-per-rank", s.shape.stages_per_rank, "where the schedule leaves it open");
  options.add("F", s.F, "time of a forward");
  options.add("I", s.I, "time of a backward for the input");
  options.add("W", s.W, "time of a backward for the weights; a whole one takes I + W");
  options.add("FB", s.FB, "time of a fused pair, 0: as long as both");
  options.add("latency", s.latency, "of every transfer");
  options.add("activation", s.activation, "bytes that a stage hands on");
  options.add("saved", s.saved, "bytes kept from forward to backward");
  options.add("svg", s.svg, "a file for the picture");
  options.add("perfetto", s.perfetto, "a file for ui.perfetto.dev");
  options.add("dot", s.dot, "a file for Graphviz");
  options.add("csv", s.csv, "a file in the form of torch.distributed.pipelining");
  options.flag("transfers", s.transfers, "the csv file says what is sent and received");
  options.flag("old-dialect", s.old_dialect, "check: B is for the input and BW the whole backward");
  options.flag("replicas", s.replicas, "check: a stage may be on several ranks");
  return options;
}

}  // namespace

Arguments read(std::span<char*> arguments, const char* what, std::size_t least, std::size_t most) {
  Arguments result;
  std::size_t names = 0;
  while (names < arguments.size() && !std::string_view(arguments[names]).starts_with("--"))
    result.names.emplace_back(arguments[names++]);
  // Where a program's name would be, Options begins to read behind.
  std::vector<char*> rest(arguments.begin() + static_cast<std::ptrdiff_t>(names), arguments.end());
  rest.insert(rest.begin(), nullptr);
  examples::Options known = options(result.settings);
  if (!known.parse(static_cast<int>(rest.size()), rest.data())) {
    std::cout << known.help();
    result.help = true;
    return result;
  }
  if (names < least || names > most)
    throw contract_error({"command line", text("this command takes ", what),
                          text(names, names == 1 ? " name" : " names"), "try schedule --help"});
  const Settings& s = result.settings;
  for (const double time : {s.F, s.I, s.W, s.FB, s.latency})
    expects(std::isfinite(time) && time >= 0, [&] {
      return Complaint{"command line", "times are numbers of at least 0", text("one is ", time)};
    });
  return result;
}

Priced price(Orders orders, const Settings& s) {
  Priced priced{std::move(orders), {}, {}};
  for (const auto& list : priced.orders.ranks)
    for (const Order& order : list)
      priced.stages = std::max(priced.stages, static_cast<int>(+order.stage) + 1);
  const double ranks = static_cast<double>(priced.orders.ranks.size());
  const double share = ranks / priced.stages;
  priced.schedule =
      weave(priced.orders, {.activation = s.activation,
                            .saved = static_cast<Bytes>(static_cast<double>(s.saved) * share)});
  const double both = s.FB > 0 ? s.FB : s.F + s.I + s.W;
  const StageCosts costs{.F = s.F * share,
                         .I = s.I * share,
                         .W = s.W * share,
                         .FB = both * share,
                         .latency = s.latency};
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
