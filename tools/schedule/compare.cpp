// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "../common/columns.hpp"
#include "../common/progress.hpp"
#include "../common/streams.hpp"
#include "best.hpp"
#include "commands.hpp"
#include "settings.hpp"
#include "terminal.hpp"

namespace tool {

using namespace heddle;

namespace {

/// "4 3 2 1", of all ranks.
std::string all_of(const std::vector<double>& values) {
  std::string all;
  for (const double value : values) all += text(all.empty() ? "" : " ", exact(value));
  return all;
}

/// What a row of the table says about a schedule.
struct Row {
  std::string name;  ///< of the orders
  double makespan = 0, bubble_ratio = 0;
  std::vector<double> activations;
  std::size_t messages = 0;
  Bytes most_bytes = 0;
};

/// `entry` is one of named_schedules().
Row row_of(const schedule::NamedSchedule* entry, const Settings& s) {
  if (s.periodic) {
    const PeriodicPrice price = price_periodic(*entry, s.shape, s);
    return {"", price.step.makespan, price.step.bubble_ratio(), price.activations,
            static_cast<std::size_t>(price.step.messages)};
  }
  const Priced priced = price(orders_of(entry, s), s);
  return {priced.orders.name,
          priced.timeline.makespan(),
          priced.timeline.bubble_ratio(),
          priced.activations,
          priced.messages,
          s.sized() ? most_bytes(priced.timeline) : 0};
}

/// Returns bytes with a unit.
std::string bytes_of(Bytes bytes) { return bytes_text(static_cast<double>(bytes)); }

void compare(const CommandLine& command, const Settings& s) {
  // The table of the file has all digits, and all ranks.
  std::string csv =
      "schedule,makespan,bubble ratio,closed form,live activations,messages,bytes sent,"
      "most bytes kept";
  csv += s.limit.activations > 0 || s.limit.bytes > 0 ? ",fits\n" : "\n";
  std::vector<std::string> head = {"schedule",    "makespan",         "bubble",
                                   "closed form", "live activations", "messages"};
  const bool sized = s.sized();
  if (sized) head.push_back("bytes sent");
  if (sized && !s.periodic) head.push_back("most bytes kept");
  const bool limited = s.limit.activations > 0 || s.limit.bytes > 0;
  if (limited) head.push_back("fits");
  const auto entries = named_schedules(command, s);
  WordsBeside words(s.csv == "-");
  ProgressLine line;
  std::size_t longest = 0;
  for (const std::string& name : s.names) longest = std::max(longest, name.size());
  std::string best, missing;
  GrowingTable table(head, longest);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    line.say(text(s.names[i], ", ", i + 1, " of ", entries.size()));
    Row row;
    try {
      row = row_of(entries[i], s);
    } catch (const infeasible&) {
      if (!s.all) throw;
      missing += text(missing.empty() ? "" : ", ", s.names[i]);
      continue;
    }
    if (entries[i] == nullptr) best = row.name;
    std::optional<double> form;
    if (entries[i] != nullptr) form = closed_form(*entries[i], s.shape, s);
    csv += text(s.names[i], ',', exact(row.makespan), ',', exact(row.bubble_ratio), ',',
                form ? exact(*form) : "", ',', all_of(row.activations), ',', row.messages, ',',
                row.messages * s.activation, ',', s.periodic ? "" : text(row.most_bytes));
    const char* const fit = fits(row.activations, row.most_bytes, s.limit) ? "yes" : "no";
    if (limited) csv += text(',', fit);
    csv += '\n';
    std::vector<std::string> cells = {s.names[i],
                                      time_of(row.makespan, s),
                                      percent(row.bubble_ratio),
                                      form ? percent(*form) : "-",
                                      of_ranks(row.activations),
                                      text(row.messages)};
    if (sized) cells.push_back(bytes_of(row.messages * s.activation));
    if (sized && !s.periodic) cells.push_back(bytes_of(row.most_bytes));
    if (limited) cells.emplace_back(fit);
    line.print_above([&] { table.print(cells); });
  }
  if (!best.empty()) std::cout << best << '\n';
  if (!missing.empty()) std::cout << "there are none of this shape: " << missing << '\n';
  words.end();
  if (!s.csv.empty()) write_output(s.csv, csv);
}

/// Prints all schedules of the shape, those that fit the memory first, the shortest first.
void compare_best(const CommandLine& command, Settings s) {
  if (!s.names.empty())
    throw command.error("--best compares all schedules", "leave out their names");
  s.names = {std::string(best_name)};
  (void)named_schedules(command, s);
  std::vector<Candidate> all;
  {
    const ProgressLine line("searching");
    all = candidates(s);
  }
  const std::string best = with_gap(shortest(all, s), s);
  std::ranges::stable_sort(all, {}, [](const Candidate& each) {
    return std::pair(!each.fits, each.priced.timeline.makespan());
  });
  std::vector<std::vector<std::string>> rows = {
      {"schedule", "makespan", "above bound", "bubble", "live activations", "messages", "fits"}};
  std::string csv =
      "schedule,makespan,lower bound,bubble ratio,live activations,messages,most bytes kept,fits\n";
  if (s.sized()) rows[0].insert(rows[0].end() - 1, "most bytes kept");
  for (const Candidate& each : all) {
    const auto& timeline = each.priced.timeline;
    const char* const fit = each.fits ? "yes" : "no";
    const std::string gap = each.bound > 0 ? percent(timeline.makespan() / each.bound - 1) : "";
    rows.push_back({each.name, time_of(timeline.makespan(), s), gap,
                    percent(timeline.bubble_ratio()), of_ranks(each.priced.activations),
                    text(each.priced.messages), fit});
    if (s.sized()) rows.back().insert(rows.back().end() - 1, bytes_of(most_bytes(timeline)));
    csv += text('"', each.name, "\",", exact(timeline.makespan()), ',',
                each.bound > 0 ? exact(each.bound) : "", ',', exact(timeline.bubble_ratio()), ',',
                all_of(each.priced.activations), ',', each.priced.messages, ',',
                s.sized() ? text(most_bytes(timeline)) : "", ',', fit, '\n');
  }
  WordsBeside words(s.csv == "-");
  print_columns(rows);
  std::cout << "best: " << best << '\n'
            << "show best --csv FILE, with the same options, writes it for torch\n";
  words.end();
  if (!s.csv.empty()) write_output(s.csv, csv);
}

}  // namespace

