// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include <heddle/core/file.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule.hpp>
#include <heddle/trace.hpp>

#include "../common/progress.hpp"
#include "../common/streams.hpp"
#include "../common/timeline_output.hpp"
#include "best.hpp"
#include "commands.hpp"
#include "settings.hpp"
#include "terminal.hpp"
#include "torch.hpp"

namespace tool {

using namespace heddle;

namespace {

/// Prints what is known of the orders and writes the files that are wanted.
void draw(const schedule::LoweredOrders& lowered, const Settings& s) {
  const bool beside = std::ranges::count(std::array{s.svg, s.perfetto, s.dot, s.csv}, "-") > 0;
  WordsBeside words(beside);
  const Priced priced = price(lowered.orders, s);
  // Without a unit, what the command line calls 1 is no second.
  const auto unit = s.seconds ? std::nullopt : std::optional<std::string>("");
  std::cout << in_colours(to_grid(priced.schedule, s.columns)) << '\n'
            << in_colours(to_grid(priced.timeline, s.columns, unit));
  if (s.live) std::cout << '\n' << live_chart(priced, s.columns) << '\n';
  std::cout << text("live activations of the ranks: ", of_ranks(priced.activations), "; ",
                    priced.messages, " messages\n");
  const bool sized = s.sized();
  if (sized) std::cout << '\n' << trace::memory_report(priced.timeline);
  words.end();
  if (!s.svg.empty())
    write_output(s.svg, trace::to_svg(priced.timeline, {.unit = unit, .memory = sized}));
  if (!s.perfetto.empty()) write_timeline(s.perfetto, priced.timeline);
  if (!s.dot.empty()) write_output(s.dot, trace::to_dot(priced.schedule));
  if (s.csv.empty()) return;
  write_output(s.csv,
               s.transfers ? to_lowered_csv(lowered, s.stagger) : schedule::to_csv(lowered.orders));
  warn_if_not_for_torch(s.csv, lowered.orders);
}

/// Reads the schedule file `name` and draws it.
void check(const CommandLine& command, const std::string& name, const Settings& s) {
  const std::string csv = read_file(name);
  try {
    const schedule::LoweredOrders lowered = read_orders(command, name, csv, s);
    check_prices(command, s, {lowered.orders});
    warn_if_not_for_torch(name, lowered.orders);
    warn_if_half_lowered(name, csv, lowered);
    draw(lowered, s);
  } catch (const schedule::wrong_cell& error) {
    std::cout << error.grid();
    throw;
  }
}

}  // namespace

void add_show(CommandLine& program) {
  const auto settings = std::make_shared<Settings>();
  settings->names.resize(1);
  CommandLine& command = program.add_command(
      "show", "Draws a schedule of the list.", [settings](const CommandLine& line) {
        check_values(line, *settings);
        if (settings->open && settings->names[0] == best_name)
          throw line.error("the explorer has no schedule 'best'", "leave out --open");
        settings->seconds = line.has_units();
        Orders orders;
        {
          const ProgressLine progress(settings->names[0]);
          orders = orders_of(named_schedules(line, *settings)[0], *settings);
        }
        std::string url;
        if (settings->open) url = explorer_url(line, *settings);
        draw({orders}, *settings);
        if (settings->open) open_page(settings->names[0], url);
      });
  command.add_argument("NAME", &settings->names[0],
                       "of the schedule, see schedule list, or best: the shortest one");
  add_shape(command, *settings);
  add_prices(command, *settings);
  add_pictures(command, *settings);
  add_open(command, *settings);
}

void add_check(CommandLine& program) {
  const auto settings = std::make_shared<Settings>();
  const auto name = std::make_shared<std::string>();
  CommandLine& command = program.add_command(
      "check", "Draws a schedule file of torch.distributed.pipelining, or says what is wrong.",
      [settings, name](const CommandLine& line) {
        check_values(line, *settings);
        settings->seconds = line.has_units();
        check(line, *name, *settings);
      });
  command.add_input("FILE.csv", name.get(), "the file");
  add_prices(command, *settings);
  add_pictures(command, *settings);
  add_dialect(command, *settings);
}

}  // namespace tool
