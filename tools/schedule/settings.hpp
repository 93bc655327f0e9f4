// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the commands are told: the shape of the schedules, and what things cost.

#include <string>
#include <vector>

#include <heddle/schedule.hpp>

#include "../common/command_line.hpp"
#include "../common/pricing.hpp"
#include "../common/search_orders.hpp"

namespace tool {

/// The prices, and what else the commands are told.
struct Settings : Prices {
  std::vector<std::string> names = {};  ///< of schedules
  heddle::schedule::PipelineShape shape = {};
  bool old_dialect = false;
  bool replicas = false;
  bool vertical_sync = false;
  int branches = 1;
  MemoryLimit limit = {};  ///< the memory of a rank
  bool seconds = false;    ///< times have units
  bool compares = false;   ///< several schedules are compared
  bool refine = false;     ///< schedules are refined for the prices
  bool best = false;       ///< all schedules and searches are compared
  bool all = false;        ///< all schedules of the catalogue are compared
  bool transfers = false;
  bool stagger = false;   ///< rank 0 unshards two stages ahead
  bool live = false;      ///< a chart of live activations
  bool periodic = false;  ///< steady periods are skipped
  bool open = false;      ///< the explorer's page
  int columns = 100;      ///< of the drawing in the terminal
  std::string svg = {}, perfetto = {}, dot = {}, csv = {};
};

/// Returns a time of a timeline, with a unit if the times of the command line have units.
[[nodiscard]] std::string time_of(double time, const Settings& s);

/// --ranks, --microbatches and what else makes the shape of a schedule.
void add_shape(CommandLine& command, Settings& s);
/// What things cost.
void add_prices(CommandLine& command, Settings& s);
/// The files to write, and how wide the drawing is.
void add_pictures(CommandLine& command, Settings& s);
/// The page of the explorer, for a schedule that has a name.
void add_open(CommandLine& command, Settings& s);
/// How a schedule file is to be read.
void add_dialect(CommandLine& command, Settings& s);

/// @throws usage_error for values that are none, or that mean nothing together.
void check_values(const CommandLine& command, const Settings& s);

/// The orders of the schedule file `name`, whose text is `csv`. @throws usage_error for vertical
/// sync without updates.
[[nodiscard]] heddle::schedule::LoweredOrders read_orders(const CommandLine& command,
                                                          const std::string& name,
                                                          const std::string& csv,
                                                          const Settings& s);

/// The schedules that were named; a null pointer stands for `best`. @throws usage_error for a name
/// that the catalogue lacks, for an option that none of them heeds, for prices that check_prices()
/// rejects, and for what `best` does not search. @throws infeasible for a schedule that does not
/// fit the memory of this machine.
[[nodiscard]] std::vector<const heddle::schedule::NamedSchedule*> named_schedules(
    const CommandLine& command, const Settings& s);
/// @throws usage_error if a fused pair has a price, and none of `all` has such a pair, or if there
/// are several times, and not one for each stage.
void check_prices(const CommandLine& command, const Settings& s,
                  const std::vector<heddle::Orders>& all);

}  // namespace tool
