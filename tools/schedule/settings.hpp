// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// What the commands are told: the shape of the schedules, and what things cost.

#include <cstddef>
#include <string>
#include <vector>

#include <heddle/schedule.hpp>
#include <heddle/simulate.hpp>

#include "../common/command_line.hpp"

namespace tool {

/// Times and sizes are those of one microbatch for the share of the model that a rank has when each
/// has one, so that schedules with different numbers of stages are about the same model. Of F, I
/// and W there may be several: then those of each stage as it is.
struct Settings {
  std::vector<std::string> names = {};  ///< of schedules
  heddle::schedule::PipelineShape shape = {};
  std::vector<double> forward = {1};
  std::vector<double> backward_input = {1};
  std::vector<double> backward_weight = {1};
  double forward_backward = 0;  ///< of a fused pair; 0: as long as both
  double latency = 0;
  double bandwidth = 0;  ///< bytes per unit of time that a channel carries; 0: any number
  int depth = -1;        ///< results that may wait to be sent while their stage goes on; -1: all
  heddle::Bytes activation = 0;  ///< handed from stage to stage
  heddle::Bytes saved = 0;       ///< kept from forward to backward
  heddle::Bytes parameters = 0;  ///< weights
  bool old_dialect = false;
  bool replicas = false;
  bool vertical_sync = false;
  int branches = 1;
  bool transfers = false;
  /// Whether bytes are to be told.
  [[nodiscard]] bool sized() const { return activation + saved + parameters > 0; }
  int columns = 100;  ///< of the drawing in the terminal
  std::string svg = {}, perfetto = {}, dot = {}, csv = {};
};

/// --ranks, --microbatches and what else makes the shape of a schedule.
void add_shape(CommandLine& command, Settings& s);
/// What things cost.
void add_prices(CommandLine& command, Settings& s);
/// The files to write, and how wide the drawing is.
void add_pictures(CommandLine& command, Settings& s);
/// How a schedule file is to be read.
void add_dialect(CommandLine& command, Settings& s);

/// @throws usage_error for values that are none, or that mean nothing together.
void check_values(const CommandLine& command, const Settings& s);

/// The schedules that were named. @throws usage_error for a name that the catalogue lacks, and for
/// an option that none of them heeds.
[[nodiscard]] std::vector<heddle::Orders> named_orders(const CommandLine& command,
                                                       const Settings& s);
/// @throws usage_error if a fused pair has a price, and none of `all` has such a pair, or if there
/// are several times, and not one for each stage.
void check_prices(const CommandLine& command, const Settings& s,
                  const std::vector<heddle::Orders>& all);

/// Orders with all that the commands tell about them.
struct Priced {
  heddle::Orders orders;
  heddle::Schedule schedule;
  heddle::Timeline timeline;
  int stages = 0;
  /// Most live activations of every rank, in those of a microbatch on the share of one rank.
  std::vector<double> activations = {};
  std::size_t messages = 0;  ///< between ranks
};

/// Of settings that check_values() and check_prices() take.
[[nodiscard]] Priced price(heddle::Orders orders, const Settings& settings);

/// A number with at most three decimals.
[[nodiscard]] std::string number(double value);
/// A share in percent.
[[nodiscard]] std::string percent(double share);
/// Of all ranks, "4 3 2 1", or the range where they are many.
[[nodiscard]] std::string of_ranks(const std::vector<double>& values);

}  // namespace tool