void add_list(CommandLine& program) {
  program.add_command("list", "Prints the schedules that there are.", [](const CommandLine&) {
    std::vector<std::vector<std::string>> rows = {{"name", "heddle::schedule", "what it is"}};
    for (const auto& entry : schedule::catalogue())
      rows.push_back({std::string(entry.name), std::string(entry.call), std::string(entry.about)});
    print_columns(rows);
  });
}

void add_compare(CommandLine& program) {
  const auto settings = std::make_shared<Settings>();
  CommandLine& command = program.add_command(
      "compare", "Shows several schedules beside each other.", [settings](const CommandLine& line) {
        check_values(line, *settings);
        settings->seconds = line.has_units();
        settings->compares = true;
        if (settings->periodic && settings->depth >= 0)
          throw line.error("--periodic simulates stages that never wait to send",
                           "leave out --depth");
        if (settings->periodic && settings->limit.bytes > 0)
          throw line.error("--periodic does not know the bytes of a rank",
                           "use --cap for live activations");
        if (settings->best) return compare_best(line, *settings);
        if (settings->all && !settings->names.empty())
          throw line.error("--all compares all schedules", "leave out their names");
        if (settings->all)
          for (const auto& entry : schedule::catalogue()) settings->names.emplace_back(entry.name);
        if (settings->names.empty())
          throw line.error("NAME is required",
                           "name some of schedule list, or use --all or --best");
        compare(line, *settings);
      });
  command.add_argument("NAME", &settings->names,
                       "of the schedules, see schedule list, or best: the shortest one", false);
  add_shape(command, *settings);
  add_prices(command, *settings);
  command.add_output("--csv", settings->csv, "a file for the table, with all digits");
  command.add_flag("all", settings->all, "compares all schedules that there are of this shape");
  command.add_flag("best", settings->best,
                   "compares all schedules and searches, with their gaps to a lower bound");
  command.add_flag("periodic", settings->periodic,
                   "skips steady periods exactly, for any number of microbatches");
}

}  // namespace tool
