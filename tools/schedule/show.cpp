// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include <heddle/core/contract.hpp>
#include <heddle/core/file.hpp>
#include <heddle/schedule.hpp>
#include <heddle/trace.hpp>

#include "commands.hpp"
#include "settings.hpp"
#include "torch.hpp"

namespace tool {

using namespace heddle;

namespace {

/// Prints what is known of the orders and writes the files that are wanted.
void draw(const schedule::LoweredOrders& lowered, const Settings& s) {
  const Priced priced = price(lowered.orders, s);
  std::cout << to_grid(priced.schedule) << '\n' << to_grid(priced.timeline);
  std::cout << text("live activations of the ranks: ", of_ranks(priced.activations), "; ",
                    priced.messages, " messages\n");
  const bool sized = s.sized();
  if (sized) std::cout << '\n' << trace::memory_report(priced.timeline);
  if (!s.svg.empty()) write_file(s.svg, trace::to_svg(priced.timeline, {.memory = sized}));
  if (!s.perfetto.empty()) trace::write(s.perfetto, priced.timeline);
  if (!s.dot.empty()) write_file(s.dot, trace::to_dot(priced.schedule));
  if (s.csv.empty()) return;
  write_file(s.csv, s.transfers ? to_lowered_csv(lowered) : schedule::to_csv(lowered.orders));
  warn_if_not_for_torch(s.csv, lowered.orders);
}

}  // namespace

int show(std::span<char*> arguments) {
  const Arguments line = read(arguments, {.name = "show",
                                          .what = "the name of a schedule",
                                          .shapes = true,
                                          .prices = true,
                                          .writes = true});
  if (line.help) return 0;
  draw({named_orders(line)[0]}, line.settings);
  return 0;
}

int check(std::span<char*> arguments) {
  const Arguments line = read(arguments, {.name = "check",
                                          .what = "the name of a file",
                                          .prices = true,
                                          .writes = true,
                                          .reads = true});
  if (line.help) return 0;
  const std::string& name = line.names[0];
  std::ifstream file(name, std::ios::binary);
  const std::string csv((std::istreambuf_iterator<char>(file)), {});
  if (!file) throw format_error({"schedule check", "cannot read '" + name + "'"});
  const Settings& s = line.settings;
  StageGraph graph;
  if (s.branches != 1) {
    const auto ends = std::count(csv.begin(), csv.end(), '\n');
    const auto ranks = ends + (!csv.ends_with('\n'));
    graph = schedule::branch_graph(static_cast<int>(ranks), s.branches);
  }
  graph.replicas = s.replicas;
  try {
    const schedule::LoweredOrders lowered =
        schedule::read_lowered(csv, {.name = name,
                                     .graph = graph,
                                     .old_dialect = s.old_dialect,
                                     .vertical_sync = s.vertical_sync});
    expects(!s.vertical_sync || csv.find("UPDATE") != std::string::npos, [] {
      return Complaint{"command line",
                       "--vertical-sync is about updates among the orders, and there are none",
                       {},
                       "leave it out"};
    });
    refuse_price_of_no_pair(line, {lowered.orders});
    warn_if_not_for_torch(name, lowered.orders);
    warn_if_half_lowered(name, csv, lowered);
    draw(lowered, s);
  } catch (const schedule::wrong_cell& error) {
    std::cout << error.grid();
    throw;
  }
  return 0;
}

}  // namespace tool
