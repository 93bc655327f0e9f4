// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>

#include "../common/size_check.hpp"
#include "best.hpp"
#include "settings.hpp"

namespace tool {

using namespace heddle;

std::string time_of(double time, const Settings& s) {
  return s.seconds ? time_text(time) : number(time);
}

void add_shape(CommandLine& command, Settings& s) {
  command.add_option("ranks", &s.shape.ranks, "ranks of the pipeline");
  command.add_option("microbatches", &s.shape.microbatches, "microbatches of a step");
  command.add_option("stages-per-rank", &s.shape.stages_per_rank,
                     "stages of each rank, if the schedule does not fix them");
  command.add_option("group", &s.shape.group,
                     "microbatches of a group, or slices of a sequence; 0: the usual number");
  command.add_option("pairs", &s.shape.pairs, "for chimera: pipelines in each direction");
  command.add_option("most-live", &s.shape.most_live,
                     "for dapple: microbatches whose activations fit a rank; 0: all");
  command.add_option("cap", &s.limit.activations,
                     "live activations that fit a rank, in microbatches; 0: all");
  command.add_bytes("cap-bytes", s.limit.bytes, "bytes that fit a rank, as 40GB; 0: all", "fits");
  command.add_flag("refine", s.refine,
                   "searches for a shorter order for these costs in which no rank keeps more");
}

void add_prices(CommandLine& command, Settings& s) {
  command.set_note([] {
    return std::string(
        "Times and sizes are those of one microbatch for the share of the model that a rank has "
        "when\n"
        "each has one. Times have no unit, or all of them have one: --F 5ms --I 5ms --W 4ms.\n"
        "Several, --F 1,2,1, are those of the stages as they are.");
  });
  command.add_times("F", &s.forward, "time of a forward");
  command.add_times("I", &s.backward_input, "time of a backward for the input");
  command.add_times("W", &s.backward_weight, "time of a backward for the weights");
  command.add_times("B", &s.backward,
                    "time of a whole backward, which is less than I + W if both halves run a part "
                    "of the forward again; 0: I + W");
  command.add_times("FB", &s.forward_backward, "time of a fused pair; 0: as long as both");
  command.add_times("latency", &s.latency, "time that every transfer takes besides its bytes");
  command.add_rate("bandwidth", s.bandwidth, "bytes of a transfer per unit of time; 0: unlimited");
  command.add_option("depth", &s.depth,
                     "unsent results of a stage after which it waits; -1: it never waits");
  command.add_bytes("activation", s.activation, "bytes that a stage sends to the next one");
  command.add_bytes("saved", s.saved, "bytes that a stage keeps from forward to backward");
  command.add_bytes("parameters", s.parameters,
                    "bytes of the weights, and as many of their gradients");
}

void add_pictures(CommandLine& command, Settings& s) {
  command.add_option("columns", &s.columns, "width of the drawing in the terminal");
  command.add_flag("live", s.live, "also draws the live activations over time");
  command.add_output("--svg", s.svg, "a file for the picture");
  command.add_output("--perfetto", s.perfetto, "a file for ui.perfetto.dev");
  command.add_output("--dot", s.dot, "a file for Graphviz");
  command.add_output("--csv", s.csv,
                     "a file for torch.distributed.pipelining; schedule --help says what that "
                     "cannot run");
  command.add_flag("transfers", s.transfers,
                   "the CSV file also has sends, receives, UNSHARD, RESHARD and REDUCE_GRAD");
  command.add_flag(
      "stagger", s.stagger,
      "with --transfers, which a file without them gets: rank 0 has UNSHARD for two stages "
      "ahead instead of three");
}

void add_open(CommandLine& command, Settings& s) {
  command.add_flag("open", s.open,
                   "writes a page that leads to the explorer with this schedule, and opens it");
}

void add_dialect(CommandLine& command, Settings& s) {
  command.add_flag("old-dialect", s.old_dialect, "B is for the input and BW the whole backward");
  command.add_flag("replicas", s.replicas, "a stage may be on several ranks");
  command.add_option("branches", &s.branches,
                     "branches of the model, each with a stage on every rank, and one loss");
  command.add_flag("vertical-sync", s.vertical_sync,
                   "asynchronous: all stages use the weights' version of the first stage");
}

void check_values(const CommandLine& command, const Settings& s) {
  if (const auto fault = fault_of(s)) throw command.error(fault->what, fault->fix);
  if (s.columns < 1) throw command.error("a drawing needs at least one column");
  if (!std::isfinite(s.limit.activations) || s.limit.activations < 0)
    throw command.error("--cap is a number of at least 0");
  if (s.transfers && s.csv.empty())
    throw command.error("--transfers says what a csv file holds", "name one with --csv");
  if (s.stagger && !s.transfers)
    throw command.error("--stagger places the UNSHARD of a file with transfers", "add --transfers");
}

schedule::LoweredOrders read_orders(const CommandLine& command, const std::string& name,
                                    const std::string& csv, const Settings& s) {
  StageGraph graph;
  if (s.branches != 1) {
    const auto ends = std::count(csv.begin(), csv.end(), '\n');
    const auto ranks = ends + (!csv.ends_with('\n'));
    graph = schedule::branch_graph(static_cast<int>(ranks), s.branches);
  }
  graph.replicas = s.replicas;
  schedule::LoweredOrders lowered = schedule::read_lowered(csv, {.name = name,
                                                                 .graph = graph,
                                                                 .old_dialect = s.old_dialect,
                                                                 .vertical_sync = s.vertical_sync});
  if (s.vertical_sync && csv.find("UPDATE") == std::string::npos)
    throw command.error("--vertical-sync is about updates among the orders, and there are none",
                        "leave it out");
  return lowered;
}

std::vector<const schedule::NamedSchedule*> named_schedules(const CommandLine& command,
                                                            const Settings& s) {
  using schedule::ShapeOption;
  std::vector<const schedule::NamedSchedule*> entries;
  for (const std::string& name : s.names) {
    try {
      entries.push_back(name == best_name ? nullptr : &schedule::find_schedule(name));
    } catch (const contract_error& unknown) {
      throw command.error(unknown.complaint().what, unknown.complaint().fix);
    }
  }
  // The best schedule may be any of the catalogue.
  const bool best = std::ranges::count(entries, nullptr) > 0;
  for (const auto& [option, heeds] : {std::pair{"stages-per-rank", ShapeOption::stages_per_rank},
                                      {"group", ShapeOption::group},
                                      {"pairs", ShapeOption::pairs},
                                      {"most-live", ShapeOption::most_live}}) {
    const ShapeOption wanted = heeds;
    const auto uses = [wanted](const auto* entry) { return entry->uses(wanted); };
    if (command.given(option) && !best && std::ranges::none_of(entries, uses)) {
      std::string others;
      for (const auto& entry : schedule::catalogue())
        if (entry.uses(heeds)) others += text(others.empty() ? "" : ", ", entry.name);
      throw command.error(text("--", option, " means nothing to this schedule"),
                          "it is for " + others);
    }
  }
  for (const auto* option : {"cap", "cap-bytes"})
    if (command.given(option) && !best && !s.compares)
      throw command.error(text("--", option, " means nothing to this schedule"), "it is for best");
  if (s.limit.bytes > 0 && !s.sized())
    throw command.error("the bytes of a rank are not known",
                        "give --saved, --activation and --parameters");
  if (best && !s.equal_stages())
    throw command.error("'best' compares schedules with different numbers of stages",
                        "give one time for each of --F, --I, --W and --B");
  if (s.refine && !s.equal_stages())
    throw command.error("--refine searches for stages that take equally long",
                        "give one time for each of --F, --I, --W and --B");
  if (s.refine && std::ranges::count(entries, nullptr) == std::ssize(entries))
    throw command.error("--refine means nothing to 'best', which searches already", "leave it out");
  if (s.refine && s.periodic)
    throw command.error("--periodic simulates schedules as they are", "leave out --refine");
  if (best && s.periodic)
    throw command.error("--periodic is for single schedules, not for 'best'", "leave one out");
  if (!s.periodic)
    for (const auto& entry : schedule::catalogue())
      if (best || std::ranges::count(entries, &entry) > 0)
        check_size(entry, s.shape, "schedule",
                   "use fewer ranks or microbatches, or compare --periodic");
  if (best || (!command.given("FB") && s.equal_stages())) return entries;
  // The stages and pairs of a schedule are those of the same one of few microbatches.
  std::vector<Orders> all;
  for (const auto* entry : entries) all.push_back(fewest_orders(*entry, s.shape));
  check_prices(command, s, all);
  return entries;
}

void check_prices(const CommandLine& command, const Settings& s, const std::vector<Orders>& all) {
  if (command.given("FB") && std::ranges::none_of(all, has_pairs))
    throw command.error("--FB is the time of a fused pair, and there is none", "leave it out");
  for (const Orders& orders : all)
    if (const auto fault = fault_of(s, orders)) throw command.error(fault->what, fault->fix);
}

}  // namespace tool
