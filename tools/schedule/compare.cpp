// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <cstddef>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>

#include "../common/columns.hpp"
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

void compare(const CommandLine& command, const Settings& s) {
  // The table of the file has all digits, and all ranks.
  std::string csv =
      "schedule,makespan,bubble ratio,live activations,messages,bytes sent,most bytes kept\n";
  std::vector<std::vector<std::string>> rows = {
      {"schedule", "makespan", "bubble", "live activations", "messages"}};
  const bool sized = s.sized();
  if (sized) rows[0].insert(rows[0].end(), {"bytes sent", "most bytes kept"});
  const std::vector<Orders> all = named_orders(command, s);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Priced priced = price(all[i], s);
    csv += text(s.names[i], ',', exact(priced.timeline.makespan()), ',',
                exact(priced.timeline.bubble_ratio()), ',', all_of(priced.activations), ',',
                priced.messages, ',', priced.messages * s.activation, ',',
                most_bytes(priced.timeline), '\n');
    auto& row = rows.emplace_back(std::vector<std::string>{
        s.names[i], number(priced.timeline.makespan()), percent(priced.timeline.bubble_ratio()),
        of_ranks(priced.activations), text(priced.messages)});
    if (!sized) continue;
    row.push_back(text(priced.messages * s.activation));
    row.push_back(text(most_bytes(priced.timeline)));
  }
  print_columns(rows);
  if (!s.csv.empty()) write_file(s.csv, csv);
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
        compare(line, *settings);
      });
  command.add_argument("NAME", &settings->names, "of the schedules, see schedule list");
  add_shape(command, *settings);
  add_prices(command, *settings);
  command.add_option("csv", &settings->csv, "a file for the table, with all digits");
}

}  // namespace tool
